"""Outputs of mqadmin and answers saved as JSON, made into records."""
