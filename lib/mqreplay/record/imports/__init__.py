"""Files that operators have on disk, made into a recording."""
