"""The passes over groups: allocations, and the answers and assignments of POP."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import polars as pl

from mqreplay.decisions.allocation import JUDGED, VERDICT, allocation, allocation_rows, verdicts
from mqreplay.decisions.pop_assignments import pop_assignments
from mqreplay.decisions.pop_receipts import pop_receipts
from mqreplay.decisions.rebalance_step import rebalance_step, stored_rows
from mqreplay.engines.passes import GoldRows, Pass, PassTable, RowFunction
from mqreplay.engines.rows import RowSource
from mqreplay.engines.shards import Shard
from mqreplay.evidence.members.agreed_lists import member_lists, queue_lists
from mqreplay.evidence.members.logged_rebalances import polled_members, with_logged
from mqreplay.evidence.members.observed_clients import RUNNING_INFO, polled
from mqreplay.evidence.members.observed_rebalances import observed_rebalances
from mqreplay.findings.shares import uneven_shares_of_shard
from mqreplay.lake.buckets import key_of
from mqreplay.replay.context import ReplayContext
from mqreplay.replay.day import DayRows
from mqreplay.replay.judged_rows import JudgedRows, add_judged, counted_rows
from mqreplay.settings_sections import StrategySettings

GROUP: Final = key_of(("consumer_group",))
# Routes are few, and of no group; the groups of an acknowledgement are in its receipts.
ROUTES: Final = PassTable("silver.route")
ACKNOWLEDGEMENTS: Final = PassTable("silver.pop_ack")


@dataclass(frozen=True)
class GroupResult:
    """Frames of the rebalances of groups."""

    allocations: JudgedRows
    uneven_shares: pl.DataFrame
    steps: JudgedRows
    expired_pulls: pl.DataFrame  # rows of gold.rebalance_step with expired queues


@dataclass(frozen=True)
class PopResult:
    """Frames of what brokers gave the groups of POP."""

    receipts: JudgedRows
    assignments: JudgedRows


def judge_groups(source: RowSource, shard: Shard, context: ReplayContext, gold: GoldRows) -> GroupResult:
    """Judge the rebalances of some groups."""
    day, strategies = DayRows(context.day, source), context.settings.strategies
    rebalances = day.silver("rebalance", shard)  # with their verdicts
    by_polls, completed = with_polls(day, shard, context, rebalances.drop(VERDICT))
    of_polls = allocation(by_polls, strategies.groups, strategies.virtual_node_cnt)
    others = rebalances.filter(~pl.col("record_id").is_in(completed))
    judged = pl.concat([allocation_rows(others), of_polls])
    of_day = judged.filter(context.day.judged)
    allocations = add_judged(gold, "gold.allocation", of_day)
    known = day.with_before("gold.allocation", "rebalance_ts", of_day, shard)
    limits = context.settings.findings
    steps = rebalance_step(day.silver("assignment", shard), rebalances, limits.rebalance_interval_s)
    gold.add("gold.rebalance_step", stored_rows(steps.filter(context.day.judged)))
    return GroupResult(
        allocations,
        uneven_shares_of_shard(known, limits.uneven_queues),
        counted_rows("gold.rebalance_step", steps.filter(context.day.judged)),
        steps.filter(pl.col("expired").list.len() > 0),
    )


def rebalance_verdicts(rebalances: pl.DataFrame, strategies: StrategySettings) -> pl.DataFrame:
    """Return VERDICT of each rebalance."""
    return verdicts(rebalances, strategies.groups, strategies.virtual_node_cnt)


def strategy_settings(context: ReplayContext) -> StrategySettings:
    """Return the settings that verdicts of rebalances need."""
    return context.settings.strategies


def with_polls(
    day: DayRows, shard: Shard, context: ReplayContext, rebalances: pl.DataFrame
) -> tuple[pl.DataFrame, list[str]]:
    """Return the rebalances that polls help to judge, and the record ids of those that logs have too.

    Columns: those of ``rebalances`` (silver.rebalance), and two of `observed_rebalances`.
    """
    assignments = polled(day.silver("assignment", shard), RUNNING_INFO)
    of_clients = polled_members(assignments, rebalances)
    members = member_lists(day.of_recorder("consumer_list", shard))
    queues = queue_lists(day.of_recorder("route"), context.raw["topic_config"])
    limits = context.settings.findings
    observed = observed_rebalances(assignments, members, queues, of_clients, limits.rebalance_interval_s, rebalances)
    return with_logged(observed, rebalances, members, queues, limits.clock_skew_s)


def judge_pops(source: RowSource, shard: Shard, context: ReplayContext, gold: GoldRows) -> PopResult:
    """Judge the messages handed out by POP, and the assignments by brokers, of some groups."""
    day = DayRows(context.day, source)
    pops = day.silver("pop", shard)
    acks = day.silver("pop_ack", None if len(pops) else pl.lit(False))
    receipts = pop_receipts(pops, acks, context.raw["broker"]).filter(context.day.judged)
    asked = day.silver("pop_assignment", shard)
    # Most nights have none, and read nothing for them.
    members = member_lists(day.of_recorder("consumer_list", shard, read=len(asked) > 0))
    queues = queue_lists(day.of_recorder("route", read=len(asked) > 0), context.raw["topic_config"])
    assignments = pop_assignments(asked, members, queues).filter(context.day.judged)
    return PopResult(
        add_judged(gold, "gold.pop_receipt", receipts), add_judged(gold, "gold.pop_assignment", assignments)
    )


def of_groups(*names: str) -> tuple[PassTable, ...]:
    """Return these tables, whose rows are dealt by group."""
    return tuple(PassTable(name, GROUP) for name in names)


# Each rebalance is judged by itself.
VERDICTS: Final = RowFunction(rebalance_verdicts, strategy_settings, JUDGED, "gold.allocation", tuple(VERDICT))
REBALANCES: Final = PassTable("silver.rebalance", GROUP, function=VERDICTS)
GROUP_PASS: Final = Pass(
    judge_groups,
    (REBALANCES, *of_groups("silver.assignment", "silver.consumer_list", "gold.allocation"), ROUTES),
    ("gold.allocation", "gold.rebalance_step"),
)
POP_PASS: Final = Pass(
    judge_pops,
    (*of_groups("silver.pop", "silver.pop_assignment", "silver.consumer_list"), ACKNOWLEDGEMENTS, ROUTES),
    ("gold.pop_receipt", "gold.pop_assignment"),
)
