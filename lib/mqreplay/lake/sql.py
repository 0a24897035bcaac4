"""Values quoted into SQL, so that no name in a recording can end a string."""

from __future__ import annotations

import re

from mqreplay.errors import InputError

CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


def check_text(*values: str | None) -> None:
    """Raise InputError for a value that is no Unicode text: as Python has arguments that are not UTF-8."""
    for value in values:
        try:
            (value or "").encode()
        except UnicodeEncodeError:
            raise InputError(f"{value!r} is not Unicode text (UTF-8), and no table can hold it") from None


def quoted(value: str) -> str:
    """Return ``value`` as a string literal of Spark SQL. Raises InputError for what no string of Spark can hold.

    It is for text that takes no bound argument: DDL. The session must not replace ${...} (session.MEANING).

    >>> quoted("it's")
    "'it\\\\'s'"
    >>> print(quoted("a\\nb"))
    'a\\u000Ab'
    """
    check_text(value)
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    # A control character would reach Delta's history, and everyone who prints a query.
    return "'" + CONTROL.sub(lambda found: f"\\u{ord(found[0]):04X}", escaped) + "'"
