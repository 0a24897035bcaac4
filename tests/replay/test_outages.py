"""When brokers did not answer, when queues stood still, whose clock is off: each just below its bound and above."""

from __future__ import annotations

import datetime as dt

import pytest

from mqreplay.replay.broker_outages import broker_outages
from mqreplay.replay.by_queue import clocks as by_queue_clocks
from mqreplay.replay.by_queue.looks import of_look
from mqreplay.replay.client_clocks import SCHEMA, by_recorders_clock, client_clocks, clocks_frame
from mqreplay.replay.findings.clocks import clock_findings
from mqreplay.replay.standstills import standstills
from silver_moments import BEGAN, at

BROKER = {"broker_name": "b", "broker_id": 0}
GONE = {
    "client_id": "c",
    "cause": "master_gone",
    "judgement": "agree",
    "reason": "r",
    "queue_offset": 0,
    "pull_from_which_node": 0,
}
QUEUE = {"consumer_group": "g", "topic": "T", "broker_name": "b", "queue_id": 0}


@pytest.fixture
def outages(rows):
    def judge(polls=(), beats=(), pulls=(), failovers=()):
        runtime = rows("silver.broker_runtime", BROKER, list(polls))
        heartbeat = rows(
            "silver.heartbeat", BROKER | {"client_id": "c", "kind": "HEART_BEAT", "broker_addr": "b:1"}, list(beats)
        )
        pull = rows("silver.pull", BROKER | QUEUE | {"client_id": "c", "queue_offset": 0}, list(pulls))
        gone = rows("gold.pull_route", BROKER | QUEUE | GONE, list(failovers))
        found = broker_outages(runtime, heartbeat, pull, gone, 10, 30).collect()
        return [
            (
                (r.from_ts - at(0).replace(tzinfo=None)).total_seconds(),
                (r.to_ts - at(0).replace(tzinfo=None)).total_seconds(),
            )
            for r in found
        ]

    return judge


def poll(seconds: float, error: str | None = None) -> dict:
    return {"ts": at(seconds), "error": error}


def test_a_polled_broker_is_down_from_its_first_error_to_its_next_answer(outages):
    polls = [poll(s, "refused" if 10 <= s < 25 else None) for s in range(40)]
    assert outages(polls) == [(10.0, 25.0)]


def test_a_pause_is_no_outage(outages):
    assert outages([poll(s, "slow" if 10 <= s < 16 else None) for s in range(40)]) == []


def test_a_silence_in_which_nobody_got_an_error_is_none(outages):
    beats = [{"ts": at(s), "response_ts": at(s), "response_code": 0} for s in (0, 30, 90, 120)]
    assert outages(beats=beats) == []


def test_clients_errors_tell_where_nobody_polled(outages):
    beats = [{"ts": at(s), "response_ts": at(s), "response_code": 0} for s in (0, 10, 20, 80, 90)]
    beats += [{"ts": at(s), "error": "timeout"} for s in (30, 50)]
    assert outages(beats=beats) == [(20.0, 80.0)]


def test_a_route_without_the_master_is_no_proof_that_it_is_down(outages):
    beats = [{"ts": at(s), "response_ts": at(s), "response_code": 0} for s in (0, 60, 120)]
    assert outages(beats=beats, failovers=[{"request_ts": at(s)} for s in (10, 30, 70)]) == []


@pytest.fixture
def still(rows, look_at):
    def judge(commits, ends, owned=(0, 200), pulls=(), saved=(), copies=()):
        change = {"source_name": "b-0", "broker_id": 0}
        earlier = {s: max((at(c) for c in copies if c < s), default=None) for s, _ in saved}
        held = [None, *(o for _, o in saved)]  # what the copy before showed
        changes = [
            change | {"from_ts": earlier[s], "to_ts": at(s), "previous_offset": old, "new_offset": o}
            for (s, o), old in zip(saved, held, strict=False)
        ]
        copied = [change | {"ts": at(s), "file_name": "consumerOffset.json", "broker_name": "b"} for s in copies]
        sent = [{"ts": at(s), "commit_offset": o, "client_id": "c", "kind": "UPDATE"} for s, o in commits]
        told = [
            {"request_ts": at(s), "response_ts": at(s), "max_offset": o, "min_offset": 0, "broker_id": 0}
            for s, o in ends
        ]
        pull = rows("silver.pull", QUEUE | {"client_id": "c", "queue_offset": 0}, told + list(pulls))
        owner = [{"client_id": "c", "from_ts": at(owned[0]), "to_ts": at(owned[1]), "source": "pull"}]
        looked = look_at(
            rows("silver.offset_change", QUEUE, changes),
            rows("silver.offset_commit", QUEUE, sent),
            pull,
            rows("silver.snapshot", {"entries": 1, "changed": 1}, copied),
        )
        owners = rows("gold.queue_owner", QUEUE, owner)
        found = standstills(of_look(looked, "still"), "c", pull, owners, 60).collect()
        return [(r.offset, r.waiting, r.refused) for r in found]

    return judge


ENDS = [(s, 40 + s) for s in range(0, 200, 5)]


def test_an_offset_that_stands_while_messages_wait_is_a_standstill(still):
    assert still([(0, 10), (5, 30), (100, 95), (150, 140), (199, 190)], ENDS) == [(30, 110, 0)]


def test_one_that_stands_a_while_or_with_nothing_waiting_is_none(still):
    assert still([(0, 10), (5, 30), (60, 95), (110, 140), (160, 150), (199, 160)], ENDS) == []
    assert still([(0, 240)], [(s, 240) for s in range(0, 200, 5)]) == []


def test_a_group_that_was_stopped_is_not_stuck(still):
    assert still([(0, 10), (5, 30)], ENDS, owned=(0, 30)) == []


def test_between_two_copies_an_offset_may_have_moved_at_any_time(still):
    saved = [(0, 30), (100, 95), (199, 190)]
    assert still([], ENDS, saved=saved, copies=[0, 100, 199]) == []
    assert still([], ENDS, saved=saved, copies=[0, 80, 100, 199]) == [(30, 90, 0)]


def test_refusals_are_counted(still):
    busy = [{"request_ts": at(s), "response_code": 2, "broker_id": 1} for s in range(20, 90, 10)]
    assert still([(0, 10), (5, 30), (100, 95), (150, 96), (199, 97)], ENDS, pulls=busy) == [(30, 110, 7)]


def test_a_clock_that_is_off_is_found_by_commits_and_put_right(rows, look_at):
    def commits(client, off):
        return [
            {"client_id": client, "ts": at(off + 10 * n), "commit_offset": 10 * n, "queue_id": q}
            for n in range(1, 6)
            for q in [1 if client == "a" else 2]
        ]

    changes = [
        {
            "previous_offset": 10 * (n - 1),
            "new_offset": 10 * n,
            "to_ts": at(10 * n + 3),
            "queue_id": q,
            "source_name": "b-0",
        }
        for n in range(1, 6)
        for q in (1, 2)
    ]
    sent = rows("silver.offset_commit", QUEUE | {"kind": "UPDATE"}, commits("a", 0) + commits("b", 3600))
    changed = rows("silver.offset_change", QUEUE | {"broker_id": 0}, changes)
    clocks = of_look(look_at(changed, sent, rows("silver.pull", {}, [])), "clock")
    found = client_clocks(clocks, 60).collect()
    assert [(row.client_id, row.skew_ms, row.said_until_ms) for row in found] == [("b", 3_600_000, None)]
    right = by_recorders_clock(sent, found, "ts").where("client_id = 'b'").orderBy("ts").first()
    assert right.ts == at(10).replace(tzinfo=None)


def test_copies_far_apart_leave_open_whether_a_clock_is_off(spark):
    told = [("near", 70_000, 135_000, 10), ("far", 3_600_000, 135_000, 10), ("seldom", 3_600_000, 0, 2)]
    each = [(who, off + n, n, off, unsure) for who, off, unsure, count in told for n in range(0, count * 5_000, 5_000)]
    clocks = spark.createDataFrame(each, by_queue_clocks.SCHEMA)
    assert [row.client_id for row in client_clocks(clocks, 60).collect()] == ["far"]


def test_a_clock_that_jumps_is_put_right_in_each_of_its_stretches(rows):
    sent = rows(
        "silver.offset_commit", QUEUE | {"client_id": "b", "kind": "UPDATE"}, [{"ts": at(s)} for s in (0, 99, 3_700)]
    )
    jumped = [("b", int(at(200).timestamp() * 1000), None, 1, 0, 9), ("b", None, 1, None, 3_600_000, 9)]
    found = sent.sparkSession.createDataFrame(jumped, SCHEMA).collect()
    right = [row.ts for row in by_recorders_clock(sent, found, "ts").orderBy("ts").collect()]
    assert right == [at(s).replace(tzinfo=None) for s in (0, 99, 100)]


def test_a_clock_that_is_off_is_told_of_each_day_it_was_off_on(rows):
    clock = clocks_frame(rows("silver.pull", {}, []).sparkSession, [("ahead", None, None, None, 76_000, 9)], "c")
    own = QUEUE | {"client_id": "ahead", "queue_offset": 0}
    midnight = dt.datetime.combine(BEGAN.date(), dt.time())
    put_right = [{"request_ts": midnight.replace(tzinfo=dt.UTC) + dt.timedelta(seconds=s)} for s in (-46, -6, 10)]
    found = clock_findings(clock, rows("silver.pull", own, put_right), rows("silver.offset_commit", own, [])).collect()
    spans = sorted(((r.from_ts - midnight).total_seconds(), (r.to_ts - midnight).total_seconds()) for r in found)
    assert spans == [(-46, -6), (10, 10)]
