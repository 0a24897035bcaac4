"""Decode bytes to text, with errors that give the byte.

RocketMQ writes UTF-8 without a byte order mark. An editor may have saved the file with one: fastjson passes over it
(JSONScanner and JSONReaderUTF16 skip a first U+FEFF), so a broker reads such a file, and so does mqreplay. Other
content (empty, zero bytes, another encoding, half a character at the end) is an error with a code.
"""

from __future__ import annotations

import re
from typing import NoReturn

from mqreplay.decode.encodings import encoding_of
from mqreplay.errors import DecodeError

MARK = "\ufeff"
MARK_BYTES = MARK.encode()
MAX_BYTES = 256 * 1024 * 1024
# Advice for an incomplete file: the last complete one is beside it.
TAKE_BAK = "; take the .bak"

# Of a record or a body. Of a body of 16 MiB, the longest there is, a queue's offsets take about 130 bytes.
MOST_CONTAINERS = 250_000
MOST_COLONS = 500_000
MOST_COMMAS = 1_000_000

_HEAD = 1024  # bytes that show the encoding
_SPACE = re.compile(r"[ \t\r\n]*")


def text_of(data: bytes) -> str:
    """Return ``data`` (bytes) as text if it is complete UTF-8 without zero bytes. A byte order mark stays in it.

    Raises:
        DecodeError: empty, too_large, utf_16, nul_bytes, not_utf8, or torn (cut inside a character).

    >>> text_of(bytes([123, 0, 0]))
    Traceback (most recent call last):
    mqreplay.errors.DecodeError: nul_bytes: zero bytes, as a crash leaves them; take the .bak (byte 1)
    """
    if not data:
        raise DecodeError("empty", f"the file is empty{TAKE_BAK}", 0)
    if len(data) > MAX_BYTES:
        raise DecodeError("too_large", f"{len(data)} bytes, and at most {MAX_BYTES} are read", MAX_BYTES)
    if (encoding := encoding_of(data[:_HEAD])).codec != "utf-8":
        detail = f"it is {encoding.name}, as PowerShell's > and some editors save it; brokers read only UTF-8"
        raise DecodeError("utf_16", f"{detail}: copy the file itself, or convert it to UTF-8", 0)
    nul = data.find(0)
    if nul >= 0:
        raise DecodeError("nul_bytes", f"zero bytes, as a crash leaves them{TAKE_BAK}", nul)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        if error.reason == "unexpected end of data":
            raise DecodeError("torn", f"cut short inside a character{TAKE_BAK}", error.start) from None
        detail = f"byte 0x{data[error.start]:02x} is not UTF-8: the copy is damaged; take another"
        raise DecodeError("not_utf8", detail, error.start) from None


def refuse_many(text: str, commas: bool = True) -> None:
    """Raise ``too_large`` if JSON holds more than any record does; ``commas``: also for items of lists.

    An empty object of two bytes takes sixty in memory, so a limit of bytes is not enough.

    >>> refuse_many("{" * 250_001)
    Traceback (most recent call last):
    mqreplay.errors.DecodeError: too_large: more than 250000 objects and lists, 500000 names or 1000000 items
    """
    if (
        text.count("{") + text.count("[") > MOST_CONTAINERS
        or text.count(":") > MOST_COLONS
        or (commas and text.count(",") > MOST_COMMAS)
    ):
        detail = f"more than {MOST_CONTAINERS} objects and lists, {MOST_COLONS} names or {MOST_COMMAS} items"
        raise DecodeError("too_large", detail)


def fail(code: str, detail: str, text: str, at: int) -> NoReturn:
    """Raise `DecodeError` at the character ``at`` of ``text``, its offset turned into bytes.

    >>> fail("bad_key", "no", "é{", 1)
    Traceback (most recent call last):
    mqreplay.errors.DecodeError: bad_key: no (byte 2)
    """
    raise DecodeError(code, detail, len(text[:at].encode("utf-8", "surrogatepass")))


def expected(what: str, text: str, at: int) -> NoReturn:
    """Raise ``torn`` if ``text`` ends at ``at`` (characters), else ``bad_syntax``; ``what`` should be there.

    >>> expected("a key", '{"a":1', 6)
    Traceback (most recent call last):
    mqreplay.errors.DecodeError: torn: cut short where a key should follow; take the .bak (byte 6)
    """
    at = skip_space(text, at)
    if at >= len(text):
        fail("torn", f"cut short where {what} should follow{TAKE_BAK}", text, at)
    fail("bad_syntax", f"expected {what}, found {text[at]!r}", text, at)


def skip_space(text: str, at: int) -> int:
    """Return the first position from ``at`` (characters) that is not JSON white space, nor a byte order mark at 0.

    >>> skip_space("{ 1", 1), skip_space("\\ufeff {", 0)
    (2, 2)
    """
    if at == 0 and text.startswith(MARK):
        at = 1
    match = _SPACE.match(text, at)
    return match.end() if match else at


def refuse_trailing(text: str, end: int) -> None:
    """Raise ``trailing_data`` unless only white space follows ``end`` (characters).

    >>> refuse_trailing("{} ", 2)
    """
    end = skip_space(text, end)
    if end < len(text):
        detail = f"{text[end]!r} follows the end: the rest of an older, longer file{TAKE_BAK}"
        fail("trailing_data", detail, text, end)
