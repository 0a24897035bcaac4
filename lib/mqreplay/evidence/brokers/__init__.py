"""Brokers: configuration, outages, routes, commit logs."""
