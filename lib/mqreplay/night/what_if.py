"""What would have been: the decisions of a judged day, made again with other settings."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from mqreplay.decisions.allocation import JUDGED
from mqreplay.decisions.supposed_shares import COUNTED, decided_again, lists_seen, supposed_owners
from mqreplay.decisions.supposed_suggestions import BY, COUNTS
from mqreplay.decisions.suppositions import BrokerSetting, GroupConsumers, GroupStrategy, Supposition, TopicQueues
from mqreplay.engines.engine import Engine
from mqreplay.engines.passes import PassRunner
from mqreplay.engines.shards import count_buckets, deal
from mqreplay.lake.buckets import buckets, columns_of
from mqreplay.lake.warehouse import Warehouse
from mqreplay.night.replay_day import days_read
from mqreplay.replay.context import ReplayContext
from mqreplay.replay.day import DESCRIPTIONS, Day, DayRows
from mqreplay.replay.group_pass import GROUP
from mqreplay.replay.merged import merged
from mqreplay.replay.queue_tables import QUEUE
from mqreplay.replay.what_if_passes import PULL_PASS, REBALANCE_PASS, Supposed, SupposedPulls, SupposedShares
from mqreplay.settings import Settings

TABLES = ("broker_runtime",)
REBALANCES = 50_000  # rows that a task decides again


@dataclass(frozen=True)
class Prediction:
    """Frames of what a day would have been.

    ``decided``: consumer_group, topic, outcome, reason, rebalances (`decided_again`). ``owners``: queues with owners
    before and after (`supposed_owners`). ``pulls``: answers by group, topic and broker (`supposed_suggestions`).
    """

    cluster: str
    day: dt.date
    suppositions: tuple[Supposition, ...]
    decided: pl.DataFrame
    owners: pl.DataFrame
    pulls: pl.DataFrame


def predict(
    warehouse: Warehouse,
    engine: Engine,
    cluster: str,
    day: dt.date,
    settings: Settings,
    suppositions: Sequence[Supposition],
    at: dt.datetime | None = None,
) -> Prediction:
    """Return what a day would have been. ``at``: the lists of groups are those of this instant, not the usual ones."""
    since = dt.datetime.combine(day, dt.time(), dt.UTC)
    bounds = Day(cluster, day, since, is_first=True)
    runner = engine.pass_runner(warehouse, cluster, day, days_read(warehouse, cluster, day, since))
    rows = DayRows(bounds, runner.source)
    raw = {name: rows.silver(name) for name in TABLES} | {name: rows.described(name) for name in DESCRIPTIONS}
    context = ReplayContext(bounds, settings, {}, raw, raw, None)
    groups = {each.consumer_group for each in suppositions if isinstance(each, GroupStrategy | GroupConsumers)}
    topics = {each.topic for each in suppositions if isinstance(each, TopicQueues)}
    shared = Supposed(context, tuple(suppositions), groups, topics)
    shares = _shares(runner, rows, shared)
    lists = _chosen(shares.lists, at)
    strategies = settings.strategies
    owners = supposed_owners(lists, suppositions, strategies.groups, strategies.virtual_node_cnt)
    return Prediction(cluster, day, tuple(suppositions), shares.counted, owners, _pulls(runner, rows, shared).counted)


def _shares(runner: PassRunner, rows: DayRows, shared: Supposed) -> SupposedShares:
    """Decide the rebalances of the groups and topics again."""
    if not shared.groups and not shared.topics:
        none = rows.silver("rebalance", pl.lit(value=False)).select(JUDGED)
        return SupposedShares(decided_again(none, (), {}, 1), lists_seen(none))
    asked = rows.silver("rebalance", None, None, ["consumer_group"])
    shards = deal(count_buckets(buckets(asked, GROUP)), REBALANCES)
    found = merged(list(runner.run(REBALANCE_PASS, shards, shared)))
    counted = found.counted.group_by(COUNTED).agg(pl.col("rebalances").sum()).sort(COUNTED)
    return SupposedShares(counted, found.lists)


def _pulls(runner: PassRunner, rows: DayRows, shared: Supposed) -> SupposedPulls:
    """Decide the suggestions of the brokers again."""
    if not any(isinstance(each, BrokerSetting) for each in shared.suppositions):
        return SupposedPulls(pl.DataFrame(schema=dict.fromkeys(BY, pl.String) | dict.fromkeys(COUNTS, pl.Int64)))
    asked = rows.silver("pull", None, None, columns_of(QUEUE))
    shards = deal(count_buckets(buckets(asked, QUEUE)))
    found = merged(list(runner.run(PULL_PASS, shards, shared)))
    return SupposedPulls(found.counted.group_by(BY).agg(pl.col(COUNTS).sum()).sort(BY))


def _chosen(lists: pl.DataFrame, at: dt.datetime | None) -> pl.DataFrame:
    """Return one row of `lists_seen` for each group and topic: the last up to ``at``, else the usual one."""
    by = ["consumer_group", "topic"]
    if at is None:
        return lists.sort("rebalances", "to_ts").unique(by, keep="last", maintain_order=True)
    return lists.filter(pl.col("from_ts") <= at).sort("from_ts", "to_ts").unique(by, keep="last", maintain_order=True)
