"""The machine that mqreplay runs on: files, folders, signals, its failures."""
