"""Which findings of a group its lists show, and whether another setting removes them."""

from __future__ import annotations

import polars as pl
import pytest

from decisions.test_suppositions import rebalances
from mqreplay.decisions.removed_findings import SHOWN_KINDS, shares_with
from mqreplay.decisions.supposed_shares import lists_seen
from mqreplay.decisions.suppositions import GroupConsumers, GroupStrategy, Supposition, TopicQueues

MIXED = pl.concat(
    [rebalances("c1", of=["c1", "c2"]), rebalances("c2", of=["c1", "c2"], strategy="AVG_BY_CIRCLE")],
)
CROWD = rebalances("c1", "c2", "c3", "c4", "c5")
RING = rebalances("c1", "c2", strategy="CONSISTENT_HASH")


def shown(rows: pl.DataFrame, *supposed: Supposition, nodes: int = 10, uneven_queues: int = 2) -> set[str]:
    found = shares_with(lists_seen(rows), supposed, {}, nodes, uneven_queues)
    assert found is not None
    return {kind for kind, is_so in SHOWN_KINDS.items() if is_so(found)}


@pytest.mark.parametrize(
    ("supposed", "left"),
    [
        ([], {"strategy_conflict", "orphan_queue", "double_owned_queue"}),
        ([GroupStrategy("g", "AVG")], set()),
        ([GroupConsumers("g", -1)], {"strategy_conflict"}),  # who leaves is not known
    ],
)
def test_a_conflict_of_strategies(supposed, left):
    assert shown(MIXED, *supposed) == left


@pytest.mark.parametrize(
    ("supposed", "left"),
    [([], {"idle_consumer"}), ([TopicQueues("T", 3)], set()), ([GroupConsumers("g", -1)], set())],
)
def test_more_members_than_queues(supposed, left):
    assert shown(CROWD, *supposed) == left


def test_an_uneven_share_by_a_ring():
    kinds = shown(RING, nodes=1, uneven_queues=1)
    assert "uneven_allocation" in kinds
    assert "uneven_allocation" not in shown(RING, GroupStrategy("g", "AVG"), uneven_queues=1)


def test_an_unknown_share_shows_nothing():
    assert shares_with(lists_seen(CROWD), [GroupStrategy("g", "MINE")], {}, 10, 2) is None


def test_topics_of_retries_do_not_count():
    rows = rebalances("c1", "c2").with_columns(pl.lit("%RETRY%g").alias("topic"))
    assert shares_with(lists_seen(rows), [], {}, 10, 2) is None
