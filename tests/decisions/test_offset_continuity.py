"""Breaks in offsets: each kind with its evidence, and no alarm without evidence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from mqreplay.evidence.offsets.queue_ends import polled_ends, pulled_ends, queue_ends
from mqreplay.evidence.offsets.queue_events import groups_with_commits_of_shard
from mqreplay.words.keys import QUEUE
from offset_nights import COMMIT, Row, change, continuity, pull, pushed, tables
from silver_moments import at
from silver_rows import rows

PULL = {"consumer_group": "g", "topic": "T", "broker_name": "b", "client_id": "c", "broker_id": 0}
STATS = {"broker_name": "b", "broker_id": 0, "topic": "T"}


def breaks(*night: Sequence[Row]) -> list[tuple[Any, ...]]:
    return continuity(tables(*night)).sort("to_ts").select("kind", "cause", "redelivered_max").rows()


def test_moving_forwards_is_no_break():
    assert breaks([change(10, None, 5), change(20, 5, 9), change(30, 9, 500)], [pull(40, 9, 500, 500)]) == []


def test_a_rewind_by_a_client_and_one_from_outside():
    commits = [{"ts": at(8), "commit_offset": 3}, {"ts": at(1), "commit_offset": 9}]
    assert breaks([change(10, 9, 3), change(20, 9, 1)], [], commits) == [
        ("rewind", "client_commit", 6),
        ("rewind", "set_from_outside", 8),
    ]


def at_once(cases: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...] | None]:
    """What each case (a change, pulls, pushed resets) comes to, in a queue of its own."""
    changes, pulls, requests = [], [], []
    commits = [{"ts": at(1), "commit_offset": 9, "queue_id": queue} for queue in range(len(cases))]
    for queue, (changed, pulled, *resets) in enumerate(cases):
        changes.append(changed | {"queue_id": queue})
        pulls += [one | {"queue_id": queue} for one in pulled]
        requests += [pushed(*one, queue) for one in resets]
    found = continuity(tables(changes, pulls, commits, requests))
    by_queue = {
        queue: tuple(row) for queue, *row in found.select("queue_id", "kind", "cause", "redelivered_max").rows()
    }
    return [by_queue.get(queue) for queue in range(len(changes))]


def test_a_commit_that_a_pull_carried():
    carried = {"sys_flag": 3, "commit_offset": 3}
    cases = [
        (change(10, 9, 3), [pull(8, 20, 21, 30, **carried)]),
        (change(10, 9, 3), [pull(8, 20, 21, 30, **carried | {"sys_flag": 2})]),
        # Whoever went back to it afterwards, when the group had passed it.
        (change(10, 9, 3), [pull(3, 20, 21, 30, **carried)]),
    ]
    assert at_once(cases) == [("rewind", c, 18) for c in ("client_commit", *["set_from_outside"] * 2)]


def moved(seconds: float, to: int) -> dict[str, object]:
    """How a 5.x broker tells a client of a reset, which it was asked for ten seconds before."""
    return pull(seconds - 10, 9, to, 30, response_ts=at(seconds), response_code=21, next_begin_offset=to)


def test_resets_that_the_broker_sets_itself():
    cases = [
        # The pull that waited was answered just after the copy; a client with enough to do asks half a minute later.
        (change(10, 9, 3), [moved(11, 3)]),
        (change(10, 9, 3), [moved(45, 3)]),
        (change(10, 9, 3), [moved(11, 2)]),
        # The group is down when it is reset: the first pull of its queue comes minutes later.
        (change(10, 9, 3), [moved(190, 3)]),
        # An offset that rose to where a later reset leads did not jump.
        (change(10, 5, 9), [moved(45, 9)]),
        # The group goes on from there before the next copy; long after it, something else moved it.
        (change(10, 9, 6), [moved(9, 3)]),
        (change(30, 9, 6), [moved(9, 3)]),
        (change(10, 9, 6), [], (8, 3)),
        (change(10, 9, 6), [], (11, 3)),
    ]
    back, other = ("rewind", "reset"), ("rewind", "set_from_outside")
    assert at_once(cases) == [
        *[(*back, 6), (*back, 6), (*other, 6), (*back, 6), None],
        *[(*back, 6), (*other, 3), (*back, 6), (*other, 3)],
    ]


def test_without_commits_the_cause_is_unknown():
    assert breaks([change(10, 9, 3)]) == [("rewind", "unknown", 6)]


@pytest.mark.parametrize(
    ("fell_to", "restored_at", "restored_to", "cause"),
    [
        (39, 15, 40, "overtaken"),
        (8, 25, 90, "overtaken"),
        (7, 15, 40, "unknown"),  # more than a batch
        (39, 26, 40, "unknown"),  # the client's next commit would have been earlier
        (30, 15, 39, "unknown"),  # and it commits what it has in memory, not less
        (39, 15, None, "unknown"),
    ],
)
def test_an_older_commit_that_is_stored_after_a_newer_one(fell_to, restored_at, restored_to, cause):
    changes = [change(5, None, 40), change(10, 40, fell_to), change(restored_at, fell_to, restored_to)]
    assert breaks(changes)[0][:2] == ("rewind", cause)


def test_commits_of_the_group_in_another_shard_show_that_they_were_recorded():
    found = continuity(tables([change(10, 9, 3)]), recording={"g"})
    assert found["cause"].to_list() == ["set_from_outside"]
    assert groups_with_commits_of_shard(
        rows("silver.offset_commit", COMMIT, [{}, {"kind": "QUERY", "consumer_group": "h"}])
    ) == {"g"}


def test_an_offset_past_the_end_and_its_correction():
    pulls = [pull(2, 5, 5, 8), pull(12, 999, 8, 8, response_code=21)]
    changes = [change(10, 5, 999), change(20, 999, 8)]
    assert breaks(changes, pulls) == [("beyond_max", "unknown", 0), ("rewind", "corrected", 0)]
    # Set before the recording: the end alone proves that it was past it.
    assert breaks(changes[1:], [pull(15, 999, 8, 8)]) == [("rewind", "corrected", 0)]
    assert breaks(changes[1:], [pull(15, 999, 8, 999)]) == [("rewind", "unknown", 991)]
    # Set back further than to the end: what the queue held in between is delivered again.
    found = breaks([changes[0], change(20, 999, 6)], [*pulls, pull(16, 999, 8, 8, response_code=21)])
    assert found == [("beyond_max", "unknown", 0), ("rewind", "unknown", 2)]


def test_an_answer_14_s_late_proves_no_end_after_its_request():
    late = pull(2, 5, 8, 8, response_ts=at(16))
    assert breaks([change(10, 5, 12)], [late, pull(17, 8, 20, 20)]) == []
    assert breaks([change(1, 5, 12)], [late]) == [("beyond_max", "unknown", 0)]
    # 4 messages are delivered again, not none: the offset was not past the end.
    assert breaks([change(15, 12, 8)], [late, pull(17, 8, 20, 20)]) == [("rewind", "unknown", 4)]


def test_an_offset_before_the_beginning():
    pulls = [pull(2, 5, 5, 80, min_offset=50)]
    (row,) = continuity(tables([change(10, None, 20)], pulls)).rows(named=True)
    assert (row["kind"], row["size"], row["redelivered_max"], row["queue_min_offset"]) == ("below_min", 0, 0, 50)
    # Only messages that the queue still holds are delivered again.
    assert breaks([change(10, 70, 20)], pulls) == [("rewind", "unknown", 20)]


def test_a_slave_that_lags_makes_no_good_offset_look_wrong():
    assert breaks([change(10, 5, 9)], [pull(12, 5, 8, 8, broker_id=1)]) == []


def test_a_jump_by_reset_and_by_a_pull_that_skips():
    assert breaks([change(10, 5, 90)], [], [], [pushed(6, 90)]) == [("jump", "reset", 0)]
    pulls = [pull(2, 0, 5, 100), pull(14, 90, 92, 100)]
    assert breaks([change(10, 5, 90)], pulls) == [("jump", "unknown", 0)]


@pytest.mark.parametrize("code", [0, 1, 2, 22, None])
@pytest.mark.parametrize("saved", [90, 95])
def test_a_jump_after_a_refused_question_for_the_offset(code: int | None, saved: int) -> None:
    """RemoteBrokerOffsetStore#readOffset of 4.x: any error is no stored offset, and the client begins at the end."""
    query = {"kind": "QUERY", "ts": at(13), "response_ts": at(13.5), "response_code": code}
    pulls = [pull(2, 0, 5, 100), pull(14, 90, 95, 100)]
    found = breaks([change(20, 5, saved)], pulls, [query, {"commit_offset": saved, "ts": at(18)}])
    if code in (1, 2):
        assert found == [("jump", "refused_query", 0)]
    else:
        assert found == ([("jump", "client_commit", 0)] if saved == 90 else [])


def test_one_slow_message_let_go_is_no_jump():
    assert breaks([change(10, 5, 90)], [pull(2, 0, 5, 100), pull(3, 5, 90, 100), pull(12, 90, 91, 100)]) == []


def test_an_entry_that_is_gone():
    assert breaks([change(10, 5, None)]) == [("vanished", "removed", None)]


def test_offsets_further_from_each_other_than_a_bigint_holds():
    (row,) = continuity(tables([change(10, 2**63 - 1, -5)])).rows(named=True)
    assert (row["size"], row["redelivered_max"]) == (2**63 - 1, 2**63 - 1)


def test_files_of_clients_are_not_judged():
    of_client = change(20, 9, 4) | {"source_name": "client-c", "broker_id": None, "client_id": "c"}
    assert breaks([of_client]) == []
    assert breaks([of_client, change(10, 9, 3)]) == [("rewind", "unknown", 6)]


def stated(queue: int, low: int | None, high: int | None, topic: str = "T") -> dict[str, object]:
    return {"topic": topic, "broker_name": "b", "queue_id": queue, "min_offset": low, "max_offset": high}


@pytest.fixture
def pulls():
    listed = [
        {"queue_id": 0, "request_ts": at(1), "response_ts": at(2), "min_offset": 3, "max_offset": 9},
        {"queue_id": 1, "request_ts": at(1), "min_offset": 3, "max_offset": 9},
        {"queue_id": 0, "request_ts": at(3), "response_ts": at(4), "max_offset": 10},
        {"queue_id": 0, "request_ts": at(5), "response_ts": at(5), "min_offset": 3, "max_offset": 8, "broker_id": 1},
        {"queue_id": 0, "request_ts": at(6), "response_ts": at(6), "min_offset": 3, "max_offset": 8, "broker_id": None},
        {"queue_id": 0, "request_ts": at(7), "response_ts": at(7), "min_offset": 3},
    ]
    return rows("silver.pull", PULL, listed)


@pytest.fixture
def topic_stats():
    stats = [
        {"ts": at(2), "offsets": [stated(0, 3, 9), stated(1, 4, None)]},
        {"ts": at(3), "offsets": [stated(0, 0, 2, "%DLQ%g")]},
        {"ts": at(4), "offsets": []},
        {"ts": at(5), "offsets": None},
        {"ts": at(6), "offsets": [stated(0, 1, 5)], "broker_id": 1},
    ]
    return rows("silver.topic_stats", STATS, stats)


def test_only_a_masters_statements_count(pulls, topic_stats):
    ends = queue_ends(pulls, topic_stats)
    assert ends.columns == [*QUEUE, "at", "asked_at", "queue_min_offset", "queue_max_offset"]
    assert ends.rows() == [
        ("b", "T", 0, at(2), at(1), 3, 9),
        ("b", "T", 1, at(1), at(1), 3, 9),
        ("b", "T", 0, at(4), at(3), None, 10),
        ("b", "T", 0, at(2), at(2), 3, 9),
        ("b", "T", 1, at(2), at(2), 4, None),
        ("b", "%DLQ%g", 0, at(3), at(3), 0, 2),
    ]


def test_ends_of_shards_together_are_those_of_the_whole(pulls, topic_stats):
    shards = [pulled_ends(pulls.filter(pl.col("queue_id") == queue)) for queue in (0, 1)]
    whole = queue_ends(pulls, topic_stats)
    assert_frame_equal(pl.concat([*shards, polled_ends(topic_stats)]), whole, check_row_order=False)


def test_without_rows_no_end_is_stated(pulls, topic_stats):
    empty = queue_ends(pulls.clear(), topic_stats.clear())
    assert empty.is_empty()
    assert empty.schema == queue_ends(pulls, topic_stats).schema


LEAP = [change(10, 50, 57), change(20, 57, 999_999), change(40, 999_999, 59), change(50, 59, 60)]
BEYOND = [("beyond_max", "unknown", 0), ("rewind", "corrected", 0)]


def test_an_offset_that_leaps_and_comes_back_was_past_the_end():
    assert breaks(LEAP) == BEYOND
    near = [row | {"consumer_group": "h"} for row in (change(10, 40, 58), change(40, 58, 999_998))]
    assert breaks([*LEAP, *near])[:2] == BEYOND


@pytest.mark.parametrize(
    "others",
    [
        # Another group was there: those messages exist.
        [*LEAP, change(10, 40, 999_999) | {"consumer_group": "h"}],
        # The group consumed a backlog in seconds, and somebody set it back to where it had begun, or much further on.
        [*LEAP[:2], change(40, 999_999, 57)],
        [*LEAP[:2], change(40, 999_999, 50_000)],
        [change(20, 57, 1_000), change(40, 1_000, 59)],
        # It was seen again in between.
        [*LEAP[:2], change(30, 999_999, 1_000_000), change(40, 1_000_000, 59)],
    ],
)
def test_a_leap_that_proves_nothing(others):
    assert breaks(others)[-1][:2] == ("rewind", "unknown")
    assert "beyond_max" not in {kind for kind, *_ in breaks(others)}
