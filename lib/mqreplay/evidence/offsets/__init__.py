"""Offsets of queues: changes, causes, ends, resets, standstills."""
