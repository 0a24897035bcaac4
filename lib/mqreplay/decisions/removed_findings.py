"""Which findings of a group depend on strategy, members and queues, and whether they remain with other ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

import polars as pl

from mqreplay.core.retry_topic import RETRY_GROUP_TOPIC_PREFIX as RETRY
from mqreplay.decisions.strategies import GroupSettings
from mqreplay.decisions.supposed_shares import GONE, supposed_owners
from mqreplay.decisions.suppositions import Supposition, supposed_rebalances


class Shares(NamedTuple):
    """Who owns what of a group: QUEUE and owners; and the lists with the members' strategies."""

    owners: pl.DataFrame
    lists: pl.DataFrame
    strategies: frozenset[str]
    uneven_queues: int


def _is_idle(shares: Shares) -> bool:
    members = set(shares.lists["cid_all"].explode().drop_nulls().to_list())
    return bool(members - set(shares.owners["owners"].explode().drop_nulls().to_list()))


def _is_orphaned(shares: Shares) -> bool:
    return bool((shares.owners["owners"].list.len() == 0).any())


def _is_double(shares: Shares) -> bool:
    return bool((shares.owners["owners"].list.len() > 1).any())


def _is_mixed(shares: Shares) -> bool:
    return len(shares.strategies) > 1


def _is_uneven(shares: Shares) -> bool:
    members = shares.lists.select("topic", pl.col("cid_all").list.n_unique().alias("members"))
    by_topic = shares.owners.group_by("topic").agg(pl.len().alias("queues"))
    fair = (pl.col("queues") + pl.col("members") - 1) // pl.col("members")
    held = shares.owners.explode("owners").group_by("topic", "owners").agg(pl.len().alias("held"))
    joined = held.drop_nulls("owners").join(by_topic.join(members, "topic"), "topic")
    return not joined.filter(pl.col("held") >= fair + shares.uneven_queues).is_empty()


# Kinds of findings that the lists of a group show, and the condition.
SHOWN_KINDS: Final[Mapping[str, Callable[[Shares], bool]]] = {
    "idle_consumer": _is_idle,
    "uneven_allocation": _is_uneven,
    "orphan_queue": _is_orphaned,
    "double_owned_queue": _is_double,
    "strategy_conflict": _is_mixed,
}


def shares_with(
    lists: pl.DataFrame,
    suppositions: Sequence[Supposition],
    groups: Mapping[str, GroupSettings],
    nodes: int,
    uneven_queues: int,
) -> Shares | None:
    """Return the shares of a group with suppositions; None if one is not known. Topics of retries do not count."""
    of_topics = lists.filter(~pl.col("topic").str.starts_with(RETRY))
    owners = supposed_owners(of_topics, suppositions, groups, nodes).filter(pl.col("change") != GONE)
    if owners.is_empty() or owners["after_last"].null_count():
        return None
    members = of_topics.select("consumer_group", "topic", "cid_all", "mq_all", "members").explode("members")
    each = members.unnest("members").with_columns(pl.col("cid_all").alias("was"))
    supposed = supposed_rebalances(each, suppositions)
    there = supposed.filter(pl.col("was").list.contains(pl.col("client_id")))
    last = there.unique(["topic", "client_id"], keep="last", maintain_order=True)
    return Shares(
        owners.select("topic", pl.col("after_last").alias("owners")),
        supposed.unique("topic", maintain_order=True),
        frozenset(last["strategy"].drop_nulls().to_list()),
        uneven_queues,
    )
