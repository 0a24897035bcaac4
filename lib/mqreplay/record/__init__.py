"""Recordings made of what lies on disk: packet captures."""
