"""Lag that grows without a known holder: who counts, and what does not."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from mqreplay.evidence.intervals import INSTANT
from mqreplay.evidence.lags.growing_lag import (
    LOCAL_OFFSETS,
    NO_OFFSETS,
    PROXY_GROUP,
    advances_of_shard,
    growing_lag,
    lag_gaps,
)
from mqreplay.words.keys import GROUP_QUEUE
from silver_moments import at
from silver_rows import rows

Row = dict[str, Any]
QUEUE = {"consumer_group": "g", "topic": "T", "broker_name": "b", "queue_id": 0}
STANDSTILL = {"offset": pl.Int64, "since_ts": INSTANT, "from_ts": INSTANT, "to_ts": INSTANT}
STANDSTILL |= {"waiting": pl.Int64, "arrived": pl.Int64}
STILL = {"consumer_group": pl.String, "topic": pl.String, "broker_name": pl.String, "queue_id": pl.Int32}
SPAN = {"from_ts": INSTANT, "to_ts": INSTANT}
MEMBERS = {"consumer_group": pl.String, "client_id": pl.String} | SPAN
OUTAGES = {"broker_name": pl.String, "broker_id": pl.Int64} | SPAN
ADVANCED = {"consumer_group": ["g"], "topic": ["T"], "advanced_ts": [at(0)]}


def standstill(began: float, ended: float, arrived: int = 9, **differs: object) -> Row:
    span = {"offset": 5, "since_ts": at(began - 1), "from_ts": at(began), "to_ts": at(ended)}
    return QUEUE | {"spans": [span | {"waiting": arrived, "arrived": arrived}]} | differs


def member(began: float, ended: float, group: str = "g") -> Row:
    return {"consumer_group": group, "client_id": "c", "from_ts": at(began), "to_ts": at(ended)}


def down(began: float, ended: float, broker_id: int = 0) -> Row:
    return {"broker_name": "b", "broker_id": broker_id, "from_ts": at(began), "to_ts": at(ended)}


def grown(
    *still: Row,
    held: list[Row] | None = None,
    advanced: bool = True,
    members: list[Row] | None = None,
    beats: list[Row] | None = None,
    outages: list[Row] | None = None,
) -> list[tuple[str, str]]:
    advances = pl.DataFrame(ADVANCED, {"consumer_group": pl.String, "topic": pl.String, "advanced_ts": INSTANT})
    found = growing_lag(
        pl.DataFrame(list(still), STILL | {"spans": pl.List(pl.Struct(STANDSTILL))}),
        pl.DataFrame(held or [], {name: STILL[name] for name in GROUP_QUEUE} | {"from_ts": INSTANT}),
        advances if advanced else advances.clear(),
        pl.DataFrame(members or [], MEMBERS),
        rows("silver.heartbeat", {"kind": "HEART_BEAT", "client_id": "c"}, beats or []),
        pl.DataFrame(outages or [], OUTAGES),
        60,
    )
    return found.select("consumer_group", "topic").rows()


def test_a_group_that_advanced_counts_without_members() -> None:
    assert grown(standstill(10, 100)) == [("g", "T")]


@pytest.mark.parametrize(
    ("members", "counts"),
    [([], False), ([member(50, 60)], True), ([member(0, 10)], False), ([member(0, 200, "other")], False)],
)
def test_a_group_that_never_advanced_counts_with_a_member_alone(members: list[Row], counts: bool) -> None:
    assert bool(grown(standstill(10, 100), advanced=False, members=members)) is counts


def test_what_a_member_held_is_a_stuck_queue() -> None:
    assert grown(standstill(10, 100), held=[QUEUE | {"from_ts": at(10)}]) == []
    assert grown(standstill(10, 100), held=[QUEUE | {"from_ts": at(10), "queue_id": 1}]) == [("g", "T")]


def test_a_backlog_to_which_nothing_is_added_does_not_grow() -> None:
    assert grown(standstill(10, 100, arrived=0)) == []


@pytest.mark.parametrize(
    ("outages", "counts"),
    [
        ([down(20, 49.999)], True),
        ([down(20, 51)], False),
        ([down(0, 200)], False),
        ([down(200, 300)], True),
        ([down(0, 200, broker_id=1)], True),
    ],
)
def test_the_time_of_an_outage_does_not_count(outages: list[Row], counts: bool) -> None:
    assert bool(grown(standstill(10, 100), outages=outages)) is counts


@pytest.mark.parametrize(
    "other", [{"topic": "%RETRY%g"}, {"topic": "%DLQ%g"}, {"consumer_group": "CID_RMQ_SYS_REVIVE_GROUP"}]
)
def test_retry_topics_and_groups_of_the_system_do_not_count(other: Row) -> None:
    members = [member(0, 200), member(0, 200, "CID_RMQ_SYS_REVIVE_GROUP")]
    assert grown(standstill(10, 100, **other), members=members) == []


def test_offsets_of_a_broadcasting_group_are_with_its_clients() -> None:
    data = {"group_name": "g", "message_model": "BROADCASTING", "subscriptions": []}
    assert grown(standstill(10, 100), beats=[{"ts": at(0), "consumer_data_set": [data]}]) == []


def test_a_group_advanced_by_copies_of_the_master_or_by_commits_that_differ() -> None:
    change = QUEUE | {"broker_id": 0, "source_name": "b-0"}
    changes = [
        {"to_ts": at(5), "previous_offset": 1, "new_offset": 2},
        {"to_ts": at(6), "previous_offset": 2, "new_offset": 1},
        {"to_ts": at(7), "previous_offset": None, "new_offset": 9, "topic": "first copy"},
        {"to_ts": at(8), "previous_offset": 1, "new_offset": 2, "topic": "slave", "broker_id": 1},
    ]
    sent = QUEUE | {"kind": "UPDATE", "client_id": "c", "topic": "U"}
    commits = [{"ts": at(1), "commit_offset": 4}, {"ts": at(2), "commit_offset": 5}]
    commits += [{"ts": at(s), "commit_offset": 4, "topic": "same again"} for s in (1, 2)]
    found = advances_of_shard(
        rows("silver.offset_change", change, changes), rows("silver.offset_commit", sent, commits)
    )
    assert sorted(found.rows()) == [("g", "T", at(5)), ("g", "U", at(2))]


def gaps(*sessions: Row, known: tuple[str, ...] = (), beats: list[Row] | None = None) -> list[tuple[str, str, int]]:
    heartbeat = rows("silver.heartbeat", {"kind": "HEART_BEAT", "client_id": "c"}, beats or [])
    found = lag_gaps(pl.DataFrame([*sessions], MEMBERS), heartbeat, known, at(0).date(), 60)
    assert set(found["decision"]) <= {"finding lag_grows"}
    return sorted(found.select("consumer_group", "reason", "decisions").rows())


def test_a_group_whose_lag_nobody_can_know_is_a_gap() -> None:
    assert gaps(member(0, 90)) == [("g", NO_OFFSETS, 1)]
    assert gaps(member(0, 90), known=("g",)) == []
    assert gaps(member(0, 30)) == [], "nothing can have been hidden"
    assert gaps(member(-90_000, -89_000)) == [], "it was gone before the day"
    assert gaps(member(0, 90, "CID_RMQ_SYS_TRANS")) == []
    assert gaps(member(0, 90, PROXY_GROUP)) == []


def test_offsets_of_a_broadcasting_group_are_a_gap() -> None:
    group = {"group_name": "g", "message_model": "BROADCASTING", "subscriptions": []}
    beat = {"ts": at(0), "consumer_data_set": [group]}
    assert gaps(member(0, 90), known=("g",), beats=[beat]) == [("g", LOCAL_OFFSETS, 1)]
