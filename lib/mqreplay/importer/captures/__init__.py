"""Packet captures, made into records."""
