"""Quote values for SQL, so that no name in a recording can end a string."""

from __future__ import annotations

import re

from mqreplay.errors import InputError

CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


def check_text(*values: str | None) -> None:
    """Raise InputError for a value that is not Unicode text, such as an argument that is not UTF-8."""
    for value in values:
        try:
            (value or "").encode()
        except UnicodeEncodeError:
            raise InputError(f"{value!r} is not Unicode text (UTF-8), and no table can hold it") from None


def quoted(value: str) -> str:
    """Return ``value`` as a string literal of Spark SQL. Raises InputError for a value that Spark cannot hold.

    Use it only for DDL, which has no parameters. The session must not replace ${...} (session.MEANING).

    >>> quoted("it's")
    "'it\\\\'s'"
    >>> print(quoted("a\\nb"))
    'a\\u000Ab'
    """
    check_text(value)
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    # A control character would get into Delta's history and into printed queries.
    return "'" + CONTROL.sub(lambda found: f"\\u{ord(found[0]):04X}", escaped) + "'"
