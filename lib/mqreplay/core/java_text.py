"""Java's definition of blank text, which differs from Python's isspace."""

from __future__ import annotations

import unicodedata

_NO_BREAK = "\u00a0\u2007\u202f"
_CONTROL = "\t\n\x0b\x0c\r\x1c\x1d\x1e\x1f"


def is_blank(s: str | None) -> bool:
    """Return whether s is None, empty or only Character.isWhitespace, as in UtilAll#isBlank.

    A no-break space is not white space to Java.

    >>> is_blank(None), is_blank(" \\t"), is_blank("\\u00a0")
    (True, True, False)
    """
    return s is None or all(_is_whitespace(char) for char in s)


def _is_whitespace(char: str) -> bool:
    return char in _CONTROL or (unicodedata.category(char) in ("Zs", "Zl", "Zp") and char not in _NO_BREAK)
