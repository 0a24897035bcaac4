"""Make names from a recording safe to print in a terminal, a log, JSON and CSV.

Names of topics, groups, clients and files come from anywhere. Printed as they are, they can move the cursor, write to
the clipboard, reorder a line, or imitate a line of mqreplay.
"""

from __future__ import annotations

import datetime as dt
import json
import re
from collections.abc import Callable
from typing import Any

SHORT_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
# What follows the scheme of a URI up to "@": KEY:SECRET, where a secret may contain "/", also without "//"; or a token.
KEY_AND_SECRET = re.compile(r"(://[^/\s:@'\"]*:)(?!\d+/)[^\s'\"]*@")
WITHOUT_SLASHES = re.compile(r"(\b[a-z][a-z\d+.\-]*:(?!//)[\w.+%\-]*:)[^\s'\"]+@", re.IGNORECASE)
TOKEN = re.compile(r"((?<![a-z\d+.\-])(?!abfss?:|wasbs?:)[a-z][a-z\d+.\-]*://)[^/\s:@'\"]+@", re.IGNORECASE)
FRAGMENT = re.compile(r"(://[^\s'\"#]*#)[^\s'\"]+")
SECRET_PARAMETER = re.compile(
    r"([?&][\w.\-]*(?:password|passwd|secret|token|credential|signature|sig|key)[\w.\-]*=)[^&\s'\"]+", re.IGNORECASE
)
# A spreadsheet runs a cell that begins with one of these; the last four are their full-width forms.
FORMULA = ("=", "+", "-", "@", "＝", "＋", "－", "＠")


def printable(text: object) -> str:
    r"""Return ``text`` with each invisible character as an escape, as Python writes it.

    These are control characters (C0, DEL, C1), line and paragraph separators, everything that changes the direction of
    text or has no width, spaces other than the plain one, lone surrogates, and characters without a meaning.
    A backslash stays as it is: the result is for reading, not for parsing.

    >>> print(printable("a\x1b[31m\n"), printable("pay\u202egro"), printable("\U000e0041"), printable("日本 é"))
    a\x1b[31m\n pay\u202egro \U000e0041 日本 é
    """
    plain = str(text)
    return plain if plain.isprintable() else "".join(c if c.isprintable() else escape_of(c) for c in plain)


def without_secrets(text: str) -> str:
    """Return a text whose URIs have no passwords, keys and tokens. A container of abfss://CONTAINER@ACCOUNT is none.

    >>> without_secrets("s3://AKIA:ab/c@bucket/x is refused; https://t0ken@host/?sig=ab&x=1 abfss://night@me/x")
    's3://AKIA:***@bucket/x is refused; https://***@host/?sig=***&x=1 abfss://night@me/x'
    """
    if ":" not in text:
        return text
    for secret in (KEY_AND_SECRET, WITHOUT_SLASHES, TOKEN):
        text = secret.sub(r"\1***@", text)
    return FRAGMENT.sub(r"\1***", SECRET_PARAMETER.sub(r"\1***", text))


def scheme_alone(address: str) -> str:
    """Return the scheme of a channel's address alone: any part that follows may be a secret.

    >>> scheme_alone("slack://a/b/c"), scheme_alone("nonsense")
    ('slack://...', 'without ://')
    """
    scheme, mark, _ = address.partition("://")
    return f"{scheme}://..." if mark else "without ://"


def escape_of(character: str) -> str:
    r"""Return the escape of one character.

    >>> print(*map(escape_of, "\x07\n\x9b\u2028"))
    \x07 \n \x9b \u2028
    """
    code = ord(character)
    return SHORT_ESCAPES.get(character) or (
        f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
    )


def plain_value(value: object) -> str:
    """Return a value that JSON has no type for as text: instants in UTC to the millisecond, bytes as UTF-8.

    >>> plain_value(dt.datetime(2026, 11, 21, 2, 51, 30)), plain_value(dt.date(2026, 11, 21)), plain_value(b"a")
    ('2026-11-21T02:51:30.000Z', '2026-11-21', 'a')
    """
    if isinstance(value, dt.datetime):
        return value.replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


def json_text(value: Any, indent: int | None = None, default: Callable[[Any], Any] | None = None) -> str:
    r"""Return JSON whose text a terminal can show: what ``printable`` escapes is escaped, as JSON writes it.

    Any parser returns the exact value. Other characters stay readable.

    >>> print(json_text({"a": "\x1b\x9b\u202eé\n"}))
    {"a": "\u001b\u009b\u202eé\n"}
    """
    text = json.dumps(value, ensure_ascii=False, indent=indent, default=default)
    # Within a string JSON has no line feed, so each one is a line break of the indented form.
    if text.replace("\n", "").isprintable():
        return text
    return "".join(
        c if c.isprintable() or c == "\n" else json.dumps(c)[1:-1] if c != "\x7f" else "\\u007f" for c in text
    )


def csv_text(text: str) -> str:
    r"""Return the text of a CSV cell: printable, and a leading apostrophe where a spreadsheet would see a formula.

    >>> print(csv_text("=1+1"), csv_text("-5"), csv_text("a=b"), csv_text("\t=1"))
    '=1+1 '-5 a=b \t=1
    """
    shown = printable(text)
    return f"'{shown}" if shown.startswith(FORMULA) else shown
