"""The headers of remoting commands: JSON, or RocketMQ's own. Source: RemotingCommand#decode, RocketMQSerializable."""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from mqreplay.core.java import INT_MAX, INT_MIN
from mqreplay.decode.jsonl import read_object
from mqreplay.words.errors import DecodeError

JSON, ROCKETMQ = 0, 1  # SerializeType
# LanguageCode, in order of its numbers.
LANGUAGES: Final = (
    *("JAVA", "CPP", "DOTNET", "PYTHON", "DELPHI", "ERLANG", "RUBY", "OTHER", "HTTP", "GO", "PHP", "OMS", "RUST"),
    "NODE_JS",
)
_DECODER: Final = json.JSONDecoder()
_LONGEST_PLAIN: Final = 65_536
_ESCAPES: Final = re.compile(rb'\\(?:"|u[dD])')  # of a quotation mark, of half a surrogate pair
_PLAIN: Final = frozenset({int, str, dict})
_TEXT: Final = frozenset({str})
LEAST_HEADER: Final = {JSON: len('{"code":0}'), ROCKETMQ: 21}


class Header(NamedTuple):
    """The fields of a header that are decoded."""

    code: int
    opaque: int
    flag: int
    remark: str | None
    ext: Mapping[str, str]
    language: str | None  # LanguageCode, by its name


def read_header(kind: int, data: bytes) -> Header:
    """Return the fields of a header of a SerializeType.

    Raises:
        DecodeError: it is not a header.

    >>> read_header(JSON, b'{"code":11,"opaque":7,"extFields":{"topic":"t"}}')
    Header(code=11, opaque=7, flag=0, remark=None, ext={'topic': 't'}, language=None)
    """
    return _READERS[kind](data)


def _of_json(data: bytes) -> Header:
    fields = _plain_object(data) or read_object(data)
    code, opaque, flag = fields.get("code", 0), fields.get("opaque", 0), fields.get("flag", 0)
    ext, remark, language = fields.get("extFields") or {}, fields.get("remark"), fields.get("language")
    numbers = type(code) is type(opaque) is type(flag) is int
    numbers = numbers and min(code, opaque, flag) >= INT_MIN and max(code, opaque, flag) <= INT_MAX
    texts = isinstance(ext, dict) and _TEXT.issuperset(map(type, ext.values()))
    if not (numbers and texts and (remark is None or isinstance(remark, str))):
        raise DecodeError("wrong_type", "not a header of a remoting command")
    return Header(code, opaque, flag, remark, ext, language if isinstance(language, str) else None)


def _plain_object(data: bytes) -> dict[str, Any] | None:
    """Return what `read_object` does, in half its time, if an object is as RocketMQ writes headers; else None.

    Unless quotation marks are escaped, they count the strings. If there are as many as the object has, no name is in it
    twice.
    """
    if len(data) > _LONGEST_PLAIN or _ESCAPES.search(data):
        return None
    try:
        text = data.decode("utf-8")
        fields, end = _DECODER.raw_decode(text)
    except (ValueError, RecursionError):
        return None
    if fields.__class__ is not dict or end != len(text):
        return None
    kinds = list(map(type, fields.values()))
    ext = fields.get("extFields", {})
    if not _PLAIN.issuperset(kinds) or ext.__class__ is not dict:
        return None
    strings = len(fields) + kinds.count(str) + 2 * len(ext)
    return fields if text.count('"') == 2 * strings else None


def _of_rocketmq(data: bytes) -> Header:
    """RocketMQSerializable#rocketMQProtocolDecode: code, language, version, opaque, flag, remark, fields."""
    try:
        code, language, _, opaque, flag = struct.unpack_from(">hbhii", data)
        remark, at = _text(data, 13, ">i")
        (size,) = struct.unpack_from(">i", data, at)
        at, end, ext = at + 4, at + 4 + size, dict[str, str]()
        while at < end:
            name, at = _text(data, at, ">h")
            value, at = _text(data, at, ">i")
            ext[name] = value
    except (struct.error, UnicodeDecodeError) as error:
        raise DecodeError("wrong_type", f"not a header of a remoting command: {error}") from None
    return Header(code, opaque, flag, remark or None, ext, dict(enumerate(LANGUAGES)).get(language))


def _text(data: bytes, at: int, size: str) -> tuple[str, int]:
    (length,) = struct.unpack_from(size, data, at)
    begin = at + struct.calcsize(size)
    end = begin + max(length, 0)
    if end > len(data):
        raise struct.error("a text is longer than the header")
    return data[begin:end].decode("utf-8"), end


_READERS: Final[Mapping[int, Callable[[bytes], Header]]] = {JSON: _of_json, ROCKETMQ: _of_rocketmq}


def numbers_of(ext: Mapping[str, str], names: Mapping[str, str]) -> dict[str, object]:
    """Return numbers of a header by our names; ``names`` maps RocketMQ's names to ours.

    A text that is not a number is kept: the decoder of the kind refuses it with a reason.

    >>> numbers_of({"queueId": "3", "offset": "x", "other": "1"}, {"queueId": "queue_id", "offset": "offset"})
    {'queue_id': 3, 'offset': 'x'}
    """
    return {ours: _number(ext[theirs]) for theirs, ours in names.items() if theirs in ext}


def _number(text: str) -> int | str:
    return int(text) if text.removeprefix("-").isdecimal() and len(text) <= 20 else text
