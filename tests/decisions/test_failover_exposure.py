"""The cost of losing a master, by the copies at that time; unknown is never zero."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from mqreplay.decisions.failover_exposure import LACKED, failover_exposure, lacked_by_minute, lacked_of_shard
from mqreplay.evidence.offsets.queue_events import last_copies, queue_events
from mqreplay.evidence.offsets.slave_copies import both_files
from queue_shards import queue_shards
from silver_moments import BEGAN, at
from silver_rows import rows

CHANGE = {"source_name": "x", "broker_name": "b", "topic": "T", "consumer_group": "g", "queue_id": 0}
COPY = {"source_name": "x", "file_name": "consumerOffset.json", "entries": 1, "changed": 0}
POLL = {"broker_name": "b", "full_table": False}
Row = dict[str, Any]


def copied(seconds: float, broker_id: int | None, offset: int | None, **differs: object) -> Row:
    return {"to_ts": at(seconds), "broker_id": broker_id, "new_offset": offset} | differs


def polled(seconds: float, broker_id: int | None, end: int | None, error: str | None = None) -> Row:
    return {"ts": at(seconds), "broker_id": broker_id, "commit_log_max_offset": end, "error": error}


def exposed(polls: Sequence[Row], changes: Sequence[Row]) -> pl.DataFrame:
    """The rows of gold.failover_exposure, having seen that it does not matter in which shard a queue is."""
    files = sorted({(change.get("broker_name", "b"), change["broker_id"]) for change in changes}, key=repr)
    copies = [{"broker_name": name, "broker_id": broker_id, "ts": at(999)} for name, broker_id in files]
    slaves = last_copies(rows("silver.snapshot", COPY, copies)).of_slaves
    none = (rows("silver.offset_commit", {}, []), rows("silver.pull", {}, []), rows("silver.topic_stats", {}, []))
    found = []
    for shards in (1, 7):
        parts = [
            lacked_of_shard(both_files(queue_events(part, *none, set()), slaves))
            for part in queue_shards(rows("silver.offset_change", CHANGE, changes), shards)
        ]
        found.append(failover_exposure(rows("silver.broker_runtime", POLL, polls), lacked_by_minute(parts)))
    assert found[0].equals(found[1])
    return found[0]


def judged(polls: Sequence[Row], changes: Sequence[Row]) -> dict[int, Row]:
    """By the minute since the beginning."""
    found = {}
    for row in exposed(polls, changes).to_dicts():
        groups = row["redelivered_by_group"]
        by_group = None if groups is None else {entry["key"]: entry["value"] for entry in groups}
        minute = int((row["minute_ts"] - BEGAN).total_seconds() // 60)
        found[minute] = row | {"redelivered_by_group": by_group}
    return found


def of(row: Row, *names: str) -> tuple[object, ...]:
    return tuple(row[name] for name in names)


def test_bytes_are_of_the_last_polls_of_the_minute_and_of_the_furthest_slave() -> None:
    polls = [polled(1, 0, 900), polled(50, 0, 1000), polled(51, 1, 400), polled(52, 2, 700), polled(59, 2, None)]
    row = judged(polls, [])[0]
    assert of(row, "master_up", "master_end", "slave_end", "bytes_behind") == (True, 1000, 700, 300)
    assert of(row, "day", "broker_name") == (BEGAN.date(), "b")


def test_bytes_are_unknown_where_an_end_is() -> None:
    dead = "connect failed"
    found = judged(
        [polled(1, 0, 100), polled(61, 0, None, dead), polled(2, 1, 90), polled(62, 1, 100), polled(121, 0, 5)], []
    )
    assert [of(found[m], "master_up", "bytes_behind") for m in range(3)] == [(True, 10), (False, None), (True, None)]


def test_a_slave_polled_after_its_master_is_not_behind() -> None:
    assert judged([polled(1, 0, 100), polled(30, 1, 120)], [])[0]["bytes_behind"] == 0


def test_a_master_that_answers_once_in_a_minute_is_up_in_it() -> None:
    assert judged([polled(1, 0, None, "e"), polled(59, 0, 7)], [])[0]["master_up"] is True


def test_whether_a_master_is_up_is_not_known_where_only_slaves_were_polled() -> None:
    found = judged([polled(1, 1, 7), polled(70, None, 9)], [])
    assert [of(row, "master_up", "master_end", "slave_end") for row in found.values()] == [(None, None, 7)]


def test_messages_again_as_the_files_were_at_the_minutes_end() -> None:
    changes = [copied(1, 0, 10), copied(2, 1, 10), copied(55, 0, 17), copied(61, 1, 17), copied(130, 0, 20)]
    found = judged([], changes)
    assert [found[m]["redelivered"] for m in range(3)] == [7, 0, 3]
    assert [found[m]["redelivered_by_group"] for m in range(3)] == [{"g": 7}, {}, {"g": 3}]


def test_minutes_without_a_change_keep_the_values_before() -> None:
    changes = [copied(1, 0, 10), copied(2, 1, 4)]
    found = judged([polled(185, 0, 1)], changes)
    assert of(found[3], "redelivered", "redelivered_by_group", "unknown_queues") == (6, {"g": 6}, 0)


def test_queues_and_groups_add_up_and_a_slave_ahead_takes_nothing_off() -> None:
    other, ahead = {"consumer_group": "f"}, {"queue_id": 1}
    changes = [
        *[copied(1, 0, 10), copied(2, 1, 8)],
        *[copied(1, 0, 10, **ahead), copied(2, 1, 90, **ahead)],
        *[copied(1, 0, 5, **other), copied(2, 1, 2, **other)],
    ]
    row = judged([], changes)[0]
    assert of(row, "redelivered_by_group", "redelivered") == ({"g": 2, "f": 3}, 5)
    assert list(row["redelivered_by_group"]) == ["f", "g"], "in the order of the names"


def test_a_group_that_changes_later_does_not_forget_the_others() -> None:
    other = {"consumer_group": "h"}
    changes = [copied(1, 0, 10), copied(2, 1, 8), copied(61, 0, 5, **other), copied(62, 1, 4, **other)]
    assert judged([], changes)[1]["redelivered_by_group"] == {"g": 2, "h": 1}


def test_queues_of_one_file_only_are_unknown_and_not_counted() -> None:
    only = {"queue_id": 1}
    changes = [copied(1, 0, 10), copied(2, 1, 8), copied(3, 0, 500, **only), copied(70, 1, 500, **only)]
    found = judged([], changes)
    assert [of(found[m], "redelivered", "unknown_queues") for m in range(2)] == [(2, 1), (2, 0)]


def test_a_queue_gone_from_both_files_is_no_longer_unknown() -> None:
    gone = {"queue_id": 1}
    changes = [copied(1, 0, 10), copied(2, 1, 10), copied(3, 0, 50, **gone), copied(4, 1, 20, **gone)]
    changes += [copied(61, 0, None, **gone), copied(121, 1, None, **gone)]
    found = judged([], changes)
    assert [of(found[m], "redelivered", "unknown_queues") for m in range(3)] == [(30, 0), (0, 1), (0, 0)]


def test_before_the_slaves_first_copy_nothing_is_known() -> None:
    polls = [polled(5, 0, 1), polled(65, 0, 2), polled(125, 0, 3)]
    found = judged(polls, [copied(1, 0, 10), copied(61, 0, 12), copied(121, 1, 9)])
    assert [of(found[m], "redelivered", "unknown_queues") for m in range(3)] == [(None, None), (None, None), (3, 0)]


def test_a_master_without_a_slave_or_a_client_of_its_own_is_not_judged() -> None:
    found = judged([polled(1, 0, 5)], [copied(1, 0, 10), copied(2, None, 3, client_id="c")])
    assert of(found[0], "redelivered", "redelivered_by_group", "unknown_queues") == (None, None, None)


def test_of_two_slaves_the_furthest_copy_counts_whichever_came_last() -> None:
    changes = [copied(1, 0, 100), copied(2, 1, 95), copied(3, 2, 40), copied(61, 0, 110), copied(63, 2, 109)]
    found = judged([], changes)
    assert [found[m]["redelivered"] for m in range(2)] == [5, 1]
    assert [found[m]["redelivered_by_group"] for m in range(2)] == [{"g": 5}, {"g": 1}]


def test_a_copy_that_lacks_fewer_queues_is_further_than_one_that_lacks_fewer_messages() -> None:
    only = {"queue_id": 1}
    changes = [copied(1, 0, 100), copied(2, 1, 99), copied(3, 2, 40), copied(1, 0, 7, **only), copied(4, 2, 7, **only)]
    assert of(judged([], changes)[0], "redelivered", "unknown_queues") == (60, 0)


def test_masters_are_apart() -> None:
    other = {"broker_name": "z"}
    changes = [copied(1, 0, 10), copied(2, 1, 8), copied(1, 0, 9, **other), copied(2, 1, 9, **other)]
    # Each has minutes of its own, and what a group lacks of one is nothing to the other.
    changes += [copied(70, 0, 12, **other), copied(130, 1, 12, **other), copied(200, 0, 11)]
    polls = [polled(1, 0, 5) | {"broker_name": "y"}]
    found = exposed(polls, changes).select("broker_name", "redelivered", pl.col("redelivered_by_group").list.len())
    assert found.rows() == [("b", 2, 1), ("b", 3, 1), ("y", None, None), ("z", 0, 0), ("z", 3, 1), ("z", 0, 0)]


def test_nothing_gives_no_rows_of_the_same_columns() -> None:
    nothing = exposed([], [])
    assert nothing.is_empty()
    assert nothing.schema == exposed([polled(1, 0, 5)], [copied(1, 0, 10), copied(2, 1, 5)]).schema
    assert lacked_by_minute([]).schema == LACKED


def test_a_replica_that_became_the_master_is_no_slave() -> None:
    """A controller made it: it has its old id at the same address for some minutes, and lacks nothing of itself."""
    old, new = {"broker_addr": "h:1"}, {"broker_addr": "h:2"}
    polls = [polled(1, 0, 100) | old, polled(2, 2, 90) | new]
    polls += [polled(61, 0, 150) | new, polled(62, 2, 160) | new, polled(121, 0, 200) | new, polled(122, 2, 200) | new]
    polls += [polled(181, 0, 300) | new, polled(182, 1, 250) | old]
    changes = [copied(1, 0, 9), copied(1, 2, 7), copied(61, 2, 9), copied(181, 1, 8)]
    found = judged(polls, changes)
    assert [of(found[m], "slave_end", "bytes_behind", "redelivered") for m in range(4)] == [
        (90, 10, 2),
        (None, None, None),
        (None, None, None),
        (250, 50, 1),
    ]
