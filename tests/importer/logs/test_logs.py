"""Records from RocketMQ's logs: the same rebalances, queues and commits as those of hooks."""

from __future__ import annotations

import gzip
import json
from bisect import bisect_right
from collections import Counter
from functools import cache
from itertools import groupby, pairwise
from typing import Any

import pytest

from importer.logs.collected_logs import BULK, MEMBER, NIGHTS, ORDERS, by, held, imported
from mqreplay.decode.kinds import KINDS
from tests_shared import SAMPLE


def recorded(night: str, stem: str) -> list[dict[str, Any]]:
    with gzip.open(SAMPLE / night / f"{stem}.jsonl.gz") as lines:
        return [json.loads(line) for line in lines]


def computed(record: dict[str, Any]) -> tuple[object, ...]:
    """What a rebalance computed; the recording has the lists whose lengths the log has."""
    queues = sorted((broker_name, queue_id) for broker_name, queue_id in record["mq_divided"] or [])
    sizes = [record.get(f"{name}_size", len(record.get(name) or [])) for name in ("mq_all", "cid_all")]
    return record["strategy"], queues, *sizes


@pytest.fixture(scope="module", params=NIGHTS)
def night(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def logs(night: str) -> dict[str, list[dict[str, Any]]]:
    return logs_of(night)


@cache
def logs_of(night: str) -> dict[str, list[dict[str, Any]]]:
    """Return the records of a sample's logs; tests must not change them."""
    return imported(SAMPLE / night / "logs")[0]


@pytest.mark.first_case
def test_every_line_is_one_of_a_recording(logs: dict[str, list[dict[str, Any]]]) -> None:
    assert {"rebalance_log", "assignments", "offset_commits", "heartbeats", "broker_runtime"} <= set(logs)
    for stem, records in logs.items():
        for record in records:
            KINDS[stem].decode(json.dumps(record).encode())


def test_each_rebalance_in_the_logs_is_one_that_was_recorded(night: str, logs: dict[str, list[dict[str, Any]]]) -> None:
    """In order, with the same content. A client logs it after it has taken the queues: up to 1 s later."""
    fields = (*MEMBER, "topic")
    calls = by(recorded(night, "rebalance_log"), fields)
    logged = by(logs["rebalance_log"], fields)
    assert sum(map(len, logged.values())) == {ORDERS: 245, BULK: 6}[night]
    for key, records in logged.items():
        rest = iter(calls[key])
        for record in records:
            call = next(
                (one for one in rest if computed(one) == computed(record) and 0 <= record["ts"] - one["ts"] < 1000),
                None,
            )
            assert call is not None, record


def test_each_recorded_change_of_a_share_is_in_the_logs(night: str, logs: dict[str, list[dict[str, Any]]]) -> None:
    """All but those that changed no client's queues, which RocketMQ does not log.

    CONFIG gives the queues of one topic for each topic: the second time changes nothing. Of an orderly group, queues
    whose lock another client holds are not taken: the same share is logged once the lock is free.
    """
    fields = (*MEMBER, "topic")
    logged = by(logs["rebalance_log"], fields)
    missing: Counter[str] = Counter()
    for key, calls in by(recorded(night, "rebalance_log"), fields).items():
        shares = [(computed(call)[1], list(same)) for call, same in ((c[0], c) for c in runs(calls))]
        rest = iter(logged.get(key, []))
        for place, (share, same) in enumerate(shares):
            if not share and place == 0:
                continue
            if not any(
                computed(one)[1] == share and same[0]["ts"] <= one["ts"] <= same[-1]["ts"] + 1000 for one in rest
            ):
                missing[key[1]] += 1
                rest = iter(logged.get(key, []))
    assert missing == ({"pay-config-group": 2, "seq-group": 2} if night == ORDERS else {})


def runs(calls: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """Calls in a row that gave the same share."""
    return [list(same) for _, same in groupby(calls, key=lambda call: computed(call)[1])]


def test_queues_of_each_client_are_those_that_were_recorded(night: str, logs: dict[str, list[dict[str, Any]]]) -> None:
    """At each of the moments at which the hooks looked, changed or not: to 50 ms, since they look while queues move."""
    seen = by(recorded(night, "assignments"), MEMBER)
    logged = by(logs["assignments"], MEMBER)
    assert set(logged) == set(seen)
    looked = 0
    for key, moments in seen.items():
        changes = [(record["ts"], held(record)) for record in logged[key]]
        times = [ts for ts, _ in changes]
        for moment in moments:
            looked += 1
            before, after = bisect_right(times, moment["ts"] - 50), bisect_right(times, moment["ts"] + 50)
            states = [queues for _, queues in changes[max(before - 1, 0) : after]]
            assert held(moment) in states or (before == 0 and not held(moment)), (key, moment["ts"])
    assert looked == {ORDERS: 1382, BULK: 41}[night]


def test_an_assignment_is_shown_once_a_moment_and_repeated_each_minute(logs: dict[str, list[dict[str, Any]]]) -> None:
    repeats = 0
    for key, records in by(logs["assignments"], MEMBER).items():
        times = [record["ts"] for record in records]
        assert times == sorted(set(times)), key
        for before, record in pairwise(records):
            assert record["changed"] or (held(record) == held(before) and record["ts"] - before["ts"] >= 60_000)
            repeats += not record["changed"]
    assert repeats


def test_changed_assignments_follow_in_the_same_order(night: str, logs: dict[str, list[dict[str, Any]]]) -> None:
    """The hooks look once a second: what lasts longer is in both, and in the same order."""
    logged = by(logs["assignments"], MEMBER)
    for key, moments in by(recorded(night, "assignments"), MEMBER).items():
        seen = [queues for queues, _ in groupby(held(one) for one in moments if one["changed"])]
        changes = [record for record in logged[key] if record["changed"]]
        rest = iter(held(record) for record in changes)
        assert all(any(queues == one for one in rest) for queues in seen), key
        looked = [one["ts"] for one in moments]
        for record, following in pairwise(changes):
            long = following["ts"] - record["ts"] > 1500 and looked[0] < record["ts"] and following["ts"] < looked[-1]
            # Nobody looks at a client that is stopped.
            assert not long or not record["queues"] or held(record) in seen, (key, record["ts"])


def test_commits_are_those_that_were_recorded(night: str, logs: dict[str, list[dict[str, Any]]]) -> None:
    """The log has the offset of the moment after it was sent: a busy queue may have gone on by some messages."""
    fields = (*MEMBER, "topic", "broker_name", "queue_id")
    sent = by([one for one in recorded(night, "offset_commits") if one["kind"] == "UPDATE"], fields)
    later = exact = 0
    for key, records in by([one for one in logs["offset_commits"] if one["source"] == "client_log"], fields).items():
        for record in records:
            near = [one["commit_offset"] for one in sent[key] if 0 <= record["ts"] - one["ts"] <= 1000]
            assert any(record["commit_offset"] - 20 <= offset <= record["commit_offset"] for offset in near), record
            later += record["commit_offset"] not in near
            exact += record["commit_offset"] in near
    assert later < exact // 100


def test_routes_are_some_that_were_recorded(night: str, logs: dict[str, list[dict[str, Any]]]) -> None:
    decode = KINDS["routes"].decode

    def content(record: dict[str, Any]) -> tuple[object, ...]:
        route: dict[str, Any] = decode(json.dumps(record).encode())
        return sorted(map(repr, route["queue_datas"] or [])), sorted(map(repr, route["broker_datas"] or []))

    answers = by(recorded(night, "routes"), ("topic",))
    assert len(logs["routes"]) > 4
    for route in logs["routes"]:
        near = [one for one in answers[route["topic"],] if 0 <= route["ts"] - one["ts"] < 5000]
        assert content(route) in map(content, near), route


def test_each_client_that_unregistered_is_in_the_logs(night: str, logs: dict[str, list[dict[str, Any]]]) -> None:
    def left(records: list[dict[str, Any]], source: str | None) -> set[tuple[str, str]]:
        return {
            (one["client_id"], one["header"]["consumerGroup"])
            for one in records
            if one["kind"] == "UNREGISTER_CLIENT" and one.get("source") == source and "consumerGroup" in one["header"]
        }

    seen = left(recorded(night, "heartbeats"), None)
    assert seen
    assert left(logs["heartbeats"], "client_log") == seen
    assert left(logs["heartbeats"], "broker_log") == seen


@pytest.mark.long
def test_a_killed_client_vanishes_without_unregistering() -> None:
    logs, _ = imported(SAMPLE / ORDERS / "logs" / "..")
    killed = "10.20.12.3@13793#3080932234582"
    own = [one for one in logs["heartbeats"] if one["client_id"] == killed]
    beats = [one for one in own if one["kind"] == "HEART_BEAT"]
    real = [one["ts"] for one in recorded(ORDERS, "heartbeats") if one["client_id"] == killed]
    assert beats
    # Its last heartbeat, as the brokers noted it when the connections closed.
    closed = [one for one in own if one["kind"] == "CHANNEL_CLOSE"]
    assert {one["broker_name"] for one in closed} == {"broker-a", "broker-b"}
    assert {one["kind"] for one in own} == {"HEART_BEAT", "CHANNEL_CLOSE"}
    for last in (max(one["ts"] for one in beats), max(one["heard_ts"] for one in closed)):
        assert last - max(real) in range(1000)


@pytest.mark.long
def test_resets_have_the_offsets_that_the_broker_sent() -> None:
    logs = logs_of(ORDERS)
    decode = KINDS["server_requests"].decode
    sent = [
        decode(json.dumps(one).encode()) for one in recorded(ORDERS, "server_requests") if one["request_code"] == 220
    ]
    each = [decode(json.dumps(one).encode()) for one in logs["server_requests"]]
    asked, found = ([one for one in each if one["request_code"] == code] for code in (222, 220))
    # mqadmin asks each broker on a connection of its own.
    assert len({(one["client_addr"], one["broker_name"]) for one in asked}) == 4
    assert len(found) == 4
    for reset in found:
        assert any(
            (one["client_id"], one["broker_name"]) == (reset["client_id"], reset["broker_name"])
            and abs(one["ts"] - reset["ts"]) < 1000
            and sorted(one["reset_offsets"]) == sorted(reset["reset_offsets"])
            for one in sent
        ), reset


@pytest.mark.long
def test_an_illegal_offset_is_a_pull_that_was_moved() -> None:
    logs = logs_of(ORDERS)
    (pull,) = logs["pull_log"]
    (moved,) = [one for one in recorded(ORDERS, "pull_log") if one.get("response_code") == 21]
    for name in ("client_id", "topic", "broker_name", "queue_id", "queue_offset", "next_begin_offset", "broker_id"):
        assert pull[name] == moved[name], name
    assert 0 <= pull["response_ts"] - moved["response_ts"] < 1000


@pytest.mark.parametrize(
    ("name", "begins_ms"), [("broker-a", 3_000), pytest.param("broker-b", 40_000, marks=pytest.mark.long)]
)
def test_a_broker_that_was_killed_or_stopped_is_down_until_it_is_back(name: str, begins_ms: int) -> None:
    """Of one that was stopped, clients show it first: by a heartbeat that it did not answer."""

    def down(records: list[dict[str, Any]]) -> tuple[int, int]:
        of_it = [one for one in records if (one["broker_name"], one["broker_id"]) == (name, 0)]
        began = min(one["ts"] for one in of_it if one.get("error"))
        return began, min(one["ts"] for one in of_it if one["ts"] > began and not one.get("error"))

    logs = logs_of(ORDERS)
    began, ended = down(logs["broker_runtime"])
    real_began, real_ended = down(recorded(ORDERS, "broker_runtime"))
    assert 0 <= began - real_began + 1000 < begins_ms
    assert abs(ended - real_ended) < 5_000
