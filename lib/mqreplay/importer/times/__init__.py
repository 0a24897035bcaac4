"""Times in names of files, in lines and in outputs, which may have no zone."""
