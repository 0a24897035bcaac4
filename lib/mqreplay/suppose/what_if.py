"""What would have been: the decisions of a judged day, made again with other settings."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import polars as pl

from mqreplay.decisions.allocation import JUDGED
from mqreplay.decisions.slave_suggestion import SKEWED
from mqreplay.decisions.supposed_shares import (
    COUNTED,
    LIST_COLUMNS,
    decided_again,
    idle_members,
    lists_seen,
    supposed_owners,
)
from mqreplay.decisions.supposed_suggestions import SUGGESTION_COUNTS
from mqreplay.decisions.suppositions import (
    FIRST,
    LAST,
    BrokerSetting,
    GroupConsumers,
    GroupStrategy,
    Supposition,
    TopicQueues,
    supposed_rebalances,
    text_of,
)
from mqreplay.engines.choice import running_engine
from mqreplay.engines.engine import Engine
from mqreplay.engines.local import LocalEngine
from mqreplay.engines.passes import PassRunner
from mqreplay.engines.shards import Shard, count_buckets, deal
from mqreplay.lake.buckets import buckets, columns_of
from mqreplay.lake.lock import warehouse_lock
from mqreplay.lake.row_filter import RowFilter, plain_rows
from mqreplay.lake.scratch import scratch
from mqreplay.lake.warehouse import Warehouse
from mqreplay.moment.instant import Recorded, recorded
from mqreplay.moment.names import require_names
from mqreplay.replay.context import ReplayContext
from mqreplay.replay.day import DESCRIPTIONS, Day, DayRows
from mqreplay.replay.days_read import days_read
from mqreplay.replay.group_pass import GROUP_BUCKET
from mqreplay.replay.queue_tables import QUEUE_BUCKET
from mqreplay.replay.task_results import merged
from mqreplay.replay.what_if_passes import (
    LISTS_PASS,
    PULL_PASS,
    REBALANCE_PASS,
    Supposed,
    SupposedPulls,
    SupposedShares,
)
from mqreplay.settings import Settings
from mqreplay.suppose.instants import ASSUMPTION, LostMaster, drain_time, lost_master, reset_to
from mqreplay.words.errors import InputError
from mqreplay.words.keys import GROUP_TOPIC_BROKER
from mqreplay.words.time_span import day_span

SUPPOSED_TABLES = ("broker_runtime", "topic_config")
LARGE = ("silver.pull", "silver.rebalance", "silver.consume", "silver.produce")
SMALL_BYTES = 20 << 20
REBALANCES = 50_000  # rows that a task decides again


@dataclass(frozen=True)
class Prediction:
    """Frames of what a day would have been.

    ``decided``: consumer_group, topic, outcome, reason, rebalances (`decided_again`). ``owners``: queues with owners
    before and after (`supposed_owners`). ``pulls``: answers by group, topic and broker (`supposed_suggestions`).
    ``members``: how many hold no queue (`idle_members`). ``lists``: cid_all, cid_all_first and cid_all_last of each
    group and topic: as it was, and with members that come or leave at its start, and end.
    """

    cluster: str
    day: dt.date
    suppositions: tuple[Supposition, ...]
    decided: pl.DataFrame
    owners: pl.DataFrame
    pulls: pl.DataFrame
    members: pl.DataFrame
    lists: pl.DataFrame


def predict(
    warehouse: Warehouse,
    engine: Engine,
    cluster: str,
    day: dt.date,
    settings: Settings,
    suppositions: Sequence[Supposition],
    at: dt.datetime | None = None,
    readers: Collection[str] | None = None,
) -> Prediction:
    """Return what a day would have been. ``at``: the lists of groups are those of this instant, not the usual ones.

    The rows are those of the night: with its lookback, and with the wrong clocks that it found. ``readers``: only pulls
    of these groups are decided again.
    """
    runner, rows, context = _inputs(warehouse, engine, cluster, day, settings)
    groups = {each.consumer_group for each in suppositions if isinstance(each, GroupStrategy | GroupConsumers)}
    topics = {each.topic for each in suppositions if isinstance(each, TopicQueues)}
    skewed = _skewed_clients(warehouse, cluster, day)
    shared = Supposed(context, tuple(suppositions), groups, topics, at, readers, skewed)
    shares = _shares(runner, rows, shared)
    lists = _chosen(shares.lists, at)
    strategies = settings.strategies
    owners = supposed_owners(lists, suppositions, strategies.groups, strategies.virtual_node_cnt)
    members = idle_members(lists, owners, suppositions)
    pulls = _pulls(runner, rows, shared).counted
    supposed = _supposed_lists(lists, suppositions)
    return Prediction(cluster, day, tuple(suppositions), shares.counted, owners, pulls, members, supposed)


def rebalances_of(
    warehouse: Warehouse, engine: Engine, cluster: str, day: dt.date, settings: Settings, group: str
) -> pl.DataFrame:
    """Return the rebalances of a group on a day, recorded or shown by polls: the columns of silver.rebalance."""
    runner, rows, context = _inputs(warehouse, engine, cluster, day, settings)
    found = merged(list(runner.run(LISTS_PASS, _rebalance_shards(rows), Supposed(context, (), {group}))))
    return found.rows


def _inputs(
    warehouse: Warehouse, engine: Engine, cluster: str, day: dt.date, settings: Settings
) -> tuple[PassRunner, DayRows, ReplayContext]:
    since = dt.datetime.combine(day, dt.time(), dt.UTC) - dt.timedelta(minutes=settings.replay.lookback_minutes)
    bounds = Day(cluster, day, since, is_first=False)
    runner = engine.pass_runner(warehouse, cluster, day, days_read(warehouse, cluster, day, since))
    rows = DayRows(bounds, runner.source)
    raw = {name: rows.silver(name) for name in SUPPOSED_TABLES} | {name: rows.described(name) for name in DESCRIPTIONS}
    return runner, rows, ReplayContext(bounds, settings, {}, raw, raw, None)


def _skewed_clients(warehouse: Warehouse, cluster: str, day: dt.date) -> list[str]:
    """Return the clients whose clock was wrong in the night: those whose suggestions it left undetermined for that.

    Whether a suggestion depends on the clock is the same with any setting: diff is, and settings change the memory.
    """
    judged = warehouse.read("gold.slave_suggestion", RowFilter(cluster, days=frozenset({day})))
    return (
        judged.filter(pl.col("reason") == SKEWED).select("client_id").unique().collect()["client_id"].sort().to_list()
    )


def _supposed_lists(lists: pl.DataFrame, suppositions: Sequence[Supposition]) -> pl.DataFrame:
    by = ["consumer_group", "topic"]
    rows = lists.select(LIST_COLUMNS).with_columns(pl.lit(None, pl.String).alias("strategy"))
    found = rows.select(*by, "cid_all")
    for sorts, name in ((FIRST, "cid_all_first"), (LAST, "cid_all_last")):
        supposed = supposed_rebalances(rows, suppositions, sorts)
        found = found.join(supposed.select(*by, pl.col("cid_all").alias(name)), by, how="left")
    return found


@dataclass(frozen=True)
class WhatIf:
    """What a user supposes; texts are those of the command's options."""

    suppositions: tuple[Supposition, ...]
    lose_master: str | None = None
    reset_to: str | None = None
    group: str | None = None
    at: str | None = None
    day: str | None = None
    cluster: str | None = None
    drain: bool = False
    engine: str = "local"  # of ENGINES


@dataclass(frozen=True)
class Answer:
    """What would have been: of each thing that was supposed, None for others."""

    cluster: str
    prediction: Prediction | None
    lost: LostMaster | None
    reset: pl.DataFrame | None
    drain: pl.DataFrame | None = None

    def as_plain(self) -> dict[str, Any]:
        """Return the answer as plain values."""
        found: dict[str, Any] = {"cluster": self.cluster}
        if (prediction := self.prediction) is not None:
            found |= {"day": prediction.day, "supposed": [text_of(each) for each in prediction.suppositions]}
            found |= {name: plain_rows(getattr(prediction, name)) for name in ("decided", "owners", "pulls", "members")}
        if self.lost is not None:
            found["lost_master"] = vars(self.lost) | {"at": self.lost.at.replace(tzinfo=None)}
        if self.reset is not None:
            found["reset"] = plain_rows(self.reset)
        if self.drain is not None:
            found |= {"drain": plain_rows(self.drain), "assumption": ASSUMPTION}
        return found


def what_if(
    root: str, settings: Settings, asked: WhatIf, progress: Callable[[str], None] = lambda line: None
) -> Answer:
    """Return what would have been, by the tables of a warehouse. Raises InputError.

    Spark needs the warehouse's lock, as each run on Spark does; processes of this machine do not.
    """
    warehouse = Warehouse(root)
    night = recorded(warehouse, asked.cluster)
    at = None if asked.at is None else night.instant(asked.at, "--at")
    require_names(night, *_named(asked))
    prediction = lost = reset = None
    if asked.suppositions:
        day = day_asked(night, asked.day, at)
        with running(warehouse, night.cluster, settings, asked.engine, progress) as engine:
            prediction = predict(warehouse, engine, night.cluster, day, settings, asked.suppositions, at)
    if asked.lose_master is not None:
        lost = lost_master(night, asked.lose_master, at or night.last)
    if asked.reset_to is not None:
        reset = reset_to(night, asked.group or "", night.instant(asked.reset_to, "--reset-to"), at or night.last)
    drain = drain_time(night, asked.group or "", at or night.last) if asked.drain else None
    return Answer(night.cluster, prediction, lost, reset, drain)


@contextmanager
def running(
    warehouse: Warehouse, cluster: str, settings: Settings, name: str, progress: Callable[[str], None]
) -> Iterator[Engine]:
    """Yield the engine of this name."""
    if name == "local":
        small = sum(warehouse.file_bytes(table, RowFilter(cluster)) for table in LARGE) < SMALL_BYTES
        # Processes take a second to start: a small night is done before.
        with LocalEngine(scratch().folder, 1 if small else settings.local.processes) as local:
            yield local
        return
    with (
        warehouse_lock(warehouse.root, settings.storage.lease_s, progress) as lock,
        running_engine(name, "mqreplay whatif", settings, lock, progress) as engine,
    ):
        yield engine


def _named(asked: WhatIf) -> tuple[set[str], set[str], set[str]]:
    """Return the groups, topics and brokers that were named."""
    groups = {each.consumer_group for each in asked.suppositions if isinstance(each, GroupStrategy | GroupConsumers)}
    topics = {each.topic for each in asked.suppositions if isinstance(each, TopicQueues)}
    brokers = {each.broker_name for each in asked.suppositions if isinstance(each, BrokerSetting)} - {None}
    return (
        groups | ({asked.group} if asked.group else set()),
        topics,
        {name for name in (*brokers, asked.lose_master) if name is not None},
    )


def day_asked(night: Recorded, text: str | None, at: dt.datetime | None) -> dt.date:
    """Return the day to decide again. Raises InputError if it was not judged."""
    judged = night.judged_days()
    if not judged:
        raise InputError("no day has been judged; run `mqreplay nightly` first")
    if text is None:
        return judged[-1] if at is None else at.date()
    try:
        day = dt.date.fromisoformat(text)
    except ValueError:
        raise InputError(f"--day {text!r} is no day; write it as 2026-11-21") from None
    if day not in judged:
        raise InputError(f"--day {text} has not been judged; judged days: {day_span(judged)}")
    return day


def _shares(runner: PassRunner, rows: DayRows, shared: Supposed) -> SupposedShares:
    """Decide the rebalances of the groups and topics again."""
    if not shared.groups and not shared.topics:
        none = rows.silver("rebalance", pl.lit(value=False)).select(JUDGED)
        return SupposedShares(decided_again(none, (), {}, 1), lists_seen(none))
    found = merged(list(runner.run(REBALANCE_PASS, _rebalance_shards(rows), shared)))
    counted = found.counted.group_by(COUNTED).agg(pl.col("rebalances").sum()).sort(COUNTED)
    return SupposedShares(counted, found.lists)


def _rebalance_shards(rows: DayRows) -> list[Shard]:
    asked = rows.silver("rebalance", None, None, ["consumer_group"])
    if asked.is_empty():  # polls show them
        asked = rows.silver("assignment", None, None, ["consumer_group"])
    return deal(count_buckets(buckets(asked, GROUP_BUCKET)), REBALANCES)


def _pulls(runner: PassRunner, rows: DayRows, shared: Supposed) -> SupposedPulls:
    """Decide the suggestions of the brokers again."""
    if not any(isinstance(each, BrokerSetting) for each in shared.suppositions):
        return SupposedPulls(
            pl.DataFrame(
                schema=dict.fromkeys(GROUP_TOPIC_BROKER, pl.String) | dict.fromkeys(SUGGESTION_COUNTS, pl.Int64)
            )
        )
    asked = rows.silver("pull", None, None, columns_of(QUEUE_BUCKET))
    shards = deal(count_buckets(buckets(asked, QUEUE_BUCKET)))
    found = merged(list(runner.run(PULL_PASS, shards, shared)))
    return SupposedPulls(
        found.counted.group_by(GROUP_TOPIC_BROKER).agg(pl.col(SUGGESTION_COUNTS).sum()).sort(GROUP_TOPIC_BROKER)
    )


def _chosen(lists: pl.DataFrame, at: dt.datetime | None) -> pl.DataFrame:
    """Return one row of `lists_seen` for each group and topic: the last one with ``at``, else the usual one."""
    by = ["consumer_group", "topic"]
    if at is None:
        return lists.sort("rebalances", "to_ts").unique(by, keep="last", maintain_order=True)
    return lists.sort("to_ts", "rebalances").unique(by, keep="last", maintain_order=True)
