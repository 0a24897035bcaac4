"""Copies of brokers' and clients' files, made into snapshots of a recording."""
