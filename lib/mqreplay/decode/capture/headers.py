"""The headers of remoting commands: JSON, or RocketMQ's own. Source: RemotingCommand#decode, RocketMQSerializable."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from mqreplay.core.java import INT_MAX, INT_MIN
from mqreplay.decode.jsonl import read_object
from mqreplay.words.errors import DecodeError

JSON, ROCKETMQ = 0, 1  # SerializeType
# LanguageCode, in order of its numbers.
LANGUAGES: Final = (
    *("JAVA", "CPP", "DOTNET", "PYTHON", "DELPHI", "ERLANG", "RUBY", "OTHER", "HTTP", "GO", "PHP", "OMS", "RUST"),
    "NODE_JS",
)
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
    fields = read_object(data)
    code, opaque, flag = (fields.get(name, 0) for name in ("code", "opaque", "flag"))
    ext, remark = fields.get("extFields") or {}, fields.get("remark")
    numbers = all(type(n) is int and INT_MIN <= n <= INT_MAX for n in (code, opaque, flag))
    texts = isinstance(ext, dict) and all(isinstance(value, str) for value in ext.values())
    if not (numbers and texts and (remark is None or isinstance(remark, str))):
        raise DecodeError("wrong_type", "not a header of a remoting command")
    language = fields.get("language")
    return Header(code, opaque, flag, remark, ext, language if isinstance(language, str) else None)


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
