"""Second tries: a client whose request to send a message back failed sends the message to the retry topic itself."""

from __future__ import annotations

from typing import Any

import pytest

from decisions.sent_back_messages import FIRST, SENT, Row, one, verdict
from mqreplay.core.message_queue import MessageQueue
from mqreplay.core.rebalance_lock_manager import LockEntry, is_lock_all_expired
from silver_moments import at

# The request failed, and the client sent the message to the retry topic itself.
FAILED_REQUEST = {"error": "time-out", "response_code": None}
SECOND_TRY = {"ts": at(13), "topic": "%RETRY%g", "client_id": "c1", "reconsume_times": 1, "offset_msg_id": None}


def second(
    times: int, back: Row | None = None, version: str | None = None, locks: list[Row] | None = None, **second_try: Any
) -> Row:
    sent = [SECOND_TRY | {"reconsume_times": times + 1} | second_try]
    brokers = [{"rocketmq_version": version}]
    return one(FAILED_REQUEST | {"times": times}, back, sends=sent, brokers=brokers, locks=locks)


def test_a_client_whose_request_failed_sends_the_message_itself() -> None:
    row = second(0, {"store_ts": at(23.1), "ts": at(23.2)})
    assert verdict(row) == ("agree", f"{FIRST}; the client sent it itself")
    assert (row["sent_ts"], row["due_ts"], row["late_s"], row["record_id"]) == (at(13), at(23), 0.1, "sent")
    early = second(0, {"store_ts": at(15), "ts": at(15.1)})
    assert verdict(early) == ("differ", f"{FIRST}; the client sent it itself; it came 8.0 s before its time")
    refused = one(SENT | {"response_code": 1}, {"store_ts": at(23.1), "ts": at(23.2)}, sends=[SECOND_TRY])
    assert verdict(refused)[0] == "agree", "a refused request is tried again, too"


def test_a_second_try_past_its_maximum() -> None:
    last = second(1, None)
    assert verdict(last) == (
        "undetermined",
        "reconsumeTimes 2 reached 2: a dead letter for a broker of 4.x, not of 5.x",
    )
    dead = second(2, None)
    assert (dead["expected_topic"], verdict(dead)[1][:44]) == ("%DLQ%g", "reconsumeTimes 3 passed maxReconsumeTimes 2;")
    older, newer = (second(1, None, version)["expected_topic"] for version in ("4.9.7", "V5_0_0"))
    assert (older, newer) == ("%DLQ%g", "%RETRY%g")


QUEUES = [("t", "b", 0)]
HELD = {"ts": at(0), "response_ts": at(0), "mq_set": QUEUES, "lock_ok_mq_set": QUEUES}


@pytest.mark.parametrize(
    ("version", "locks", "topic"),
    [
        ("5.1.1", [HELD], "%DLQ%g"),
        ("5.1.0", [HELD], "%RETRY%g"),
        ("5.3.3", [], "%RETRY%g"),
        ("5.3.3", [HELD | {"consumer_group": "h"}], "%RETRY%g"),
        ("5.3.3", [HELD | {"broker_name": "b2"}], "%RETRY%g"),
        # Expired 13 s before, unless the broker has another rocketmq.broker.rebalance.lockMaxLiveTime.
        ("5.3.3", [HELD | {"ts": at(-60), "response_ts": at(-60)}], None),
        ("5.3.3", [HELD | {"ts": at(-47), "response_ts": at(-47)}], None),
        ("5.3.3", [HELD | {"lock_ok_mq_set": []}], None),
        ("5.3.3", [HELD, HELD | {"kind": "UNLOCK_BATCH_MQ", "ts": at(5), "lock_ok_mq_set": None}], None),
        (None, [HELD], None),
    ],
)
def test_a_second_try_of_a_group_with_a_lock_is_a_dead_letter(
    version: str | None, locks: list[Row], topic: str | None
) -> None:
    row = second(0, {"store_ts": at(23.1), "ts": at(23.2)}, version, locks)
    expected = {"%DLQ%g": "differ", "%RETRY%g": "agree", None: "undetermined"}
    assert (row["expected_topic"], row["judgement"]) == (topic, expected[topic])


@pytest.mark.parametrize("age_s", [2, 19, 22, 58, 62, 300])
def test_a_lock_counts_until_it_is_due_and_then_by_a_property_that_is_not_recorded(age_s: int) -> None:
    lock = HELD | {"ts": at(13 - age_s), "response_ts": at(13 - age_s)}
    expected = second(0, version="5.3.3", locks=[lock])["expected_topic"]
    assert expected == ("%DLQ%g" if age_s < 20 else None)
    if expected:
        assert not is_lock_all_expired({MessageQueue(*QUEUES[0]): LockEntry("c2", 0)}, age_s * 1000)


def test_what_is_no_second_try() -> None:
    for other in ({"client_id": "c2"}, {"ts": at(21)}, {"ts": at(9)}, {"topic": "%RETRY%h"}, {"response_code": None}):
        row = second(0, {}, **other)
        assert (row["record_id"], verdict(row)[0]) == ("try", "agree"), "only the listener's own log shows it"
    counted = verdict(second(0, None, reconsume_times=2))
    assert counted == ("undetermined", "the client counted 2 retries, and the log shows 0 before")
