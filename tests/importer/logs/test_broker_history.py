"""Resets and lowered offsets of a broker's log as records: one for each request, with what became of it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mqreplay.decode.kinds import KINDS
from mqreplay.decode.logs import broker_facts as log
from mqreplay.decode.logs.java_text import Channel
from mqreplay.importer.logs.broker_history import Broker, BrokerHistory, Presence

TS = 1_796_293_817_000
ADDR = "10.4.0.77:57522"
BODY = '{"offsetTable":{{"brokerName":"b","queueId":1,"topic":"orders"}:120}}'
STARTED = log.ResetStarted(ADDR, "orders", "pay", TS, "true")
SENT = log.ResetSent("orders", "pay", "c@1")


def records(*facts: tuple[int, object], resets: Any = ()) -> list[tuple[str, dict[str, Any]]]:
    """Return the records of a log with facts at these seconds, decoded as rows of silver."""
    history = BrokerHistory(Broker("b", 0, "10.4.0.1:10911"), Presence(), resets)
    found = []
    for seconds, fact in facts:
        found += [*history.take(TS + seconds * 1000, fact), *history.tick(TS + seconds * 1000)]
    found += history.finish(TS + 3_600_000)
    decoded = [(stem, KINDS[stem].decode(json.dumps(record).encode())) for stem, record in found]
    return [each for each in decoded if each[0] != "broker_runtime"]


def requests(*facts: tuple[int, object], resets: Any = ()) -> list[tuple[Any, ...]]:
    names = ("request_code", "client_id", "client_addr", "error", "reset_offsets")
    return [tuple(record[name] for name in names) for _, record in records(*facts, resets=resets)]


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ([(0, STARTED)], [(222, None, ADDR, None, None)]),
        ([(0, STARTED), (60, log.Stopped())], [(222, None, ADDR, None, None)]),
        ([(0, STARTED), (0, SENT)], [(222, None, ADDR, None, None), (220, "c@1", None, None, None)]),
        ([(0, STARTED), (1, STARTED)], [(222, None, ADDR, None, None)] * 2),
        (
            [(0, STARTED), (0, log.ResetDone("orders", "pay", BODY))],
            [(222, None, ADDR, None, [("orders", "b", 1, 120)])],
        ),
        # The log begins after the request.
        ([(0, log.ResetDone("orders", "pay", BODY))], [(222, None, None, None, [("orders", "b", 1, 120)])]),
        ([(0, log.ResetRefused("orders", "pay", "no"))], [(222, None, None, "no", None)]),
        ([(0, SENT)], [(220, "c@1", None, None, None)]),
        ([(0, STARTED), (0, log.ResetRefused("orders", "pay", "no"))], [(222, None, ADDR, "no", None)]),
        ([(0, STARTED), (0, log.ResetRefused("orders", None, "no"))], [(222, None, ADDR, "no", None)]),
        ([(0, STARTED), (0, log.ResetRefused(None, None, "no"))], [(222, None, ADDR, "no", None)]),
        # A line of another topic, or long after, is not of this request.
        ([(0, STARTED), (0, log.ResetRefused("other", None, "no"))], [(222, None, ADDR, None, None)]),
        ([(0, STARTED), (60, log.ResetRefused(None, None, "no"))], [(222, None, ADDR, None, None)]),
    ],
)
def test_each_request_is_one_record(facts: list[tuple[int, object]], expected: list[tuple[Any, ...]]) -> None:
    # A fact long after comes with a line before it, as in a log that goes on.
    alive = [(30, log.Registered(0))] if any(seconds > 30 for seconds, _ in facts) else []
    assert requests(*sorted([*facts, *alive], key=lambda each: each[0])) == expected


def test_a_request_keeps_its_time_and_header() -> None:
    ((_, record),) = records((0, STARTED), (30, log.Registered(0)))
    assert (record["ts"], record["topic"], record["consumer_group"]) == (TS, "orders", "pay")
    assert record["ext"]["timestamp"] == str(TS)


def test_a_reset_in_a_clients_log_is_not_repeated_but_its_request_is_kept() -> None:
    found = requests((0, STARTED), (0, SENT), resets=[("c@1", "pay", "orders", TS + 300)])
    assert found == [(222, None, ADDR, None, None)]


def test_a_commit_below_the_stored_offset_is_a_record_of_its_own_and_no_commit_of_a_client() -> None:
    ((stem, record),) = records((0, log.CommittedLess("10.2.0.1:13787", "orders", "pay", 224, 1458, 1459)))
    assert stem == "lowered_offsets"
    assert (record["client_addr"], record["queue_id"]) == ("10.2.0.1:13787", 224)
    assert (record["stored_offset"], record["commit_offset"]) == (1459, 1458)


def joined(second: int, addr: str) -> list[tuple[int, object]]:
    channel = Channel("172.17.0.1@1", addr, TS + second * 1000)
    consumer = {"groupName": "g", "consumeType": "CONSUME_PASSIVELY", "messageModel": "CLUSTERING"}
    of_client = log.Joined("g", channel, "CONSUME_PASSIVELY", "CLUSTERING")
    return [(second, of_client), (second, log.Announced(addr, consumer | {"subscriptionDataSet": []}))]


def connections(*facts: tuple[int, object]) -> list[tuple[int, list[str]]]:
    lists = [record for stem, record in records(*facts) if stem == "consumer_connections"]
    return [((row["ts"] - TS) // 1000, [addr for _, addr, *_ in row["connections"]]) for row in lists]


FIRST, SECOND = "10.8.1.21:41882", "10.8.1.22:38410"


def test_an_id_on_two_open_channels_is_listed_from_the_second_one_to_the_end() -> None:
    both = [*joined(0, FIRST), *joined(20, SECOND)]
    assert connections(*both) == [(20, [FIRST, SECOND]), (3600, [FIRST, SECOND])]


def test_a_channel_that_closes_ends_the_list_of_two() -> None:
    closed = log.Vanished("g", FIRST, Channel("172.17.0.1@1", FIRST, TS + 10_000))
    found = connections(*joined(0, FIRST), *joined(20, SECOND), (120, closed))
    assert found == [(20, [FIRST, SECOND]), (119, [FIRST, SECOND]), (120, [SECOND])]


def test_a_client_that_comes_back_after_its_channel_closed_has_one() -> None:
    closed = log.Vanished("g", FIRST, Channel("172.17.0.1@1", FIRST, TS + 10_000))
    assert connections(*joined(0, FIRST), (15, closed), *joined(20, SECOND)) == []


def test_the_subscription_of_a_group_is_recorded_when_it_changes() -> None:
    def kept(text: str, version: int) -> dict[str, object]:
        return {"topic": "t", "subString": text, "subVersion": version, "expressionType": "TAG"}

    changes = [
        log.SubscriptionChanged("g", kept("a", 1), kept("b", 2)),
        log.SubscriptionChanged("g", kept("b", 2), kept("b", 3)),  # after a rebalance: only a version
        log.SubscriptionChanged("g", kept("b", 3), None),
        log.SubscriptionChanged("g", None, kept("a", 4)),
    ]
    found = [row for _, row in records(*((second * 30, each) for second, each in enumerate(changes)))]
    shown = [(row["ts"] - TS, [text for _, text, *_ in row["subscriptions"]]) for row in found]
    assert shown == [(-1, ["a"]), (0, ["b"]), (60_000, []), (90_000, ["a"])]
