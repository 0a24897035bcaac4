"""Decode bytes to text, with errors that give the byte.

RocketMQ writes UTF-8 without a byte order mark. An editor may have saved the file with one: fastjson passes over it
(JSONScanner and JSONReaderUTF16 skip a first U+FEFF), so a broker reads such a file, and so does mqreplay. Other
content (empty, zero bytes, another encoding, half a character at the end) is an error with a code.

People and shells saved other texts: Windows PowerShell's > writes UTF-16, its editors add a mark, and a JVM on a
Chinese Windows writes logs in GBK, of which GB18030 is the superset.
"""

from __future__ import annotations

import codecs
import re
from typing import Final, NamedTuple, NoReturn

from mqreplay.words.errors import DecodeError

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
UTF_8: Final = "UTF-8"
_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8", "UTF-8 with a byte order mark"),
    (codecs.BOM_UTF16_LE, "utf-16-le", "UTF-16"),
    (codecs.BOM_UTF16_BE, "utf-16-be", "UTF-16"),
)
_BLANK_UTF_16: Final = ((1, "utf-16-le"), (0, "utf-16-be"))
_LOOKED_AT: Final = 512


class Encoding(NamedTuple):
    """An encoding: Python's name of it, its name for users, and the number of bytes of its byte order mark."""

    codec: str
    name: str
    mark_bytes: int


def encoding_of(head: bytes) -> Encoding:
    """Return the encoding that the first bytes of a text show; UTF-8 where they show no other.

    >>> encoding_of("#Topic".encode("utf-16")).name, encoding_of("#Topic".encode("utf-16-le")).codec
    ('UTF-16', 'utf-16-le')
    >>> encoding_of(bytes(16)).name
    'UTF-8'
    """
    for mark, codec, name in _MARKS:
        if head.startswith(mark):
            return Encoding(codec, name, len(mark))
    head = head[:_LOOKED_AT]
    pairs = len(head) // 2
    for place, codec in _BLANK_UTF_16:
        # Latin text in UTF-16 has a zero byte in each pair, always at the same place.
        zeros = head[place : 2 * pairs : 2].count(0)
        others = head[1 - place : 2 * pairs : 2].count(0)
        if pairs >= 2 and zeros >= 0.9 * pairs and not others:
            return Encoding(codec, "UTF-16", 0)
    return Encoding("utf-8", UTF_8, 0)


def text_of_bytes(data: bytes) -> tuple[str, str]:
    """Return a text (bytes) without its byte order mark, and the name of its encoding. Damaged bytes become U+FFFD.

    >>> text_of_bytes("队列 1".encode("gbk"))
    ('队列 1', 'GBK')
    """
    encoding = encoding_of(data)
    body = data[encoding.mark_bytes :]
    if encoding.codec != "utf-8":
        return body.decode(encoding.codec, "replace"), encoding.name
    try:
        return body.decode("utf-8"), encoding.name
    except UnicodeDecodeError:
        pass
    try:
        return body.decode("gb18030"), "GBK"
    except UnicodeDecodeError:
        return body.decode("utf-8", "replace"), encoding.name


def text_of(data: bytes) -> str:
    """Return ``data`` (bytes) as text if it is complete UTF-8 without zero bytes. A byte order mark stays in it.

    Raises:
        DecodeError: empty, too_large, utf_16, nul_bytes, not_utf8, or torn (cut inside a character).

    >>> text_of(bytes([123, 0, 0]))
    Traceback (most recent call last):
    mqreplay.words.errors.DecodeError: nul_bytes: zero bytes, as a crash leaves them; take the .bak (byte 1)
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
    mqreplay.words.errors.DecodeError: too_large: more than 250000 objects and lists, 500000 names or 1000000 items
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
    mqreplay.words.errors.DecodeError: bad_key: no (byte 2)
    """
    raise DecodeError(code, detail, len(text[:at].encode("utf-8", "surrogatepass")))


def expected(what: str, text: str, at: int) -> NoReturn:
    """Raise ``torn`` if ``text`` ends at ``at`` (characters), else ``bad_syntax``; ``what`` should be there.

    >>> expected("a key", '{"a":1', 6)
    Traceback (most recent call last):
    mqreplay.words.errors.DecodeError: torn: cut short where a key should follow; take the .bak (byte 6)
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
