"""Only requests that read can be made, and only these can be encoded."""

from __future__ import annotations

import dataclasses
import json

import pytest

from mqreplay.recorder.network.polls import POLLS
from mqreplay.recorder.network.schedule import Target
from mqreplay.recorder.remoting.frames import encode_request
from mqreplay.recorder.remoting.requests import FIELD_NAMES, ReadCode, Request, queue_request
from mqreplay.words.errors import DecodeError

READ_ONLY = {21, 26, 28, 30, 31, 38, 43, 45, 105, 106, 201, 202, 203, 206, 208, 307, 319, 402, 907}
TARGET = Target("", "h:1", ("b", 0), "subject", "client")
MADE = {int(poll.code): poll.request(TARGET) for poll in POLLS.values()} | {
    int(code): queue_request(code, "t", 3) for code in (ReadCode.GET_MAX_OFFSET, ReadCode.GET_MIN_OFFSET)
}


def header(frame: bytes) -> dict:
    """The header of a frame that has nothing but a header."""
    length = int.from_bytes(frame[5:8], "big")
    assert int.from_bytes(frame[:4], "big") == length + 4 == len(frame) - 4, "no body"
    return json.loads(frame[8:])


def test_only_codes_that_read_can_be_sent():
    sent, refused = set(), 0
    for code in range(10_001):
        try:
            sent.add(header(encode_request(Request(code), 1, None))["code"])
        except ValueError:
            refused += 1
    assert sent == READ_ONLY
    assert refused == 10_001 - len(READ_ONLY)


def test_the_encoder_refuses_a_request_that_was_forced():
    for code in range(10_001):
        if code not in READ_ONLY:
            request = Request(ReadCode.GET_ALL_TOPIC_CONFIG)
            object.__setattr__(request, "code", code)
            with pytest.raises(ValueError, match="is not a valid ReadCode"):
                encode_request(request, 1, None)


def test_a_request_cannot_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        MADE[43].code = 34  # type: ignore[misc]
    with pytest.raises(ValueError, match="is not a valid ReadCode"):
        dataclasses.replace(MADE[43], code=34)


def test_each_code_is_polled():
    assert MADE.keys() == READ_ONLY == {int(code) for code in ReadCode}
    assert all(request.code == code for code, request in MADE.items())
    assert FIELD_NAMES.keys() == {request.code for request in MADE.values() if request.fields}


def test_a_frame_says_which_code_and_fields():
    asked = TARGET._replace(subject="支付", client_id="10.0.0.7@1")
    sent_header = header(encode_request(POLLS["running_info"].request(asked), 7, None))
    assert sent_header == {
        "code": 307,
        "language": "PYTHON",
        "version": 407,
        "opaque": 7,
        "flag": 0,
        "serializeTypeCurrentRPC": "JSON",
        "extFields": {"consumerGroup": "支付", "clientId": "10.0.0.7@1", "jstackEnable": "false"},
    }


def test_fields_are_those_of_the_code():
    assert dict(MADE[30].fields) == dict(MADE[31].fields) == {"topic": "t", "queueId": "3"}
    assert MADE[208].fields == (("consumerGroup", "subject"),)
    assert MADE[105].fields == (("topic", "subject"), ("acceptStandardJsonOnly", "true"))
    with pytest.raises(ValueError, match="has no fields"):
        Request(ReadCode.GET_ALL_CONSUMER_OFFSET, (("topic", "t"),))
    with pytest.raises(ValueError, match="has no fields"):
        Request(ReadCode.GET_TOPIC_STATS_INFO, (("topic", "t"), ("topic", "u")))


@pytest.mark.parametrize("name", ["", "x" * 4097, "\ud800"])
def test_names_that_no_broker_has_are_our_error(name):
    with pytest.raises(DecodeError):
        Request(ReadCode.GET_TOPIC_STATS_INFO, (("topic", name),))


@pytest.mark.parametrize("queue_id", [-1, 2**31])
def test_a_queue_id_is_an_int_of_java(queue_id):
    with pytest.raises(DecodeError, match="a queue id is 0 to 2147483647"):
        queue_request(ReadCode.GET_MIN_OFFSET, "t", queue_id)
