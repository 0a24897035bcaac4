"""Frames: real answers, both kinds of header, and bytes that no server should send.

data/ has frames as brokers and name servers of 4.9.7 and 5.3.3 sent them to this client.
"""

from __future__ import annotations

import contextlib
import json
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from decode.capture.wire import command, rocketmq_command
from mqreplay.recorder.remoting.frames import MAX_FRAME_BYTES, Answer, encode_request, read_frame, read_length
from mqreplay.recorder.remoting.requests import ReadCode, Request, queue_request
from mqreplay.words.errors import DecodeError
from reliability.fuzz_run import Target, fuzz

DATA = Path(__file__).parent / "data"
REAL = {path.stem: path.read_bytes() for path in sorted(DATA.glob("*.frame"))}
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


def read(frame: bytes):
    """The command of a whole frame."""
    assert read_length(frame[:4]) == len(frame) - 4
    return read_frame(frame[4:])


def fuzzed(data: bytes) -> None:
    """What a connection does with the bytes of a server."""
    while data:
        length = read_length(data[:4].ljust(4, b"\0"))
        received = read_frame(data[4 : 4 + length])
        assert isinstance(received.answer.denied, str | None)
        data = data[4 + length :]


TARGETS = [Target("remoting-frames", (command(0, 1, 1), rocketmq_command(0, 1, 1), *REAL.values()), fuzzed)]


@pytest.mark.parametrize(
    ("name", "code", "remark", "fields", "body"),
    [
        ("4.9.7-max-offset", 0, None, {"offset": "10"}, b""),
        ("5.3.3-min-offset-binary", 0, None, {"offset": "0"}, b""),
        ("4.9.7-delay-offset", 0, None, {}, b'{"offsetTable":{}}'),
        ("5.3.3-consumer-list-binary", 0, None, {}, b'{"consumerIdList":["127.0.0.1@i0"]}'),
        ("4.9.7-not-online", 206, "the consumer group[no_such] not online", {}, b""),
        ("5.3.3-not-online-binary", 206, "the consumer group[no_such] not online", {}, b""),
    ],
)
def test_real_answers(name, code, remark, fields, body):
    received = read(REAL[name])
    assert received.is_response
    assert received.answer == Answer(code, remark, fields, body)


def test_real_answers_with_a_body():
    offsets = read(REAL["4.9.7-offsets"]).answer.body
    assert b'"orders@g_CIRCLE":{0:10,1:10,2:10,3:10}' in offsets
    for version in ("4.9.7", "5.3.3"):
        info = read(REAL[f"{version}-running-info"]).answer
        assert (info.code, info.remark) == (0, "not set any response code"), "the remark says nothing"
        strategy = b"org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragely@"
        assert b'"allocateMessageQueueStrategy":"' + strategy in info.body


def test_a_real_answer_with_rocketmqs_own_header():
    """Servers with rocketmq.serialize.type=ROCKETMQ: 5.3.3 answers always so, 4.9.7 when its access control throws."""
    frame = REAL["4.9.7-denied-binary"]
    assert frame[4] == 1
    answer = read(frame).answer
    assert (answer.code, answer.denied) == (1, "Check signature failed for accessKey=rocketmq2")


def test_both_headers_say_the_same():
    ext = {"offset": "42", "topic": "orders"}
    for made in (command, rocketmq_command):
        received = read(made(17, 9, 1, ext, b"body"))
        assert (received.opaque, received.is_response) == (9, True)
        assert received.answer == Answer(17, None, ext, b"body")


def test_a_request_of_a_server_is_no_response():
    assert not read(command(40, 9, 0)).is_response
    assert not read(command(40, 9, 2)).is_response


@given(st.integers(0, 2**31 - 1), TEXT.filter(bool), st.integers(0, 2**31 - 1))
def test_what_is_encoded_is_read_again(opaque, topic, queue_id):
    received = read(encode_request(queue_request(ReadCode.GET_MAX_OFFSET, topic, queue_id), opaque, None))
    assert (received.opaque, received.is_response) == (opaque, False)
    assert received.answer == Answer(30, None, {"topic": topic, "queueId": str(queue_id)}, b"")


@pytest.mark.parametrize("length", [0, 13, MAX_FRAME_BYTES + 1, 0xFFFFFFFF])
def test_lengths_that_no_frame_has(length):
    with pytest.raises(DecodeError, match="not RocketMQ's remoting protocol"):
        read_length(struct.pack(">I", length))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\0\0\0",
        struct.pack(">I", 10),
        struct.pack(">I", 9) + b'{"code":0}',
        struct.pack(">I", 2 << 24 | 10) + bytes(10),
    ],
)
def test_frames_that_are_cut_or_of_another_kind(data):
    with pytest.raises(DecodeError):
        read_frame(data)


@pytest.mark.parametrize(
    "header",
    [
        "[]",
        '{"code":"0"}',
        '{"code":0,"extFields":[1]}',
        '{"code":0,"extFields":{"a":1}}',
        '{"code":0,"remark":7}',
        "[" * 99_999,
    ],
)
def test_headers_that_are_wrong(header):
    data = header.encode().ljust(10)
    with pytest.raises(DecodeError):
        read_frame(struct.pack(">I", len(data)) + data)


@given(st.binary(max_size=200))
def test_any_bytes_give_our_own_error_or_an_answer(data):
    with contextlib.suppress(DecodeError):
        read_frame(data)


@given(st.dictionaries(TEXT, TEXT | st.integers() | st.none(), max_size=4), st.binary(max_size=30))
def test_any_header_gives_our_own_error_or_an_answer(fields, body):
    header = json.dumps({"code": 0, "flag": 1, "extFields": fields}).encode()
    try:
        received = read_frame(struct.pack(">I", len(header)) + header + body)
    except DecodeError:
        assert not all(isinstance(value, str) for value in fields.values())
    else:
        assert received.answer == Answer(0, None, fields, body)


def test_damaged_frames_give_our_own_errors():
    assert fuzz(TARGETS, inputs=3_000, seed=22).failures == []


@pytest.mark.long
def test_a_hundred_thousand_damaged_frames_give_our_own_errors():
    report = fuzz(TARGETS, inputs=100_000, seed=1)
    assert report.failures == []
    assert report.inputs == {"remoting-frames": 100_000}


def test_the_secret_is_in_no_frame_of_an_error():
    assert Answer(16, None, {}, b"").denied == "no permission"
    assert Answer(1, "no consumer for this group, g", {}, b"").denied is None
    assert b"orders" in encode_request(Request(ReadCode.GET_TOPIC_STATS_INFO, (("topic", "orders"),)), 1, None)
