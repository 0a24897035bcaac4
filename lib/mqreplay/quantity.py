"""Numbers with their nouns, as a text shows them."""

from __future__ import annotations


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
