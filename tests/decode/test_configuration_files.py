"""topics, subscription groups, delay offsets, a client's offsets, brokers.json: real ones, and broken."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqreplay.decode.brokers import decode_brokers, split_broker_key
from mqreplay.decode.client_offsets import ClientOffset, decode_client_offsets
from mqreplay.decode.delay_offset import decode_delay_offset
from mqreplay.decode.message_request_mode import MessageRequestMode, decode_message_request_mode
from mqreplay.decode.pop_order import PopOrder, decode_pop_order
from mqreplay.decode.subscription_group import decode_subscription_group
from mqreplay.decode.topics import TopicConfig, decode_topics
from mqreplay.words.errors import DecodeError

DATA = Path(__file__).parent / "data"
DECODERS: dict[str, Callable[[bytes], object]] = {
    "topics-5.3.3.json": decode_topics,
    "subscriptionGroup-5.3.3.json": decode_subscription_group,
    "delayOffset-4.9.7.json": decode_delay_offset,
    "messageRequestMode-5.3.3.json": decode_message_request_mode,
    "consumerOrderInfo-5.3.3.json": decode_pop_order,
    "notice-group.offsets.json": decode_client_offsets,
    "brokers-5.3.3.json": decode_brokers,
}


def test_message_request_modes() -> None:
    rows = decode_message_request_mode((DATA / "messageRequestMode-5.3.3.json").read_bytes())
    assert MessageRequestMode("t-small", "r-small", "POP", 0) in rows
    assert len(rows) == 3


def test_pop_orders() -> None:
    at = 1795471744763
    assert decode_pop_order((DATA / "consumerOrderInfo-5.3.3.json").read_bytes()) == [
        PopOrder(
            *("orders", "pay", 0, "a1b2", at, 30000, (17, 1, 3), ((17, at + 10000),), ((17, 1), (18, 2)), at, 0b10)
        ),
        PopOrder("orders", "pay", 3, None, at, 30000, (5,), None, None, at, 1),
    ]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ('{"tables":{}}', "foreign"),
        ('{"table":{"t":{0:{}}}}', "bad_key"),
        ('{"table":{"t@g":{2147483648:{}}}}', "bad_number"),
        ('{"table":{"t@g":{0:{"o":7}}}}', "wrong_type"),
        ('{"table":{"t@g":{0:{"o":["7"]}}}}', "wrong_type"),
        ('{"table":{"t@g":{0:{"oc":{5:2147483648}}}}}', "bad_number"),
    ],
)
def test_pop_orders_that_no_broker_writes(text: str, code: str) -> None:
    with pytest.raises(DecodeError) as refused:
        decode_pop_order(text.encode())
    assert refused.value.code == code


def test_topics() -> None:
    got = decode_topics((DATA / "topics-4.9.7.json").read_bytes())
    assert got.data_version == (31, 1795229346683)
    rows = {row.topic_name: row for row in got.rows}
    assert rows["grow-topic"] == TopicConfig("grow-topic", 2, 2, 6, 0, False, "SINGLE_TAG")
    assert rows["DefaultCluster"].perm == 7
    assert {row.topic_name for row in decode_topics((DATA / "topics-5.3.3.json").read_bytes()).rows} >= {
        "meter-alerts",
        "%RETRY%alert-desk",
    }


def test_subscription_groups() -> None:
    for version, group in (("4.9.7", "order-group"), ("5.3.3", "meter-billing")):
        got = decode_subscription_group((DATA / f"subscriptionGroup-{version}.json").read_bytes())
        rows = {row.group_name: row for row in got.rows}
        assert rows[group] == (group, True, True, True, 1, 16, 0, 1, True)


def test_delay_offsets() -> None:
    got = decode_delay_offset((DATA / "delayOffset-4.9.7.json").read_bytes())
    assert [tuple(row) for row in got.rows] == [(3, 3), (4, 3)]
    empty = decode_delay_offset((DATA / "delayOffset-5.3.3.json").read_bytes())
    assert (empty.rows, empty.data_version) == ([], (0, 1795229255716))


def test_client_offsets() -> None:
    assert decode_client_offsets((DATA / "notice-group.offsets.json").read_bytes()) == [
        ClientOffset("notice-topic", "broker-a", 1, 175),
        ClientOffset("notice-topic", "broker-a", 0, 174),
        ClientOffset("notice-topic", "broker-b", 0, 207),
    ]
    boxed = b'{"offsetTable":{{"brokerName":"b","queueId":0,"topic":"t"}:{"value":3}}}'
    assert decode_client_offsets(boxed) == [ClientOffset("t", "b", 0, 3)]


def test_brokers() -> None:
    got = decode_brokers((DATA / "brokers-5.3.3.json").read_bytes())
    assert got[:3] == ("grid-cluster", "5.3.3", 25276502016)
    assert got.name_servers == ["127.0.0.1:29876", "127.0.0.1:29877"]
    south = got.brokers[3]
    assert south[:9] == ("rmq-south-1", "rmq-south", 1, "127.0.0.1:30941", "SLAVE", False, 11, 1, False)
    assert south[9:11] == ("5.3.3", 25276502016)
    assert south.properties["listenPort"] == "30941"


def test_a_cluster_has_a_name_of_at_most_255_characters() -> None:
    assert decode_brokers(b'{"cluster":"%s","brokers":{}}' % ("é" * 255).encode()).cluster == "é" * 255
    with pytest.raises(DecodeError, match="cluster should be a name of at most 255 characters") as refused:
        decode_brokers(b'{"cluster":"%s","brokers":{}}' % (b"c" * 400_000))
    assert len(str(refused.value)) < 200


def test_a_brokers_own_memory_and_version_go_first() -> None:
    got = decode_brokers(
        b'{"rocketmq_version":"4.9.7","physical_memory_bytes":1,"brokers":{"a-b-2":{"physical_memory_bytes":8,'
        b'"rocketmq_version":"5.3.3","properties":{"slaveReadEnable":true,"brokerId":"-1"}},"c-0":{}}}'
    )
    assert [(b.broker_name, b.broker_id, b.rocketmq_version, b.physical_memory_bytes) for b in got.brokers] == [
        ("a-b", 2, "5.3.3", 8),
        ("c", 0, "4.9.7", 1),
    ]
    assert [(b.role, b.slave_read_enable) for b in got.brokers] == [("SLAVE", True), ("ASYNC_MASTER", False)]


@pytest.mark.parametrize("key", ["broker", "-1", "broker-", "broker-x", "broker-٣", ""])
def test_a_broker_key_without_an_id_is_refused(key: str) -> None:
    with pytest.raises(DecodeError) as caught:
        split_broker_key(key)
    assert caught.value.code == "bad_key"


@pytest.mark.parametrize(
    ("decode", "text", "code"),
    [
        (decode_topics, '{"offsetTable":{}}', "foreign"),
        (decode_topics, "[]", "foreign"),
        (decode_topics, '{"topicConfigTable":[]}', "wrong_type"),
        (decode_topics, '{"topicConfigTable":{"t":5}}', "wrong_type"),
        (decode_topics, '{"topicConfigTable":{5:{}}}', "bad_key"),
        (decode_topics, '{"topicConfigTable":{"t":{"perm":"6"}}}', "wrong_type"),
        (decode_topics, '{"topicConfigTable":{"t":{"perm":true}}}', "wrong_type"),
        (decode_topics, '{"topicConfigTable":{"t":{"readQueueNums":-1}}}', "bad_number"),
        (decode_topics, '{"topicConfigTable":{"t":{"order":1}}}', "wrong_type"),
        (decode_topics, '{"topicConfigTable":{"t":{"topicFilterType":1}}}', "wrong_type"),
        (decode_subscription_group, '{"topicConfigTable":{}}', "foreign"),
        (decode_subscription_group, '{"subscriptionGroupTable":{5:{}}}', "bad_key"),
        (decode_subscription_group, '{"subscriptionGroupTable":{"g":{"brokerId":-1}}}', "bad_number"),
        (decode_delay_offset, "{}", "foreign"),
        (decode_delay_offset, '{"offsetTable":{"x":1}}', "wrong_type"),
        (decode_delay_offset, '{"offsetTable":{-1:1}}', "bad_number"),
        (decode_delay_offset, '{"offsetTable":{3:1,"3":2}}', "duplicate_key"),
        (decode_delay_offset, '{"offsetTable":{3:"1"}}', "wrong_type"),
        (decode_client_offsets, "{}", "foreign"),
        (decode_client_offsets, '{"offsetTable":{"t":1}}', "bad_key"),
        (decode_client_offsets, '{"offsetTable":{{"topic":"t"}:1}}', "missing_field"),
        (
            decode_client_offsets,
            '{"offsetTable":{{"topic":"t","brokerName":"b","queueId":-1}:1}}',
            "bad_number",
        ),
        (decode_client_offsets, '{"offsetTable":{{"topic":"t","brokerName":5,"queueId":1}:1}}', "wrong_type"),
        (
            decode_client_offsets,
            '{"offsetTable":{{"topic":"t","brokerName":"b","queueId":"1"}:1}}',
            "wrong_type",
        ),
        (
            decode_client_offsets,
            '{"offsetTable":{{"topic":"t","brokerName":"b","queueId":1}:"1"}}',
            "wrong_type",
        ),
        (
            decode_client_offsets,
            '{"offsetTable":{{"topic":"t","brokerName":"b","queueId":1}:1,'
            '{"brokerName":"b","topic":"t","queueId":1}:1}}',
            "duplicate_key",
        ),
        (decode_brokers, '{"cluster":"c"}', "foreign"),
        (decode_brokers, '{"brokers":{"nameless":{}}}', "bad_key"),
        (decode_brokers, '{"brokers":{1:{}}}', "bad_key"),
        (decode_brokers, '{"name_servers":"h:1","brokers":{}}', "wrong_type"),
        (decode_brokers, '{"cluster":"%s","brokers":{}}' % ("c" * 256), "wrong_type"),
        (decode_brokers, '{"physical_memory_bytes":-1,"brokers":{}}', "bad_number"),
        (
            decode_brokers,
            '{"brokers":{"b-0":{"properties":{"brokerId":"x","brokerName":"b"}}}}',
            "wrong_type",
        ),
        (
            decode_brokers,
            '{"brokers":{"b-0":{"properties":{"accessMessageInMemoryMaxRatio":"40%"}}}}',
            "wrong_type",
        ),
        (decode_brokers, '{"brokers":{"b-0":{"properties":{"x":[]}}}}', "wrong_type"),
    ],
)
def test_what_is_wrong_is_named(decode: Callable[[bytes], object], text: str, code: str) -> None:
    with pytest.raises(DecodeError) as caught:
        decode(text.encode())
    assert caught.value.code == code


@pytest.mark.parametrize("name", DECODERS)
def test_a_torn_file_is_refused(name: str) -> None:
    whole = (DATA / name).read_bytes().rstrip()
    for end in range(0, len(whole), 7):
        with pytest.raises(DecodeError) as caught:
            DECODERS[name](whole[:end])
        assert caught.value.code == ("torn" if end else "empty")


@given(st.sampled_from(list(DECODERS)), st.data())
def test_flipped_bytes_raise_nothing_but_our_error(name: str, data: st.DataObject) -> None:
    damaged = bytearray((DATA / name).read_bytes())
    damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    with suppress(DecodeError):
        DECODERS[name](bytes(damaged))
