"""Messages that consumers sent back: the retry or dead letter that follows, by real lines of the orders sample."""

from __future__ import annotations

import datetime as dt
import json
from typing import Any

import polars as pl
import pytest

from decisions.sent_back_messages import BACK, FIRST, FIRST_SEND, SENT, TRY, Row, end_at, judged, one, verdict
from mqreplay.decisions.retried_message import COLUMNS, retried_message
from mqreplay.decode.send_backs import decode_send_back
from mqreplay.evidence.messages.counted_retries import first_places
from mqreplay.evidence.messages.sent_back import lock_requests_of_shard, retry_deliveries, second_tries
from mqreplay.evidence.offsets.queue_ends import polled_ends
from silver_moments import at
from silver_rows import rows

# The first and the last try of a message of the sample, and its request.
REQUEST = (
    b'{"ts":1795228827333,"response_ts":1795228827344,"client_id":"10.20.5.2@7333#2545421539146","request_code":36,'
    b'"mode":"sync","broker_name":"broker-b","broker_addr":"127.0.0.1:10931","broker_id":0,"header":{"offset":34801,'
    b'"group":"refund-group","delayLevel":0,"originMsgId":"7F0000011C714E0E2F2A679216BD00DF","originTopic":'
    b'"refund-topic","unitMode":false,"maxReconsumeTimes":2,"bname":"broker-b"},"request_body":null,"response_code":0,'
    b'"remark":null,"response_ext":{},"response_bytes":0,"error":null}'
)
FAILED = (
    '{"ts":1795228827332,"client_id":"10.20.5.2@7333#2545421539146","consumer_group":"refund-group","topic":'
    '"refund-topic","queue_topic":"refund-topic","broker_name":"broker-b","queue_id":0,"queue_offset":6,'
    '"commitlog_offset":34801,"msg_id":"7F0000011C714E0E2F2A679216BD00DF","store_ts":1795228827328,'
    '"reconsume_times":0,"status":"RECONSUME_LATER","orderly":false}'
)
AGAIN = (
    '{"ts":1795228837420,"client_id":"10.20.5.1@7316#2544413056679","consumer_group":"refund-group","topic":'
    '"refund-topic","queue_topic":"%RETRY%refund-group","broker_name":"broker-b","queue_id":0,"queue_offset":0,'
    '"commitlog_offset":52231,"msg_id":"7F0000011C714E0E2F2A679216BD00DF","store_ts":1795228837416,'
    '"reconsume_times":1,"status":"CONSUME_SUCCESS","orderly":false}'
)


def instants(record: Row) -> Row:
    def instant(value: int) -> dt.datetime:
        return dt.datetime.fromtimestamp(value / 1000, dt.UTC)

    return {name: instant(value) if name.endswith("ts") and value else value for name, value in record.items()}


def test_real_lines_of_a_message_that_came_back() -> None:
    tries = [instants(json.loads(line)) for line in (FAILED, AGAIN)]
    sent = instants(decode_send_back(REQUEST))
    (row,) = judged([sent | {"record_id": "sent"}], tries)
    assert verdict(row) == ("agree", FIRST)
    assert (row["expected_topic"], row["reconsume_times"], row["record_id"]) == ("%RETRY%refund-group", 0, "sent")
    assert row["due_ts"] - row["sent_ts"] == dt.timedelta(seconds=10)
    assert (row["late_s"], row["waited_s"], row["consume_record_id"]) == (0.083, 0.004, "r0")


@pytest.mark.parametrize(
    ("sent", "back", "expected"),
    [
        ({}, {}, ("agree", FIRST)),
        ({"times": 1}, {"store_ts": at(40), "ts": at(41)}, ("agree", "retry 2, delay level 4")),
        # The requested level counts.
        ({"delay_level": 2}, {"store_ts": at(15), "ts": at(15)}, ("agree", "retry 1, delay level 2")),
        ({"times": 1}, {}, ("differ", "retry 2, delay level 4; it came 20.0 s before its time")),
        (
            {},
            {"store_ts": at(40), "ts": at(40)},
            ("differ", "retry 1, delay level 3; the broker stored it 20.0 s late"),
        ),
        # It waited for its consumer: the broker was in time.
        ({}, {"ts": at(80)}, ("agree", FIRST)),
        # The client's clock is ahead: its request seems to be later than the broker's time.
        ({}, {"store_ts": at(16), "ts": at(20)}, ("agree", FIRST)),
        ({}, None, ("undetermined", f"{FIRST}: no consume log shows it")),
        ({"response_code": 1}, {}, ("undetermined", "the broker refused the message (code 1)")),
        ({"error": "time-out"}, {}, ("agree", FIRST)),
    ],
)
def test_a_retry_comes_after_its_delay(sent: Row, back: Row | None, expected: tuple[str, str]) -> None:
    assert verdict(one(dict(sent), back)) == expected


@pytest.mark.parametrize(
    ("sent", "why"),
    [
        ({"times": 2}, "reconsumeTimes 2 reached maxReconsumeTimes 2"),
        ({"times": 16, "max_reconsume_times": None}, "reconsumeTimes 16 reached maxReconsumeTimes 16"),
        ({"delay_level": -1}, "the consumer asked for a dead letter (delay level -1)"),
    ],
)
def test_a_message_without_a_retry_left_is_a_dead_letter(sent: Row, why: str) -> None:
    row = one(dict(sent), letters=[{}], ends=[end_at(8, 3), end_at(40, 4)])
    assert (row["expected_topic"], row["due_ts"], *verdict(row)) == ("%DLQ%g", None, "agree", why)
    created = one(dict(sent), letters=[{}], copies=[{}, {"ts": at(30)}])
    assert verdict(created) == ("agree", why), "the topic did not exist in the copy before"
    unseen = one(dict(sent), letters=[{}])
    assert verdict(unseen) == ("undetermined", f"{why}; whether the dead letter queue grew then is not known")
    back = one(dict(sent), {}, ends=[end_at(8, 3), end_at(40, 4)])
    assert verdict(back) == ("differ", f"{why}: a dead letter; but the message came back")


LAST = "reconsumeTimes 2 reached maxReconsumeTimes 2"


def test_a_dead_letter_must_raise_the_end_of_its_queue() -> None:
    still = one({"times": 2}, letters=[{}], ends=[end_at(8, 3), end_at(40, 3)])
    assert verdict(still) == ("differ", f"{LAST}: a dead letter; but the end of the dead letter queue did not rise")
    early = one({"times": 2}, letters=[{}], ends=[end_at(8, 3), end_at(12, 3)])
    assert verdict(early)[0] == "undetermined", "the broker may store the message after the poll"
    absent = one({"times": 2}, copies=[{}, {"ts": at(30)}])
    assert verdict(absent)[0] == "differ", "no copy of topics.json has the dead letter topic"
    both = [SENT | {"record_id": name, "msg_id": name, "commitlog_offset": n} for n, name in enumerate("ab")]
    place = TRY | {"reconsume_times": 2}
    tries = [place | {"msg_id": m, "commitlog_offset": n, "queue_offset": n} for n, m in enumerate("ab")]
    words = f"{LAST}; the dead letter queue grew by 1, and 2 dead letters were due"
    found = judged(both, tries, ends=[end_at(8, 3), end_at(40, 4)])
    assert [verdict(row) for row in found] == [("undetermined", words)] * 2


def test_the_maximum_of_the_client_counts_before_that_of_the_group() -> None:
    few = [{"retry_max_times": 1}]
    assert one({"times": 1}, configs=few)["expected_topic"] == "%RETRY%g"
    assert one({"times": 1, "max_reconsume_times": None}, configs=few)["expected_topic"] == "%DLQ%g"
    unknown = one({"times": 1, "max_reconsume_times": None}, configs=[])
    assert verdict(unknown)[1].startswith("neither the request nor a copy of subscriptionGroup.json")


def test_a_group_without_retry_queues_loses_what_it_sends_back() -> None:
    row = one(configs=[{"retry_queue_nums": 0}])
    assert verdict(row) == ("undetermined", "the group has no retry queues: the broker drops the message")


def test_the_levels_are_those_of_the_broker() -> None:
    row = one(None, {}, brokers=[{"properties": {"messageDelayLevel": "1s 2s 3s"}}])
    assert verdict(row) == ("agree", FIRST)
    assert row["due_ts"] == at(13)
    top = one({"times": 9, "max_reconsume_times": 16}, brokers=[{"properties": {"messageDelayLevel": "1s 2s"}}])
    assert (top["expected_delay_level"], top["due_ts"]) == (2, at(12)), "no level above the highest"


def test_the_levels_are_those_at_the_time_of_the_request() -> None:
    changed = [{"properties": {"messageDelayLevel": "1s 2s 3s"}, "ts": at(-50)}]
    changed += [{"properties": {"messageDelayLevel": "1s 2s 4s"}, "ts": at(500)}]
    assert one(None, {}, brokers=changed)["due_ts"] == at(13), "the broker was restarted later"


def test_a_message_that_two_clients_sent_back_comes_back_twice() -> None:
    sent = [SENT, SENT | {"client_id": "c2", "ts": at(70), "record_id": "sent2"}]
    twice = [TRY, TRY | {"client_id": "c2", "ts": at(69), "record_id": "try2"}, BACK]
    second = BACK | {"queue_offset": 1, "store_ts": at(80), "ts": at(80), "record_id": "back2"}
    # The same retry is delivered again: it is one.
    again = BACK | {"ts": at(50), "client_id": "c2", "record_id": "back3"}
    assert [verdict(row)[0] for row in judged(sent, [*twice, again, second])] == ["agree", "agree"]
    unclear = ("undetermined", "not every request that sent this message back was recorded")
    assert [verdict(row) for row in judged(sent, twice)] == [unclear, unclear]


def test_a_listener_without_a_recorded_request() -> None:
    (row,) = judged([], [TRY, BACK])
    assert (verdict(row), row["record_id"]) == (("agree", FIRST), "try")
    (unseen,) = judged([], [TRY])
    assert verdict(unseen) == ("undetermined", "neither the request nor a retry of the message was recorded")
    (early,) = judged([], [TRY, BACK | {"store_ts": at(12), "ts": at(12)}])
    assert verdict(early) == ("undetermined", "the requested delay level is not known")


def test_a_request_is_that_of_its_delivery() -> None:
    no_offset = {"commitlog_offset": None}
    (row,) = judged([SENT], [TRY | no_offset, BACK])
    assert row["record_id"] == "sent"
    assert verdict(row) == ("undetermined", "no consume log shows how often the message was retried before")
    assert len(judged([SENT], [TRY | {"commitlog_offset": 501}])) == 2


def test_what_sends_nothing_back() -> None:
    assert judged([], [TRY], silent=("g",)) == []
    of_pop = BACK | {"queue_topic": "%RETRY%g_t", "status": "RECONSUME_LATER"}
    assert judged([], [TRY, of_pop]) == [], "a client of POP changes the invisible time"
    assert len(judged([SENT], [TRY], silent=("g",))) == 1, "a request is one, whoever sent it"
    assert judged([], [TRY | {"orderly": True, "status": "SUSPEND_CURRENT_QUEUE_A_MOMENT"}]) == []


def test_a_retry_due_after_the_end() -> None:
    words = f"{FIRST}: due after the end of the recording"
    assert verdict(one(until=at(19))) == ("undetermined", words)


def test_no_rows() -> None:
    none = retried_message(
        rows("silver.send_back", {}, []),
        retry_deliveries(rows("silver.consume", {}, [])),
        *(find(rows("silver.send", {}, []), rows("silver.send_back", {}, [])) for find in (first_places, second_tries)),
        *(rows(f"silver.{name}", {}, []) for name in ("subscription_group", "topic_config", "broker")),
        rows("silver.snapshot", {}, []),
        lock_requests_of_shard(rows("silver.lock", {}, [])),
        polled_ends(rows("silver.topic_stats", {}, [])),
        pl.DataFrame(schema={"consumer_group": pl.String}),
        None,
    )
    assert tuple(none.columns) == COLUMNS
    assert none.schema == rows("gold.retried_message", {}, []).select(COLUMNS).schema


def captured(*requests: Row, sends: list[Row] | None = None, ends: list[Row] | None = None) -> list[tuple[Any, ...]]:
    """Verdicts without a consume log: (reconsume_times, judgement, reason) of each request, in order."""
    sent = [SENT | {"record_id": f"s{n}"} | request for n, request in enumerate(requests)]
    found = judged(sent, [], sends=[FIRST_SEND] if sends is None else sends, ends=ends)
    in_order = sorted(found, key=lambda row: (row["sent_ts"], row["record_id"]))
    return [(row["reconsume_times"], *verdict(row)) for row in in_order]


# The retry after 10 s, sent back from its own place.
SECOND = {"ts": at(20.05), "commitlog_offset": 900}
THIRD = {"ts": at(50.1), "commitlog_offset": 1300}
UNKNOWN = (None, "undetermined", "no consume log shows how often the message was retried before")


def test_requests_show_how_often_a_message_was_retried() -> None:
    assert captured({}, SECOND) == [
        (0, "agree", f"{FIRST}; then it was sent back again"),
        (1, "undetermined", "retry 2, delay level 4: no consume log shows it"),
    ]
    dead = captured({}, SECOND, THIRD, ends=[end_at(0, 0), end_at(90, 1)])[2]
    assert dead == (2, "agree", "reconsumeTimes 2 reached maxReconsumeTimes 2")
    assert captured({"max_reconsume_times": 16}, SECOND | {"max_reconsume_times": 16})[0][0] == 0


def test_a_message_whose_first_place_is_not_known_is_not_counted() -> None:
    assert captured({}, SECOND, sends=[]) == [UNKNOWN, UNKNOWN]
    assert captured(SECOND) == [UNKNOWN], "the request before was not recorded"
    assert captured({}, sends=[FIRST_SEND | {"offset_msg_id": None}]) == [UNKNOWN]
    assert captured({}, sends=[FIRST_SEND | {"broker_name": "other"}]) == [UNKNOWN]
    assert captured({"consumer_group": "h"}, SECOND)[1] == UNKNOWN, "another group's request"
    # A consumer that cannot send back sends the message anew, with its number.
    assert captured({}, sends=[FIRST_SEND | {"reconsume_times": 1}])[0][0] == 1


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({}, {"ts": at(18)}),  # before the delay of level 3
        ({}, {"ts": at(49.5)}),  # long enough for a request in between, 10 s and 30 s
        ({}, {"commitlog_offset": 500}),  # the same message, received twice
        ({}, {"broker_name": "b2"}),
        ({"response_code": 1}, {}),
        ({"delay_level": 2}, {}),  # another listener may ask for another level
        ({"max_reconsume_times": 0}, {}),  # a dead letter does not come back
    ],
)
def test_a_request_that_may_be_missing_ends_the_count(first: Row, second: Row) -> None:
    last = captured(first, SECOND | second)
    assert last[0][0] == 0
    assert last[1] == UNKNOWN
    assert "again" not in last[0][2]


def test_a_retry_that_came_late_or_waited_is_not_judged_without_a_log() -> None:
    assert captured({}, SECOND | {"ts": at(35)})[0] == (0, "undetermined", f"{FIRST}: no consume log shows it")


def test_the_log_goes_before_the_count() -> None:
    (row,) = judged([SENT], [TRY | {"reconsume_times": 1}], sends=[FIRST_SEND])
    assert row["reconsume_times"] == 1


def retry(n: int, stored: float, **more: Any) -> Row:
    """The delivery of another message's retry, at place ``n`` of the group's retry queue."""
    place = {"queue_offset": n, "store_ts": at(stored), "ts": at(stored + 0.1), "commitlog_offset": 2000 + n}
    return BACK | place | {"msg_id": f"m{n}", "record_id": f"back{n}"} | more


def other_requests(*numbers: int) -> tuple[list[Row], list[Row]]:
    sent = [SENT | {"msg_id": f"m{n}", "commitlog_offset": 600 + n, "record_id": f"sent{n}"} for n in numbers]
    places = [{"queue_offset": 10 + n, "commitlog_offset": 600 + n} for n in numbers]
    tries = [
        TRY | place | {"msg_id": f"m{n}", "record_id": f"try{n}"} for n, place in zip(numbers, places, strict=True)
    ]
    return sent, tries


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, ("differ", f"{FIRST}; it did not come, and other retries came up to 40.0 s later")),
        ({"last": retry(1, 30)}, ("undetermined", f"{FIRST}: no consume log shows it")),  # it may come within 11 s
        ({"last": retry(2, 60)}, ("undetermined", f"{FIRST}: no consume log shows it")),  # the log lacks a message
        ({"last": retry(1, 60, queue_id=1)}, ("undetermined", f"{FIRST}: no consume log shows it")),
        ({"last": retry(1, 60, msg_id="x")}, ("undetermined", f"{FIRST}: no consume log shows it")),  # of whom?
        ({"first": retry(5, 11), "last": retry(6, 60)}, ("undetermined", f"{FIRST}: no consume log shows it")),
        ({"configs": [{"retry_queue_nums": 2}]}, ("undetermined", f"{FIRST}: no consume log shows it")),
        ({"configs": []}, ("undetermined", f"{FIRST}: no consume log shows it")),
    ],
)
def test_a_retry_that_never_came(changes: Row, expected: tuple[str, str]) -> None:
    first, last = changes.get("first", retry(0, 20.1)), changes.get("last", retry(1, 60))
    sent, tries = other_requests(*(int(each["record_id"][4:]) for each in (first, last)))
    found = judged([SENT, *sent], [TRY, *tries, first, last], configs=changes.get("configs"))
    (row,) = [each for each in found if each["record_id"] == "sent"]
    assert verdict(row) == expected
    assert row["late_s"] == (40.0 if expected[0] == "differ" else None)


def test_a_message_whose_retry_was_sent_back_did_come() -> None:
    sent, tries = other_requests(0, 1)
    requests = [SENT, SENT | SECOND | {"record_id": "again"}, *sent]
    found = judged(requests, [*tries, retry(0, 20.1), retry(1, 60)], sends=[FIRST_SEND])
    assert [row["judgement"] for row in found if row["record_id"] == "sent"] == ["agree"]
