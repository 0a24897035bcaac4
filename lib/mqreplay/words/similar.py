"""The name that was meant by one that does not exist."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

ALIKE = 0.7  # of 1, by difflib


def did_you_mean(name: str, names: Iterable[str]) -> str | None:
    """Return the most similar of the names; None where none is similar.

    >>> did_you_mean("findings", ["finding", "allocation"]), did_you_mean("x", ["finding"])
    ('finding', None)
    """
    by_lower = {each.lower(): each for each in names}
    found = difflib.get_close_matches(name.lower(), by_lower, 1, ALIKE)
    return by_lower[found[0]] if found else None


def unknown_table(name: str, known: Iterable[str]) -> str:
    """Return what to say of a table that does not exist."""
    names = list(known)
    meant = did_you_mean(name, [*names, *(each.partition(".")[2] for each in names)])
    full = next((each for each in names if meant in (each, each.partition(".")[2])), None)
    hint = f"did you mean {full}?" if full else "`mqreplay tables` lists them"
    return f"there is no table {name}; {hint}"
