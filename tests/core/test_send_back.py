"""Delay levels, retries and dead letters, from the consumer's failure to the topic that holds the message."""

from __future__ import annotations

import pytest

from mqreplay.core.delay_level import parse_delay_level, stored_delay_level
from mqreplay.core.java import is_blank
from mqreplay.core.java_numbers import parse_int, parse_long
from mqreplay.core.send_back import RetryGroup, SendBackRequest, StoredMessage, consumer_send_msg_back
from mqreplay.core.send_back_client import ConsumedMessage, check_reconsume_times, send_message_back
from mqreplay.core.version import at_least, version_key
from mqreplay.words.errors import IllegalArgument, NumberFormat

MESSAGE = StoredMessage("T", "ID", 0, {})


def test_a_message_that_always_fails_waits_longer_each_time_and_dies_after_sixteen_retries() -> None:
    levels = []
    for reconsume_times in range(17):
        message = MESSAGE._replace(reconsume_times=reconsume_times)
        stored = consumer_send_msg_back(SendBackRequest("g", 0, 0), RetryGroup(), message).stored
        assert stored is not None
        levels.append((stored.topic, stored.delay_time_level))
    assert levels[:16] == [("%RETRY%g", level) for level in range(3, 19)]
    assert levels[16] == ("%DLQ%g", 0)


def test_a_retry_keeps_the_first_topic_and_message_id() -> None:
    known = {"RETRY_TOPIC": "T", "ORIGIN_MESSAGE_ID": "FIRST"}
    message = StoredMessage("%RETRY%g", "SECOND", 1, known)
    stored = consumer_send_msg_back(SendBackRequest("g", 0, 0), RetryGroup(), message).stored
    assert stored is not None
    assert stored.properties == known | {"WAIT": "false", "DELAY": "4"}
    assert known == {"RETRY_TOPIC": "T", "ORIGIN_MESSAGE_ID": "FIRST"}


def test_the_remainder_of_the_random_number_picks_the_retry_queue() -> None:
    answer = consumer_send_msg_back(SendBackRequest("g", 0, 0), RetryGroup(4), MESSAGE, queue_id_random=7)
    assert answer.stored is not None
    assert answer.stored.queue_id == 3


def test_refusals() -> None:
    request = SendBackRequest("g", 7, 0)
    assert consumer_send_msg_back(request, None, MESSAGE, version="5.3.3").remark == (
        "subscription group not exist, g \nSee https://rocketmq.apache.org/docs/bestPractice/06FAQ for further details."
    )
    read_only = consumer_send_msg_back(request, RetryGroup(), MESSAGE, broker_permission=4, broker_ip1="10.0.0.1")
    assert read_only[:2] == (16, "the broker[10.0.0.1] sending message is forbidden")
    no_write = consumer_send_msg_back(request, RetryGroup(), MESSAGE, retry_topic_perm=4)
    assert no_write[:2] == (16, "the topic[%RETRY%g] sending message is forbidden")
    assert consumer_send_msg_back(request, RetryGroup(), None).remark == "look message by offset failed, 7"


def test_an_old_client_cannot_name_its_own_maximum() -> None:
    asked = SendBackRequest("g", 0, 0, max_reconsume_times=0, version=120)
    answer = consumer_send_msg_back(asked, RetryGroup(), MESSAGE)
    assert answer.stored is not None
    assert answer.stored.topic == "%RETRY%g"


def test_without_an_address_5_x_sends_to_the_retry_topic_at_once() -> None:
    message = ConsumedMessage("T", "ID", 0)
    old = send_message_back(message, 0, "b", None, "g")
    new = send_message_back(message, 0, "b", None, "g", version="5.3.3")
    assert old.sent_by_producer == new.sent_by_producer is not None
    assert old.sent_back_to_broker is not None
    assert new.sent_back_to_broker is None


def test_an_orderly_consumer_of_5_x_tells_one_retry_more() -> None:
    message = ConsumedMessage("T", "ID", 3, properties={"TRAN_MSG": "true"})
    sent_properties = [
        check_reconsume_times([message], "g", 3, version=version).sent_by_producer[0].properties
        for version in ("4.9.8", "5.3.3")
    ]
    assert [properties["RECONSUME_TIME"] for properties in sent_properties] == ["3", "4"]
    assert all("TRAN_MSG" not in properties for properties in sent_properties)


@pytest.mark.parametrize(
    ("text", "ok", "levels", "max_delay_level"),
    [
        ("1s 2d", True, {1: 1_000, 2: 172_800_000}, 2),
        ("s", False, {}, 1),
        (" 1s", False, {}, 0),
        ("  ", True, {}, 0),
        ("+3s", True, {1: 3_000}, 1),
        ("9223372036854775807s", True, {1: -1_000}, 1),
        ("1\U0001f600", False, {}, 1),
    ],
)
def test_delay_levels(text: str, ok: bool, levels: dict[int, int], max_delay_level: int) -> None:
    assert parse_delay_level(text) == (ok, levels, max_delay_level)


def test_a_level_past_the_last_is_stored_as_the_last() -> None:
    assert [stored_delay_level(level, 18) for level in (-1, 0, 1, 18, 19, 2**31 - 1)] == [0, 0, 1, 18, 18, 18]


@pytest.mark.parametrize("text", ["", "+", "-", "1.0", " 1", "1_0", "0x1", "2147483648", "\U0001d7d8"])
def test_what_java_does_not_take_for_an_int(text: str) -> None:
    with pytest.raises(NumberFormat):
        parse_int(text)


def test_numbers_at_the_edges() -> None:
    assert parse_int("-2147483648") == -(2**31)
    assert parse_long("9223372036854775807") == 2**63 - 1
    with pytest.raises(NumberFormat):
        parse_long("9223372036854775808")


def test_what_java_calls_blank() -> None:
    assert is_blank("\u3000\x1f")
    assert not is_blank("\x85")


def test_versions() -> None:
    assert version_key("V4_9_7") == (4, 9, 7)
    assert at_least("5.0.0-ALPHA", "5.0.0")
    with pytest.raises(IllegalArgument, match="not a RocketMQ version: 'newest'"):
        version_key("newest")


def test_an_address_that_is_not_known() -> None:
    message = ConsumedMessage("T", "ID", 0, store_host="h")
    back = send_message_back(message, 0, "b", None, "g")
    assert back.sent_back_to_broker is not None
    assert back.sent_back_to_broker.addr == ""
    assert back.sent_by_producer is not None
    assert send_message_back(message, 0, "b", None, "g", version="5.3.3").sent_back_to_broker is None
    known = send_message_back(message, 0, "b", "a", "g", version="5.3.3")
    assert known.sent_back_to_broker is not None
    assert (known.sent_back_to_broker.addr, known.sent_by_producer) == ("a", None)


def test_a_stored_message_without_tags_has_the_code_of_the_empty_text() -> None:
    stored = consumer_send_msg_back(SendBackRequest("g", 0, 0), RetryGroup(4), MESSAGE).stored
    assert stored is not None
    assert (stored.tags_code, stored.queue_id) == (0, 0)


@pytest.mark.parametrize(("perm", "allowed"), [(1, False), (2, True), (4, False), (5, False), (6, True)])
def test_writing_is_one_bit(perm: int, allowed: bool) -> None:
    request = SendBackRequest("g", 0, 0)
    for answer in (
        consumer_send_msg_back(request, RetryGroup(), MESSAGE, broker_permission=perm, broker_ip1="b"),
        consumer_send_msg_back(request, RetryGroup(), MESSAGE, retry_topic_perm=perm),
    ):
        assert (answer.stored is not None) == allowed
    refused = consumer_send_msg_back(request, RetryGroup(), MESSAGE, broker_permission=4)
    assert refused.remark == "the broker[] sending message is forbidden"


def test_an_orderly_message_without_a_maximum_is_never_sent_away() -> None:
    checked = check_reconsume_times([ConsumedMessage("T", "ID", 1_000)], "g")
    assert (checked.suspend, checked.sent_by_producer) == (True, ())
