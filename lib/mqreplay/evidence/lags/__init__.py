"""Queues that are behind although they should advance."""
