"""The encoding of text that people and shells saved: UTF-8 with or without a byte order mark, UTF-16, GB18030.

RocketMQ writes UTF-8 without a mark. Windows PowerShell's > writes UTF-16, its editors add a mark, and a JVM on a
Chinese Windows writes logs in GBK, of which GB18030 is the superset.
"""

from __future__ import annotations

import codecs
from typing import Final, NamedTuple

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
