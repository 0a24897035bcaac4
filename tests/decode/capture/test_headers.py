"""Headers in JSON: the quick reader gives what the strict one does, or leaves the header to it."""

from __future__ import annotations

import random
from typing import Any

import pytest

from each_case import for_each
from mqreplay.decode.capture.headers import JSON, _plain_object, read_header
from mqreplay.decode.jsonl import read_object
from mqreplay.words.errors import DecodeError

PULL = (
    b'{"code":11,"extFields":{"topic":"t","queueId":"1","a":"x\\u0001y"},"flag":0,"language":"JAVA","opaque":7,'
    b'"serializeTypeCurrentRPC":"JSON","version":407}'
)
ANSWER = b'{"code":20,"flag":1,"language":"JAVA","opaque":7,"remark":"no\\nmessage","version":407}'
LEFT_TO_THE_STRICT = (
    b'{"code":1,"code":2}',
    b'{"code":1,"extFields":{"a":"b","a":"c"}}',
    b'{"code":1,"extFields":{"a":1,"a":"c"}}',
    b'{"code":1,"remark":"\\ud800"}',
    b'{"code":1,"remark":"\\"}","flag":1}',
    b'{"code":1,"remark":null}',
    b'{"code":NaN}',
    b'{"code":1,"other":{"code":{"code":"1"}}}',
    b'{"code":1,"other":[{"a":1,"a":2}]}',
    b'{"a":' * 5_000 + b"1" + b"}" * 5_000,
    b'{"code":1}{}',
    b'\xef\xbb\xbf{"code":1}',
    b'{"code":1,"remark":"\xff"}',
    b"[1]",
    b"",
)


@pytest.mark.parametrize("data", [PULL, ANSWER])
def test_what_rocketmq_writes_is_read_quickly(data: bytes) -> None:
    assert _plain_object(data) == read_object(data)


@for_each([(data,) for data in LEFT_TO_THE_STRICT])
def test_what_is_not_plain_is_left_to_the_strict_reader(data: bytes) -> None:
    assert _plain_object(data) is None


def test_however_a_header_is_damaged_both_readers_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    dice = random.Random(53)
    parts = (b'"', b"\\", b"{", b"}", b":", b",", b'"code":1,', b'"a":"b",', b"\\u", b"d8", b"1", b" ", b"[]", b"{}")
    for _ in range(5_000):
        damaged = bytearray(dice.choice((PULL, ANSWER)))
        for _ in range(dice.randrange(1, 4)):
            at = dice.randrange(len(damaged))
            damaged[at : at + dice.randrange(3)] = dice.choice(parts)
        with monkeypatch.context() as strict:
            strict.setattr("mqreplay.decode.capture.headers._plain_object", lambda _: None)
            expected = outcome(bytes(damaged))
        assert outcome(bytes(damaged)) == expected, damaged


def outcome(data: bytes) -> Any:
    try:
        return read_header(JSON, data)
    except DecodeError as error:
        return error.code
