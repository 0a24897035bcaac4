"""The pass over heartbeats: each client sends one to each broker every 30 s, and the driver gets those that matter."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

import polars as pl

from mqreplay.decisions.decision import by_name
from mqreplay.engines.passes import GoldRows, Pass, PassRunner, PassTable
from mqreplay.engines.rows import RowSource
from mqreplay.engines.shards import Shard
from mqreplay.evidence.brokers.broker_outages import heartbeat_answers_of_shard
from mqreplay.evidence.members.membership import heartbeat_signs_of_shard, unregistrations
from mqreplay.evidence.members.observed_clients import observed_heartbeats
from mqreplay.evidence.members.repeated_heartbeats import Changes, disputed_clients, new_statements, without_repeats
from mqreplay.replay.context import ReplayContext
from mqreplay.replay.day import NO_TIME, Day, DayRows, Skew
from mqreplay.replay.frames import Steps
from mqreplay.replay.task_results import compacted, merged
from mqreplay.words.keys import BROKER

LEAVE: Final = [*BROKER, "client_id", "ts", "source", "unregistered_consumer_group"]  # without lists in lists
FEW_ROWS: Final = 200_000  # two passes over them take longer than the driver


@dataclass(frozen=True)
class HeartbeatInput:
    """The day, its clocks, the limits of a silence of clients and of brokers (seconds), and what makes rows matter."""

    day: Day
    skew: Skew | None
    silent_s: int
    down_s: int
    changes: Changes


@dataclass(frozen=True)
class Heartbeats:
    """Rows of silver.heartbeat without repeats, and the signs of life and the answers in all rows."""

    rows: pl.DataFrame
    signs: pl.DataFrame
    answers: pl.DataFrame


def reduce_heartbeats(source: RowSource, shard: Shard, shared: HeartbeatInput, gold: GoldRows) -> Heartbeats:
    """Reduce any part of the heartbeats."""
    return _reduced(DayRows(shared.day, source).silver("heartbeat", None, shared.skew), shared)


def _reduced(rows: pl.DataFrame, shared: HeartbeatInput) -> Heartbeats:
    kept = without_repeats(rows, shared.changes)
    return Heartbeats(
        compacted(kept),
        heartbeat_signs_of_shard(rows, unregistrations(shared.changes.leaves), shared.silent_s),
        heartbeat_answers_of_shard(rows, shared.down_s),
    )


HEARTBEAT_PASS: Final = Pass(reduce_heartbeats, (PassTable("silver.heartbeat"),))


def run_heartbeats(
    runner: PassRunner, context: ReplayContext, skew: Skew | None, small: Mapping[str, pl.DataFrame]
) -> Heartbeats:
    """Reduce the heartbeats of the day; few are taken as they are."""
    rows, limits = DayRows(context.day, runner.source), context.settings.findings
    is_small = len(rows.around("heartbeat", NO_TIME, None, ["ts"])) <= FEW_ROWS
    few = rows.silver("heartbeat", pl.lit(is_small), skew)
    if is_small:
        none, left = few.clear(), unregistrations(few.clear())
        signs = heartbeat_signs_of_shard(none, left, limits.silent_s)
        return Heartbeats(few, signs, heartbeat_answers_of_shard(none, limits.down_s))
    boots = small["broker_runtime"].select(*BROKER, pl.col("boot_ts").alias("ts")).drop_nulls().unique()
    leaves = rows.silver("heartbeat", pl.col("kind") != "HEART_BEAT", skew, LEAVE)
    begin = Changes(boots, leaves, new_statements(few))
    shared = HeartbeatInput(context.day, skew, limits.silent_s, limits.down_s, begin)
    first = _run(runner, shared).rows
    observed = observed_heartbeats(first, small["assignment"], small["consumer_connection"])
    disputed = disputed_clients(pl.concat([first, observed]))
    return _run(runner, replace(shared, changes=replace(begin, news=new_statements(first), disputed=disputed)))


def _run(runner: PassRunner, shared: HeartbeatInput) -> Heartbeats:
    """Reduce all parts, and then what they keep of one statement: each part has kept its own first rows."""
    whole = merged(list(runner.run(HEARTBEAT_PASS, [], shared)))
    return replace(whole, rows=without_repeats(whole.rows, shared.changes).sort("ts", "record_id"))


def by_clients_clocks(runner: PassRunner, context: ReplayContext) -> Heartbeats:
    """Return the heartbeats with the clients' times."""
    return run_heartbeats(runner, context, None, context.raw)


def by_recorders_clock(runner: PassRunner, context: ReplayContext, raw_heartbeats: Heartbeats) -> Heartbeats:
    """Return the heartbeats by the recorder's clock."""
    return raw_heartbeats if context.skew is None else run_heartbeats(runner, context, context.skew, context.small)


STEPS: Final[Steps] = {
    "raw_heartbeats": by_name(by_clients_clocks),
    "raw_heartbeat": "raw_heartbeats.rows",
    "heartbeats": by_name(by_recorders_clock),
    "heartbeat": "heartbeats.rows",
    "heartbeat_signs": "heartbeats.signs",
    "heartbeat_answers": "heartbeats.answers",
}
