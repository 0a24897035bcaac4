"""The order of a night: what is new, ingest, replay, validate, report."""
