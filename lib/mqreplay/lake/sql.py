"""Quote values for SQL, so that no name in a recording can end a string."""

from __future__ import annotations

import re

from mqreplay.words.errors import InputError

# Characters that every client keeps unchanged: spark-sql and beeline replace ${...} and split at semicolons.
PLAIN = re.compile(r"[A-Za-z0-9/._~+@=,: -]")


def check_text(*values: str | None) -> None:
    """Raise InputError for a value that is not Unicode text, such as an argument that is not UTF-8."""
    for value in values:
        try:
            (value or "").encode()
        except UnicodeEncodeError:
            raise InputError(f"{value!r} is not Unicode text (UTF-8), and no table can hold it") from None


def literal(text: str) -> str:
    r"""Return ``text`` as a string literal of Spark SQL that no client changes.

    Raises InputError if Spark cannot hold it. Use it only for DDL and predicates, which have no parameters.

    >>> print(literal("/data/night"), literal("/it's/${HOME};"))
    '/data/night' '/it\u0027s/\u0024\u007BHOME\u007D\u003B'
    """
    check_text(text)
    return "'" + "".join(c if PLAIN.match(c) else _escaped(c) for c in text) + "'"


def _escaped(character: str) -> str:
    code = ord(character)
    return f"\\u{code:04X}" if code < 0x10000 else f"\\U{code:08X}"
