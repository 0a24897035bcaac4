"""Resets and lowered offsets of a broker's log as records: one for each request, with what became of it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mqreplay.decode.kinds import KINDS
from mqreplay.decode.logs import broker_facts as log
from mqreplay.record.imports.logs.broker_history import Broker, BrokerHistory, Presence

TS = 1_796_293_817_000
ADDR = "10.4.0.77:57522"
BODY = '{"offsetTable":{{"brokerName":"b","queueId":1,"topic":"orders"}:120}}'
STARTED = log.ResetStarted(ADDR, "orders", "pay", TS, "true")
SENT = log.ResetSent("orders", "pay", "c@1")


def records(*facts: tuple[int, log.Fact], resets: Any = ()) -> list[tuple[str, dict[str, Any]]]:
    """Return the records of a log with facts at these seconds, decoded as rows of silver."""
    history = BrokerHistory(Broker("b", 0, "10.4.0.1:10911"), Presence(), resets)
    found = []
    for seconds, fact in facts:
        found += [*history.take(TS + seconds * 1000, fact), *history.tick(TS + seconds * 1000)]
    found += history.finish(TS + 3_600_000)
    decoded = [(stem, KINDS[stem].decode(json.dumps(record).encode())) for stem, record in found]
    return [each for each in decoded if each[0] != "broker_runtime"]


def requests(*facts: tuple[int, log.Fact], resets: Any = ()) -> list[tuple[Any, ...]]:
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
def test_each_request_is_one_record(facts: list[tuple[int, log.Fact]], expected: list[tuple[Any, ...]]) -> None:
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
