"""Recordings of a running cluster, of a broker's store, and of files on disk."""
