"""Offsets that somebody set ahead: of groups without a member, and of slow groups; quick consumption is none."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import polars as pl
import pytest

from mqreplay.evidence.intervals import INSTANT
from mqreplay.evidence.offsets.offset_leaps import offset_leaps, offset_leaps_of_shard
from silver_moments import at
from silver_rows import rows

Row = dict[str, Any]
PLACE = {"consumer_group": "g", "topic": "T", "broker_name": "b", "broker_id": 0}
QUEUE = {"broker_name": pl.String, "topic": pl.String, "queue_id": pl.Int32}
ENDS = QUEUE | {"at": INSTANT, "queue_min_offset": pl.Int64, "queue_max_offset": pl.Int64}
SPAN = {"from_ts": INSTANT, "to_ts": INSTANT}
ABSENT = {"consumer_group": pl.String, "broker_name": pl.String, "broker_id": pl.Int64} | SPAN
MEMBERS = {"consumer_group": pl.String, "client_id": pl.String} | SPAN
EVERY_S, RATE = 5, 2  # copies of a file; messages that arrive in each queue, a second
LEFT, BACK = 60, 400
POLLED = pl.DataFrame(
    [(*("b", "T"), q, at(s), 0, RATE * s) for q in (0, 1) for s in range(0, 600, 30)], ENDS, orient="row"
).with_columns(asked_at="at")


def copies(offset_at: Any, queue: int = 0) -> list[Row]:
    """Return the changes of an offset that copies show; ``offset_at`` gives it at an instant."""
    known = [(ts, int(offset_at(ts))) for ts in range(0, 600, EVERY_S)]
    return [
        PLACE | {"queue_id": queue, "from_ts": at(since), "to_ts": at(ts), "previous_offset": old, "new_offset": new}
        for (since, old), (ts, new) in pairwise(known)
        if new != old
    ]


def leaps(*changes: list[Row], members: list[Row] | None = None, absent: tuple[float, float] = (0, 600)) -> list[Row]:
    known = rows(
        "silver.offset_change", {"source_name": "b-0", "source_digest": "d"}, [row for each in changes for row in each]
    )
    candidates = offset_leaps_of_shard(known, POLLED)
    nobody = pl.DataFrame([("g", "b", 0, at(absent[0]), at(absent[1]))], ABSENT, orient="row")
    breaks = candidates.select(candidates.columns[:-4]).clear()
    found = offset_leaps(candidates, nobody, pl.DataFrame(members or [], MEMBERS), breaks)
    return found.sort("queue_id", "to_ts").to_dicts()


def member(since: float, until: float) -> Row:
    return {"consumer_group": "g", "client_id": "c", "from_ts": at(since), "to_ts": at(until)}


def slow(ts: float, since: float = 0, offset: float = 0) -> float:
    """Return the offset of a consumer that finishes a message in two seconds."""
    return offset + (ts - since) / 2


def skipped(ts: float) -> float:
    """Return the offset of a slow consumer that was set to the end of its queue after 300 s."""
    return slow(ts) if ts < 312 else slow(ts, 330, RATE * 300) if ts > 330 else RATE * 300


def test_a_slow_group_that_is_set_to_the_ends_of_its_queues_skips_messages() -> None:
    found = leaps(copies(skipped), copies(skipped, 1))
    assert [(row["queue_id"], row["new_offset"], row["to_ts"]) for row in found] == [(q, 600, at(315)) for q in (0, 1)]
    assert {(row["kind"], row["cause"], row["size"]) for row in found} == {("jump", "reset", 445)}


def test_a_broker_that_sets_the_offset_at_once_shows_it_though_the_group_goes_on_from_there() -> None:
    def reset(ts: float) -> float:  # 5.x: no pause of 10 s
        return slow(ts) if ts < 301 else slow(ts, 301, RATE * 301)

    assert [row["queue_id"] for row in leaps(copies(reset), copies(reset, 1))] == [0, 1]


@pytest.mark.parametrize(
    "offset",
    [
        lambda ts: slow(ts) if ts < 301 else RATE * ts,  # its database answers again: it catches up and keeps up
        lambda ts: 50 if 25 < ts < 301 else RATE * ts,  # its listener hung
        lambda ts: (ts // 60) * 60,  # it finishes in large steps
        lambda ts: RATE * ts,
    ],
)
def test_a_group_that_catches_up_is_no_jump(offset: Any) -> None:
    assert leaps(copies(offset), copies(offset, 1), absent=(0, 0)) == []


def test_one_queue_alone_may_have_waited_for_one_message() -> None:
    assert leaps(copies(skipped), copies(slow, 1)) == []


def test_an_offset_that_rises_while_the_broker_lists_nobody_was_set() -> None:
    def cloned(ts: float) -> float:
        return RATE * LEFT if LEFT < ts < 301 else RATE * 301 if LEFT < ts < BACK else RATE * ts

    stayed = [member(0, LEFT), member(BACK, 600)]
    (found,) = leaps(copies(cloned), members=stayed, absent=(LEFT + 4, BACK - 10))
    assert (found["previous_offset"], found["new_offset"], found["to_ts"]) == (RATE * LEFT, RATE * 301, at(305))
    # With a member, or without a list that says that there is none, nothing is concluded.
    assert leaps(copies(cloned), members=[*stayed, member(290, 310)], absent=(LEFT + 4, BACK - 10)) == []
    assert leaps(copies(cloned), members=stayed, absent=(LEFT + 4, 303)) == []
    # A group that was never listed may be behind a proxy, and one that advances again has members that are not listed.
    assert leaps(copies(cloned), absent=(LEFT + 4, BACK - 10)) == []
    again = copies(lambda ts: RATE * (ts // 100) * 100)
    assert leaps(again, members=[member(0, 1)], absent=(1, 600)) == []
