"""Only requests that read can be made, and only these can be encoded."""

from __future__ import annotations

import dataclasses
import inspect
import json

import pytest

from mqreplay.errors import DecodeError
from mqreplay.record.remoting import requests
from mqreplay.record.remoting.frames import encode_request
from mqreplay.record.remoting.requests import FIELD_NAMES, ReadCode, Request

READ_ONLY = {21, 26, 28, 30, 31, 38, 43, 45, 105, 106, 201, 202, 203, 206, 208, 307, 319, 402, 907}
MADE = {
    21: requests.get_all_topic_config(),
    26: requests.get_broker_config(),
    319: requests.get_name_server_config(),
    28: requests.get_broker_runtime_info(),
    30: requests.get_max_offset("t", 3),
    31: requests.get_min_offset("t", 3),
    38: requests.get_consumer_list_by_group("g"),
    43: requests.get_all_consumer_offset(),
    45: requests.get_all_delay_offset(),
    105: requests.get_route_info_by_topic("t"),
    106: requests.get_broker_cluster_info(),
    201: requests.get_all_subscription_group(),
    202: requests.get_topic_stats_info("t"),
    203: requests.get_consumer_connection_list("g"),
    206: requests.get_all_topic_list(),
    208: requests.get_consume_stats("g"),
    307: requests.get_consumer_running_info("g", "c"),
    402: requests.get_all_message_request_mode(),
    907: requests.get_broker_ha_status(),
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


def test_each_code_has_one_function():
    functions = [
        function
        for name, function in inspect.getmembers(requests, inspect.isfunction)
        if name.startswith("get_") and function.__module__ == requests.__name__
    ]
    assert len(functions) == len(MADE) == len(READ_ONLY) == len(FIELD_NAMES)
    assert {int(request.code) for request in MADE.values()} == READ_ONLY
    assert all(request.code == code for code, request in MADE.items())


def test_a_frame_says_which_code_and_fields():
    sent_header = header(encode_request(requests.get_consumer_running_info("支付", "10.0.0.7@1"), 7, None))
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
    assert dict(requests.get_consume_stats("g", "t").fields) == {"consumerGroup": "g", "topic": "t"}
    assert MADE[208].fields == (("consumerGroup", "g"),)
    with pytest.raises(ValueError, match="has no fields"):
        Request(ReadCode.GET_ALL_CONSUMER_OFFSET, (("topic", "t"),))
    with pytest.raises(ValueError, match="has no fields"):
        Request(ReadCode.GET_TOPIC_STATS_INFO, (("topic", "t"), ("topic", "u")))


@pytest.mark.parametrize("name", ["", "x" * 4097, "\ud800"])
def test_names_that_no_broker_has_are_our_error(name):
    with pytest.raises(DecodeError):
        requests.get_topic_stats_info(name)


@pytest.mark.parametrize("queue_id", [-1, 2**31])
def test_a_queue_id_is_an_int_of_java(queue_id):
    with pytest.raises(DecodeError, match="a queue id is 0 to 2147483647"):
        requests.get_min_offset("t", queue_id)
