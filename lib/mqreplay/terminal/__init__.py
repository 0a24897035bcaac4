"""Answers as text in a terminal, for commands and notebooks."""
