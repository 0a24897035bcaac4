"""The state of a cluster at a moment of a replayed night: what the tables of a warehouse show of it."""
