"""The passes of `mqreplay whatif`: the kernels of a night on supposed inputs. No table is written."""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

import polars as pl

from mqreplay.decisions.supposed_shares import decided_again, lists_seen
from mqreplay.decisions.supposed_suggestions import concerned, supposed_answers, supposed_suggestions
from mqreplay.decisions.suppositions import Supposition
from mqreplay.engines.passes import GoldRows, Pass, PassTable
from mqreplay.engines.rows import RowSource
from mqreplay.engines.shards import Shard
from mqreplay.evidence.members.agreed_lists import queue_lists
from mqreplay.replay.context import ReplayContext
from mqreplay.replay.day import DayRows
from mqreplay.replay.group_pass import of_groups, with_polls
from mqreplay.replay.queue_tables import SILVER


@dataclass(frozen=True)
class Supposed:
    """The context, what is supposed, and the groups and topics whose rebalances are decided again.

    ``until``: lists of later rebalances do not count. ``readers``: pulls of these groups alone; None: of all.
    ``skewed``: clients whose clock was wrong in the night.
    """

    context: ReplayContext
    suppositions: tuple[Supposition, ...]
    groups: Collection[str] = ()
    topics: Collection[str] = ()
    until: dt.datetime | None = None
    readers: Collection[str] | None = None
    skewed: Collection[str] = ()


@dataclass(frozen=True)
class SupposedShares:
    """Frames of supposed_shares.py: rebalances decided again, and the lists that members saw."""

    counted: pl.DataFrame
    lists: pl.DataFrame


@dataclass(frozen=True)
class SeenRebalances:
    """Rows of silver.rebalance, and those that polls show."""

    rows: pl.DataFrame


@dataclass(frozen=True)
class SupposedPulls:
    """The frame of supposed_suggestions.py."""

    counted: pl.DataFrame


def suppose_rebalances(source: RowSource, shard: Shard, shared: Supposed, gold: GoldRows) -> SupposedShares:
    """Decide the rebalances of some groups again."""
    strategies = shared.context.settings.strategies
    rebalances = see_rebalances(source, shard, shared, gold).rows
    counted = decided_again(rebalances, shared.suppositions, strategies.groups, strategies.virtual_node_cnt)
    if shared.until is None:
        return SupposedShares(counted, lists_seen(rebalances))
    has_right_clock = ~pl.col("client_id").is_in(list(shared.skewed))
    return SupposedShares(counted, lists_seen(rebalances.filter((pl.col("ts") <= shared.until) & has_right_clock)))


def see_rebalances(source: RowSource, shard: Shard, shared: Supposed, gold: GoldRows) -> SeenRebalances:
    """Return the rebalances of some groups and topics, recorded or shown by polls."""
    day = DayRows(shared.context.day, source)
    logged = day.silver("rebalance", shard)
    queues = queue_lists(day.of_recorder("route"), shared.context.raw["topic_config"])
    by_polls, completed = with_polls(day, shard, queues, shared.context.settings.findings, logged)
    whole = pl.concat([logged.filter(~pl.col("record_id").is_in(completed)), by_polls], how="diagonal")
    mine = pl.col("consumer_group").is_in(list(shared.groups)) | pl.col("topic").is_in(list(shared.topics))
    rows = whole.filter(mine & shared.context.day.judged)
    return SeenRebalances(rows.with_columns(pl.col("takes_all").fill_null(value=False)))


def suppose_pulls(source: RowSource, shard: Shard, shared: Supposed, gold: GoldRows) -> SupposedPulls:
    """Suggest brokers again for the pulls of some queues."""
    context, tables = shared.context, shared.context.raw
    day = DayRows(context.day, source)
    pull = concerned(day.silver("pull", shard), shared.suppositions)
    if shared.readers is not None:
        pull = pull.filter(pl.col("consumer_group").is_in(list(shared.readers)))
    pull = pull.rechunk()  # polars 1 panics in pl.format within when() on frames whose chunks differ
    answers = supposed_answers(
        *(pull, day.silver("consume", shard), day.silver("produce", shard)),
        *(tables["broker"], tables["subscription_group"], tables["broker_runtime"]),
        poll_slack_ms=context.settings.replay.poll_slack_ms,
        skewed=sorted(shared.skewed),
        suppositions=shared.suppositions,
    )
    return SupposedPulls(supposed_suggestions(answers.filter(context.day.judged)))  # other days are evidence alone


ROUTES: Final = PassTable("silver.route")
OF_GROUPS: Final = (*of_groups("silver.rebalance", "silver.assignment", "silver.consumer_list"), ROUTES)
REBALANCE_PASS: Final = Pass(suppose_rebalances, OF_GROUPS)
LISTS_PASS: Final = Pass(see_rebalances, OF_GROUPS)
PULL_PASS: Final = Pass(suppose_pulls, tuple(SILVER[name] for name in ("pull", "consume", "produce")))
