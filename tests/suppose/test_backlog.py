"""Rates of a backlog: made-up offsets counted by hand, and the samples counted row by row."""

from __future__ import annotations

import datetime as dt
from bisect import bisect_right
from collections import defaultdict
from dataclasses import replace
from typing import Any

import polars as pl
import pytest

from mqreplay.lake.warehouse import Warehouse
from mqreplay.moment.instant import Recorded, recorded
from mqreplay.suppose.backlog import Progress, backlog_rates, progress

QUEUE = {"broker_name": pl.String, "topic": pl.String, "queue_id": pl.Int32}
TIME = pl.Datetime("us", "UTC")
BEGIN = dt.datetime(2026, 11, 21, 2, 45, tzinfo=dt.UTC)
RESETS = pl.DataFrame(schema={"topic": pl.String, "from_ts": TIME, "to_ts": TIME})


def at(seconds: float) -> dt.datetime:
    return BEGIN + dt.timedelta(seconds=seconds)


def queue(queue_id: int) -> dict[str, Any]:
    return {"broker_name": "broker-a", "topic": "pay-topic", "queue_id": queue_id}


@pytest.fixture(scope="module")
def sample(night) -> Recorded:
    return recorded(Warehouse(night.root), "DefaultCluster")


def made(sample: Recorded, offsets: dict[int, list[tuple[float, int]]], owners: list[tuple[int, str, float, float]]):
    """Return a group's night with these offsets by queue, and owners of queues, who are its members."""
    commits = [
        queue(number) | {"committed": offset, "committed_ts": at(ts)}
        for number, each in offsets.items()
        for ts, offset in each
    ]
    held = [queue(n) | {"client_id": c, "from_ts": at(since), "to_ts": at(until)} for n, c, since, until in owners]
    owned = pl.DataFrame(held, QUEUE | {"client_id": pl.String, "from_ts": TIME, "to_ts": TIME}).sort("from_ts")
    frame = pl.DataFrame(commits, QUEUE | {"committed": pl.Int64, "committed_ts": TIME}).sort("committed_ts")
    return Progress(sample, frame, owned, owned.select("client_id", "from_ts", "to_ts"), RESETS)


def steady(per_second: float, since: int = 0, until: int = 300, first: int = 0) -> list[tuple[float, int]]:
    """Return commits every 5 s."""
    return [(ts, first + round(per_second * (ts - since))) for ts in range(since, until + 1, 5)]


def test_the_slowest_member_and_the_fastest_minute(sample):
    offsets = {0: steady(2), 1: steady(1), 2: steady(3, 0, 100) + steady(0.5, 105, 300, 300)}
    known = made(sample, offsets, [(0, "c1", 0, 300), (1, "c1", 0, 300), (2, "c2", 0, 300)])
    found = backlog_rates(known, "pay-topic", at(150), at(250))
    assert found.meanwhile == pytest.approx(0.5, abs=0.05)
    assert found.fastest == pytest.approx(3.0, abs=0.05)  # both members had it; c1 with two queues
    assert (found.members, round(found.without_s)) == (2, 0)


def test_the_commit_that_ends_a_standstill_does_not_count(sample):
    known = made(sample, {0: [*steady(2, 0, 100), (200, 500)]}, [(0, "c1", 0, 300)])
    assert backlog_rates(known, "pay-topic", at(100), at(200)).meanwhile == 0


def test_what_a_reset_skipped_is_no_consumption(sample):
    jumped = {0: [*steady(2, 0, 100), *steady(2, 105, 300, 90_000)]}
    known = made(sample, jumped, [(0, "c1", 0, 300)])
    assert backlog_rates(known, "pay-topic", at(200), at(250)).fastest > 1000
    reset = pl.DataFrame({"topic": ["pay-topic"], "from_ts": [at(101)], "to_ts": [at(106)]}, RESETS.schema)
    found = backlog_rates(replace(known, resets=reset, fastest={}), "pay-topic", at(200), at(250))
    assert found.fastest == pytest.approx(2.0, abs=0.05)


def test_a_queue_that_changed_its_owner_counts_for_nobody_meanwhile(sample):
    known = made(sample, {0: steady(4)}, [(0, "c1", 0, 30), (0, "c2", 32, 70)])
    found = backlog_rates(known, "pay-topic", at(0), at(70))
    assert (found.fastest, found.meanwhile) == (None, None)


def test_seconds_without_a_member(sample):
    known = made(sample, {0: steady(1)}, [(0, "c1", 0, 100), (0, "c2", 50, 120), (0, "c3", 160, 300)])
    found = backlog_rates(known, "pay-topic", at(90), at(190))
    assert (found.without_s, found.members) == (40, 0)


def test_an_instant_has_no_rate(sample):
    found = backlog_rates(made(sample, {0: steady(1)}, [(0, "c1", 0, 300)]), "pay-topic", at(90), at(90))
    assert (found.meanwhile, found.fastest, found.members, found.without_s) == (None, 1.0, 1, 0)


def test_what_arrived_is_what_producers_sent(sample, night):
    since, until = at(0), at(120)
    known = made(sample, {0: steady(1)}, [])
    found = backlog_rates(known, "pay-topic", since, until).arrived
    sent = night.table("silver.produce", "DefaultCluster").filter(
        (pl.col("topic") == "pay-topic") & pl.col("queue_offset").is_not_null()
    )
    meanwhile = sent.filter((pl.col("ts") > since - dt.timedelta(minutes=1)) & (pl.col("ts") <= until))
    assert len(found) == 8
    assert found["stored"].sum() == pytest.approx(len(meanwhile) / 180, rel=0.05)


def test_the_fastest_minute_of_a_sample_by_a_count_of_its_rows(sample):
    day = sample.last.date()
    known = progress(sample, "pay-group", day, RESETS)
    found = backlog_rates(known, "pay-topic", at(0), at(120))
    offsets: dict[Any, list[tuple[dt.datetime, int]]] = defaultdict(list)
    for row in known.commits.filter(pl.col("topic") == "pay-topic").iter_rows(named=True):
        offsets[row["broker_name"], row["queue_id"]].append((row["committed_ts"], row["committed"]))
    first = min(ts for each in offsets.values() for ts, _ in each)
    fastest = 0.0
    for step in range(6, int((sample.last - first).total_seconds()) // 10):
        end = first + dt.timedelta(seconds=10 * step)
        begin = end - dt.timedelta(minutes=1)
        finished: dict[str, int] = defaultdict(int)
        for row in known.owners.filter(pl.col("topic") == "pay-topic").iter_rows(named=True):
            if row["from_ts"] <= begin and row["to_ts"] >= end:
                each = offsets[row["broker_name"], row["queue_id"]]
                low, high = (bisect_right(each, (ts, 1 << 62)) - 1 for ts in (begin, end))
                finished[row["client_id"]] += max(each[high][1] - each[low][1], 0) if low >= 0 else 0
        fastest = max(fastest, *finished.values(), 0)
    assert fastest > 0
    assert found.fastest == pytest.approx(fastest / 60)
