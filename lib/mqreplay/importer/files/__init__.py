"""The files that an import reads: on disk and in archives, and what their paths show."""
