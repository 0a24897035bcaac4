"""A recording: the kind of each file, and how to record what is missing."""
