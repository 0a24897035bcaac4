"""Messages that an orderly listener failed on: the retry in their queue, by real lines of the orders sample."""

from __future__ import annotations

import datetime as dt
import json
from typing import Any

import pytest

from mqreplay.decisions.retried_message import COLUMNS
from mqreplay.decisions.suspended_message import suspended_messages
from mqreplay.evidence.messages.deliveries import suspended_deliveries
from silver_moments import at
from silver_rows import rows

Row = dict[str, Any]
# Two tries of a message of the sample, and the third one.
LINE = (
    '{"ts":TS,"client_id":"10.20.8.2@7333#2545556482960","consumer_group":"seq-group","topic":"seq-topic",'
    '"queue_topic":"seq-topic","broker_name":"broker-b","queue_id":0,"queue_offset":32,"msg_id":'
    '"7F0000011C714E0E2F2A679318180399","reconsume_times":TIMES,"status":"STATUS","orderly":true}'
)
TRIES = (
    ("1795228893615", "0", "SUSPEND_CURRENT_QUEUE_A_MOMENT"),
    ("1795228895019", "1", "SUSPEND_CURRENT_QUEUE_A_MOMENT"),
    ("1795228896421", "2", "CONSUME_SUCCESS"),
)
LINES = [LINE.replace("TS", ts, 1).replace("TIMES", times).replace("STATUS", to) for ts, times, to in TRIES]
FAILED = {"ts": at(10), "client_id": "c1", "consumer_group": "g", "topic": "t", "queue_topic": "t", "broker_name": "b"}
FAILED |= {"queue_id": 0, "queue_offset": 6, "msg_id": "m", "reconsume_times": 0, "orderly": True}
FAILED |= {"status": "SUSPEND_CURRENT_QUEUE_A_MOMENT", "record_id": "failed"}
AGAIN = FAILED | {"ts": at(11.2), "reconsume_times": 1, "status": "SUCCESS", "record_id": "again"}
CLIENT = {"ts": at(0), "client_id": "c1", "consumer_group": "g"}
AT_MOST_0 = [{"key": "maxReconsumeTimes", "value": "0"}]


def judged(*consumed: Row, settings: list[Row] | None = None, until: dt.datetime | None = None) -> list[Row]:
    deliveries = suspended_deliveries(rows("silver.consume", {}, list(consumed)))
    clients = [] if settings is None else [CLIENT | {"properties": settings}]
    return suspended_messages(deliveries, rows("silver.assignment", {}, clients), until).rows(named=True)


def verdict(row: Row) -> tuple[str, str]:
    return row["judgement"], row["reason"]


def test_real_lines_of_a_message_that_was_retried_in_its_queue() -> None:
    records = [json.loads(line) for line in LINES]
    found = judged(*(each | {"ts": dt.datetime.fromtimestamp(each["ts"] / 1000, dt.UTC)} for each in records))
    assert [verdict(row) for row in found] == [("agree", f"retry {n} in its queue") for n in (1, 2)]
    first = found[0]
    assert (first["expected_topic"], first["delay_level"], first["late_s"]) == ("seq-topic", None, None)
    assert first["delivered_ts"] - first["sent_ts"] == dt.timedelta(seconds=1.404)


@pytest.mark.parametrize(
    ("again", "expected"),
    [
        ({}, ("agree", "retry 1 in its queue")),
        ({"ts": at(10.002)}, ("differ", "retry 1 in its queue, after 2 ms")),
        # The suspension is 10 ms at least, whatever the listener says; logs have whole milliseconds.
        ({"ts": at(10.009)}, ("agree", "retry 1 in its queue")),
        ({"client_id": "c2"}, ("undetermined", "another client got the message: the client lost the queue")),
        ({"reconsume_times": 0}, ("undetermined", "the client pulled the message again")),
        ({"reconsume_times": 2}, ("undetermined", "a delivery in between is not in the log")),
        ({"queue_offset": 7}, ("undetermined", "the log does not show the message again")),
    ],
)
def test_each_retry_counts_one_more(again: Row, expected: tuple[str, str]) -> None:
    (row,) = judged(FAILED, AGAIN | again)
    assert verdict(row) == expected


def test_the_end_of_the_recording_proves_nothing() -> None:
    (row,) = judged(FAILED, until=at(39))
    assert verdict(row) == ("undetermined", "the recording ended while the queue was suspended")
    (row,) = judged(FAILED, until=at(41))
    assert verdict(row) == ("undetermined", "the log does not show the message again")


def test_past_its_maximum_the_client_sends_the_message_to_the_retry_topic() -> None:
    (sent,) = judged(FAILED, settings=AT_MOST_0)
    assert (sent["expected_topic"], sent["expected_delay_level"], sent["max_reconsume_times"]) == ("%RETRY%g", 3, 0)
    assert verdict(sent) == ("undetermined", "reconsumeTimes 0 reached maxReconsumeTimes 0: no record of the send")
    (again,) = judged(FAILED, AGAIN, settings=AT_MOST_0)
    assert verdict(again)[1] == "reconsumeTimes 0 reached maxReconsumeTimes 0, but its send may have failed"


def test_the_setting_of_the_client_says_when_the_message_is_due() -> None:
    (row,) = judged(FAILED, AGAIN, settings=[{"key": "suspendCurrentQueueTimeMillis", "value": "60000"}])
    assert row["due_ts"] == at(40), "never longer than 30 s"
    assert judged(FAILED, AGAIN)[0]["due_ts"] is None


def test_no_rows() -> None:
    assert judged(FAILED | {"orderly": False}, AGAIN) == judged(AGAIN) == []
    none = suspended_messages(
        suspended_deliveries(rows("silver.consume", {}, [])), rows("silver.assignment", {}, []), None
    )
    assert none.schema == rows("gold.retried_message", {}, []).select(COLUMNS).schema
