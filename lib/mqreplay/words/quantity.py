"""Numbers with their nouns, and lists of words, as a text shows them."""

from __future__ import annotations

from collections.abc import Sequence


def counted(number: int, one: str, many: str | None = None) -> str:
    """Return a number and its noun.

    >>> counted(1, "row"), counted(1200, "row"), counted(0, "is", "are")
    ('1 row', '1,200 rows', '0 are')
    >>> counted(1, "entry"), counted(2, "entry"), counted(2, "key")
    ('1 entry', '2 entries', '2 keys')
    """
    if number == 1:
        return f"1 {one}"
    return f"{number:,} {many or (one[:-1] + 'ies' if one.endswith('ry') else one + 's')}"


def listed(words: Sequence[str]) -> str:
    """Return the words as part of a sentence.

    >>> listed(["pulls", "rebalances", "offsets"])
    'pulls, rebalances and offsets'
    """
    return " and ".join(filter(None, [", ".join(words[:-1]), words[-1]])) if words else ""
