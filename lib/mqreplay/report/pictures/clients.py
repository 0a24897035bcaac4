"""Colours and letters of the clients of one group."""

from __future__ import annotations

from collections.abc import Iterable

MOST_COLOURS = 7


def client_letters(clients: Iterable[str]) -> dict[str, int]:
    """Return a number for each client, in the order of their first mention.

    >>> client_letters(["b", "a", "b"])
    {'b': 0, 'a': 1}
    """
    return {client: i for i, client in enumerate(dict.fromkeys(clients))}


def client_css(number: int) -> str:
    """Return the class of the client's colour in pictures.css."""
    return f"p-c{number % MOST_COLOURS}"
