"""A group's status in each window, by its commits and the queues' ends."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations_with_replacement
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

from last_instants import last_instant_of_shard
from mqreplay.core.status_windows import STATUSES
from mqreplay.decisions.group_status import PARTIAL, group_status, merged_status, status_of_shard
from mqreplay.decisions.status_windows import WINDOWS, windows
from mqreplay.evidence.offsets.queue_events import groups_with_accepted_commits_of_shard, queue_events
from oracles.group_status import group_status as law
from silver_moments import at
from silver_rows import rows

COMMIT = {
    "kind": "UPDATE",
    "client_id": "c1",
    "consumer_group": "g",
    "topic": "T",
    "broker_name": "b",
    "broker_id": 0,
    "queue_id": 0,
}
CHANGE = {"source_name": "b-0", "broker_name": "b", "broker_id": 0, "topic": "T", "consumer_group": "g", "queue_id": 0}
PULL = {
    "client_id": "c1",
    "consumer_group": "g",
    "topic": "T",
    "broker_name": "b",
    "queue_id": 0,
    "broker_id": 0,
    "queue_offset": 0,
    "opaque": 0,
}
WINDOW = 60
Row = dict[str, Any]


def commit(seconds: float, offset: int | None, **differs: object) -> Row:
    return {"ts": at(seconds), "commit_offset": offset} | differs


def end(seconds: float, offset: int, **differs: object) -> Row:
    return {"request_ts": at(seconds), "response_ts": at(seconds), "max_offset": offset} | differs


def saved(seconds: float, offset: int | None, **differs: object) -> Row:
    return {"to_ts": at(seconds), "new_offset": offset} | differs


def judged(commits: Sequence[Row], ends: Sequence[Row], changes: Sequence[Row] = ()) -> list[Row]:
    sent = rows("silver.offset_commit", COMMIT, commits)
    events = queue_events(
        rows("silver.offset_change", CHANGE, changes),
        sent,
        rows("silver.pull", PULL, ends),
        rows("silver.topic_stats", {}, []),
        groups_with_accepted_commits_of_shard(sent),
    )
    until_ms = last_instant_of_shard(events)
    assert until_ms is not None
    part = status_of_shard(windows(events, WINDOW, until_ms))
    return group_status([part], WINDOW).sort("consumer_group", "topic", "from_ts").to_dicts()


def keeps_up(**differs: object) -> tuple[list[Row], list[Row]]:
    commits = [commit(t, t, **differs) for t in range(5, 60, 5)]
    return commits, [end(t, t, **differs) for t in range(1, 60)]


def of(row: Row, *names: str) -> tuple[object, ...]:
    return tuple(row[name] for name in names)


def test_a_group_that_keeps_up() -> None:
    commits, ends = keeps_up()
    (row,) = judged(commits, ends)
    assert of(row, "status", "lag", "queues", "queues_unknown", "commits") == ("OK", 4, 1, 0, 11)
    assert of(row, "time_lag_ms", "source") == (4_000.0, "offset_commit")
    assert of(row, "day", "from_ts", "to_ts") == (at(0).date(), at(0), at(60))


def test_lags_add_up_over_queues_and_the_one_behind_in_time_counts() -> None:
    other = {"broker_name": "z"}
    commits, ends = keeps_up()
    slow = [commit(t, 3, **other) for t in range(5, 60, 5)]
    (row,) = judged(commits + slow, ends + [end(t, 10 + t, **other) for t in range(1, 60)])
    assert of(row, "status", "worst_broker_name", "worst_queue_id") == ("STALL", "z", 0)
    assert of(row, "lag", "queues", "commits") == (4 + 66, 2, 22)
    assert row["time_lag_ms"] == 66_000.0, "3 was the end at -7 s, on the line of the ends that were seen"


def test_when_all_groups_stop_and_messages_go_on_it_shows() -> None:
    commits, ends = keeps_up()
    found = judged(commits, ends + [end(t, t) for t in range(60, 200)])
    assert [r["status"] for r in found] == ["OK", "STOP", "STOP", "STOP"]
    assert [r["commits"] for r in found] == [11, 0, 0, 0]
    assert found[-1]["lag"] == 199 - 55


def test_a_commit_that_reached_no_broker_is_none() -> None:
    commits, ends = keeps_up()
    failed = [commit(t, t, error="connect failed") for t in range(60, 118, 5)]
    found = judged(commits + failed, ends + [end(t, t) for t in range(60, 118)])
    assert [of(r, "status", "commits") for r in found] == [("OK", 11), ("STOP", 0)]


def test_a_commit_that_a_broker_refused_is_none() -> None:
    commits, ends = keeps_up()
    later = ends + [end(t, t) for t in range(60, 118)]
    for refusal in (
        {"response_code": 0, "remark": "Offset has been previously reset"},
        {"response_code": 26, "remark": "Group g not exist!"},
    ):
        refused = [commit(t, t, **refusal) for t in range(60, 118, 5)]
        found = judged(commits + refused, later)
        assert [of(r, "status", "commits") for r in found] == [("OK", 11), ("STOP", 0)], refusal
    stored = [commit(t, t, response_code=0) for t in range(60, 118, 5)]
    assert [r["status"] for r in judged(commits + stored, later)] == ["OK", "OK"]


def test_groups_of_rocketmq_itself_are_not_judged() -> None:
    commits, ends = keeps_up(consumer_group="CID_RMQ_SYS_REVIVE_GROUP")
    own, own_ends = keeps_up()
    assert [row["consumer_group"] for row in judged(commits + own, ends + own_ends)] == ["g"]


def test_questions_are_no_commits() -> None:
    commits, ends = keeps_up()
    asked = [commit(50, 999, kind="QUERY"), commit(51, None)]
    assert [r["commits"] for r in judged(commits + asked, ends)] == [11]


def test_where_an_end_is_not_known_nothing_is_made_up() -> None:
    commits, ends = keeps_up()
    dark = [commit(t, t, queue_id=1) for t in range(5, 60, 5)]
    (row,) = judged(commits + dark, ends)
    assert of(row, "status", "lag", "time_lag_ms", "queues_unknown") == ("undetermined", None, None, 1)
    assert "not known" in row["reason"]


def test_a_trouble_that_is_known_stands_beside_what_is_not() -> None:
    ends = [end(t, 10 + t) for t in range(1, 60)]
    dark = [commit(t, t, queue_id=1) for t in range(5, 60, 5)]
    (row,) = judged([commit(t, 3) for t in range(5, 60, 5)] + dark, ends)
    assert of(row, "status", "lag", "queues_unknown", "worst_queue_id") == ("STALL", None, 1, 0)
    assert row["reason"] == "the worst of 1 queue with known lag"


NO_END = "the end of {} is not known"
BELOW_ZERO = "the committed offset of {} is negative"
SO = ", so the lag is not known"


@pytest.mark.parametrize(
    ("dark", "negative", "reason"),
    [
        (1, 0, f"{NO_END.format('1 queue')}{SO}"),
        (2, 0, f"{NO_END.format('2 queues')}{SO}"),
        (0, 1, f"{BELOW_ZERO.format('1 queue')}{SO}"),
        (2, 1, f"{NO_END.format('2 queues')}, and {BELOW_ZERO.format('1 queue')}{SO}"),
    ],
)
def test_a_reason_agrees_with_the_queues_of_unknown_lag(dark: int, negative: int, reason: str) -> None:
    commits, ends = keeps_up()
    for queue_id in range(1, dark + 1):
        commits += [commit(t, t, queue_id=queue_id) for t in range(5, 60, 5)]
    for queue_id in range(5, 5 + negative):
        commits += [commit(t, -7955368551255983524, queue_id=queue_id) for t in range(5, 60, 5)]
        ends += [end(t, 50, queue_id=queue_id) for t in range(1, 60)]
    (row,) = judged(commits, ends)
    assert of(row, "status", "lag", "queues_unknown", "reason") == ("undetermined", None, dark + negative, reason)


def test_an_end_that_was_not_known_earlier_leaves_only_the_status_open() -> None:
    (row,) = judged([commit(5, 1), commit(50, 5)], [end(40, 7), end(55, 7)])
    assert of(row, "status", "lag", "queues_unknown") == ("undetermined", 2, 0)
    assert row["reason"] == "the end of a queue was not known at an earlier commit, so its status is not"


def test_a_slaves_end_is_not_taken_for_the_queues() -> None:
    commits, _ = keeps_up()
    (row,) = judged(commits, [end(t, 5, broker_id=1) for t in range(1, 60)])
    assert row["queues_unknown"] == 1


def test_snapshots_of_the_master_stand_in_for_a_group_without_commits() -> None:
    commits, ends = keeps_up()
    other = {"consumer_group": "h"}
    changes = [saved(t, t, **other) for t in range(5, 60, 5)]
    changes += [saved(t, 1, broker_id=1, **other) for t in range(5, 60, 5)]
    changes += [saved(7, None, **other), saved(8, 99)]
    found = judged(commits, ends, changes)
    assert [of(r, "consumer_group", "source", "commits", "lag") for r in found] == [
        ("g", "offset_commit", 11, 4),
        ("h", "offset_change", 11, 4),
    ]


def test_retry_topics_are_rows_of_their_own() -> None:
    commits, ends = keeps_up()
    more, more_ends = keeps_up(topic="%RETRY%g")
    assert [r["topic"] for r in judged(commits + more, ends + more_ends)] == ["%RETRY%g", "T"]


def test_an_offset_set_back_and_not_made_up_for_is_rewind() -> None:
    commits = [commit(t, 100 + t) for t in range(5, 40, 5)] + [commit(t, t) for t in range(40, 60, 5)]
    (row,) = judged(commits, [end(t, 300 + t) for t in range(1, 60)])
    assert row["status"] == "REWIND"


# Groups of queues with known windows.


def partial(queues: Sequence[tuple[Any, ...]]) -> pl.DataFrame:
    """Of rows consumer_group, broker_name, queue_id, status, lag, time_lag_ms."""
    listed = [
        (group, "T", name, queue, "offset_commit", [(60_000, status, lag, time_lag, 1, 0)])
        for group, name, queue, status, lag, time_lag in queues
    ]
    listed.append(("late", "T", "b", 0, "offset_commit", []))  # its first commit is after the last window
    columns = list(zip(*listed, strict=True))
    kinds = (pa.string(), pa.string(), pa.string(), pa.int32(), pa.string(), WINDOWS)
    names = ("consumer_group", "topic", "broker_name", "queue_id", "source", "w")
    arrays = [pa.array(column, kind) for column, kind in zip(columns, kinds, strict=True)]
    return status_of_shard(pa.table(arrays, names=names))


def in_one_and_in_shards(queues: Sequence[tuple[Any, ...]]) -> list[Row]:
    """The rows of gold.group_status, having seen that it does not matter in which shard a queue is."""
    found = group_status([partial(queues)], WINDOW)
    each = [partial([queue]) for queue in queues]
    by_two = [merged_status(each[number : number + 2]) for number in range(0, len(each), 2)]
    for parts in (each, each[::-1], by_two):
        assert group_status(parts, WINDOW).sort("consumer_group").equals(found.sort("consumer_group"))
    return found.to_dicts()


def test_the_worst_of_queues_is_the_laws() -> None:
    every = [statuses for size in (1, 2, 3) for statuses in combinations_with_replacement([*STATUSES, None], size)]
    found = in_one_and_in_shards(
        [
            (str(number), "b", queue, status, 1, 1.0)
            for number, statuses in enumerate(every)
            for queue, status in enumerate(statuses)
        ]
    )
    assert {r["consumer_group"]: r["status"] for r in found} == {
        str(number): law(statuses) or "undetermined" for number, statuses in enumerate(every)
    }


@pytest.mark.parametrize(
    ("queues", "worst"),
    [
        # broker name, queue id, status, lag: the status first, then the lag, the name and the id
        ([("a", 7, "OK", 9), ("b", 0, "STALL", 1)], ("b", 0)),
        ([("a", 7, "STALL", 9), ("b", 0, "STALL", 1)], ("a", 7)),
        ([("a", 7, "OK", None), ("b", 0, "OK", -5)], ("a", 7)),
        ([("a", 7, None, 2**63 - 1), ("b", 0, "OK", 0)], ("b", 0)),
        ([("a", 7, None, -(2**63)), ("a", 0, None, -(2**63))], ("a", 7)),
        ([("a", 7, "OK", 2**63 - 1), ("b", 0, "OK", 2**63 - 2)], ("a", 7)),
        ([("a", 7, "OK", 1), ("a", 2**31 - 1, "OK", 1), ("B", 2**31 - 1, "OK", 1)], ("a", 2**31 - 1)),
        ([("a", -1, "REWIND", 1), ("a", -(2**31), "REWIND", 1)], ("a", -1)),
        # Names are compared as UTF-8, whichever shard knows which of them.
        ([("z", 1, "OK", 1), ("é", 0, "OK", 1), ("zz", 9, "OK", 1)], ("é", 0)),
        ([("\uffff", 1, "OK", 1), ("\U0001f600", 0, "OK", 1)], ("\U0001f600", 0)),
    ],
)
def test_which_queue_is_the_worst(
    queues: list[tuple[str, int, str | None, int | None]], worst: tuple[str, int]
) -> None:
    (row,) = in_one_and_in_shards([("g", *queue, 1.0) for queue in queues])
    assert of(row, "worst_broker_name", "worst_queue_id") == worst


def test_lags_that_no_bigint_holds_together_are_no_number() -> None:
    most = 2**63 - 1
    for lags, want in (((most - 1, 1), most), ((most, 1), None), ((most, most, 5), None), ((3, None), None)):
        queues = [("g", "a", number, "OK", lag, 1.0) for number, lag in enumerate(lags)]
        (row,) = in_one_and_in_shards(queues)
        assert row["lag"] == want, lags


def test_a_lag_in_time_that_is_not_known_of_a_queue_is_not_known() -> None:
    queues = [("g", "a", 0, "OK", 1, 7.0), ("g", "a", 1, "OK", 1, 9.0), ("h", "a", 0, "OK", 1, 7.0)]
    found = in_one_and_in_shards([*queues, ("h", "a", 1, "OK", 1, None)])
    assert {r["consumer_group"]: r["time_lag_ms"] for r in found} == {"g": 9.0, "h": None}


def test_no_queues_give_no_rows_of_the_same_columns() -> None:
    some, none = partial([("g", "a", 0, "OK", 1, 7.0)]), partial([])
    assert none.schema == some.schema == PARTIAL
    assert none.is_empty()
    for parts in ([], [none], [none, none]):
        assert group_status(parts, WINDOW).is_empty()
        assert group_status(parts, WINDOW).schema == group_status([some], WINDOW).schema
