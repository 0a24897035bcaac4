"""How many members or queues keep up: as many as a count by hand says, bounded by the hottest queue."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from decisions.test_suppositions import QUEUES, rebalances
from mqreplay.decisions.keeping_up import (
    MOST_TIMES,
    NO_ENDS,
    NO_LISTS,
    NO_OWNERS,
    NO_RATE,
    NOTHING_FINISHED,
    TOO_MUCH,
    Needed,
    busiest_member,
    needed,
)
from mqreplay.decisions.supposed_shares import lists_seen
from mqreplay.decisions.suppositions import GroupConsumers, GroupStrategy, Supposition, TopicQueues

ONE = rebalances("c1")


def arrivals(*rates: float | None) -> pl.DataFrame:
    """Return rates of the queues a/0, a/1, b/0 and b/1."""
    rows = [{"topic": "T"} | queue | {"stored": rate} for queue, rate in zip(QUEUES, rates, strict=True)]
    return pl.DataFrame(rows, schema_overrides={"queue_id": pl.Int32, "stored": pl.Float64})


def wanted(rates: tuple[float | None, ...], rate: float | None, rows: pl.DataFrame = ONE) -> Needed | str:
    return needed(lists_seen(rows), arrivals(*rates), rate, {}, 10)


@pytest.mark.parametrize(
    ("rate", "members"),
    [
        (9.0, 1),  # 2 + 2 + 2 + 2
        (8.0, 1),
        (7.9, 2),  # two queues each
        (4.0, 2),
        (3.9, 4),  # one of three members has two queues: 4
        (2.0, 4),
    ],
)
def test_members_share_whole_queues(rate, members):
    assert wanted((2.0, 2.0, 2.0, 2.0), rate) == Needed(members, None)


def test_the_hottest_queue_bounds_what_more_members_can_do():
    hot = (5.0, 1.0, 1.0, 1.0)
    assert wanted(hot, 5.0) == Needed(4, None)  # AVG gives 2 of 4 queues to the first of 2 and 3 members
    assert wanted(hot, 4.9) == Needed(2, 3)  # 8 / 6 in each queue: three of them are 4
    assert wanted(hot, 1.5) == Needed(6, 3)


def test_members_that_come_may_sort_anywhere():
    lists = lists_seen(ONE)
    found = busiest_member(lists, [GroupConsumers("g", 2)], arrivals(4.0, 4.0, 1.0, 1.0), {}, 10)
    assert found == 8.0  # of three members the first one has both hot queues
    found = busiest_member(lists, [GroupConsumers("g", 2), TopicQueues("T", 3)], arrivals(4.0, 4.0, 1.0, 1.0), {}, 10)
    assert found == pytest.approx(10 / 3)


def test_more_than_eight_times_the_queues_are_no_answer():
    assert wanted((1.0, 1.0, 1.0, 1.0), 4 / (4 * MOST_TIMES)) == Needed(4 * MOST_TIMES, 2 * MOST_TIMES)
    assert wanted((1.0, 1.0, 1.0, 1.0), 0.999 / MOST_TIMES) == TOO_MUCH


@pytest.mark.parametrize(
    ("rates", "rate", "rows", "reason"),
    [
        ((1.0, 1.0, 1.0, 1.0), None, ONE, NO_RATE),
        ((1.0, 1.0, 1.0, 1.0), 0.0, ONE, NOTHING_FINISHED),
        ((1.0, 1.0, 1.0, None), 9.0, ONE, NO_ENDS),
        ((1.0, 1.0, 1.0, 1.0), 9.0, ONE.clear(), NO_LISTS),
        ((1.0, 1.0, 1.0, 1.0), 9.0, rebalances("c1", strategy="MINE"), NO_OWNERS),
    ],
)
def test_what_is_not_known_is_no_number(rates, rate, rows, reason):
    assert wanted(rates, rate, rows) == reason


@pytest.mark.parametrize("supposed", [[], [GroupStrategy("g", "AVG_BY_CIRCLE")], [GroupConsumers("g", -1)]])
def test_a_queue_without_owner_is_never_kept_up_with(supposed: list[Supposition]):
    mixed = pl.concat([rebalances("c1", of=["c1", "c2"]), rebalances("c2", of=["c1", "c2"], strategy="AVG_BY_CIRCLE")])
    found: Any = busiest_member(lists_seen(mixed), supposed, arrivals(1.0, 1.0, 1.0, 1.0), {}, 10)
    assert found == (None if not supposed else 4.0 if isinstance(supposed[0], GroupConsumers) else 2.0)
