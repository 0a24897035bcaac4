"""The functions of the catalogue that a text names."""

from __future__ import annotations

import re

from mqreplay.bind.functions import FUNCTIONS

WORD = re.compile(r"\w+")


def functions_in(text: str) -> list[str]:
    """Return the names of the catalogue that occur in a text as words.

    >>> functions_in("SELECT Memory_Threshold(1, 2).value")
    ['memory_threshold']
    """
    words = {word.lower() for word in WORD.findall(text)}
    return [name for name in FUNCTIONS if name in words]
