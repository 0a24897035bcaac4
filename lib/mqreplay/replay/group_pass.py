"""The passes over groups: allocations, locks of queues, and the answers and assignments of POP."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import polars as pl

from mqreplay.decisions.allocation import ALLOCATION, JUDGED, VERDICT, allocation, allocation_rows, verdicts
from mqreplay.decisions.decision import by_name
from mqreplay.decisions.pop_assignments import POP_ASSIGNMENT, pop_assignments
from mqreplay.decisions.pop_receipts import POP_RECEIPT, pop_receipts
from mqreplay.decisions.queue_lock import QUEUE_LOCK, UNLOCK, queue_lock
from mqreplay.decisions.queue_lock import stored_rows as stored_locks
from mqreplay.decisions.queue_owner import lock_intervals
from mqreplay.decisions.rebalance_step import REBALANCE_STEP, rebalance_step, stored_rows
from mqreplay.engines.passes import GoldRows, Pass, PassRunner, PassTable, RowFunction
from mqreplay.engines.rows import RowSource
from mqreplay.engines.shards import Shard, count_buckets, deal
from mqreplay.evidence.members.agreed_lists import member_lists
from mqreplay.evidence.members.observed_clients import RUNNING_INFO, polled
from mqreplay.evidence.members.observed_rebalances import observed_rebalances, polled_members, with_logged
from mqreplay.evidence.messages.sent_back import lock_requests_of_shard
from mqreplay.findings.locks import blocked_locks
from mqreplay.findings.shares import uneven_shares_of_shard
from mqreplay.lake.buckets import buckets, key_of
from mqreplay.replay.context import ReplayContext
from mqreplay.replay.day import DayRows
from mqreplay.replay.frames import joined, outputs
from mqreplay.replay.task_results import JudgedRows, add_judged, counted_rows, merged
from mqreplay.settings.sections import FindingSettings, StrategySettings
from mqreplay.words.keys import BROKER, MEMBER

GROUP_BUCKET: Final = key_of(("consumer_group",))
REQUESTS_PER_TASK: Final = 50_000  # rebalances, and requests for locks
POP_REQUESTS_PER_TASK: Final = 200_000
# The groups of an acknowledgement are in its receipts.
ACKNOWLEDGEMENTS: Final = PassTable("silver.pop_ack")


@dataclass(frozen=True)
class GroupInput:
    """The context, the frame of `queue_lists` of all topics, and what locks are judged by.

    ``boots``: instants of silver.broker_runtime. ``members``: sessions of `membership`. ``has_unlocks``: a release of a
    lock was recorded.
    """

    context: ReplayContext
    queue_lists: pl.DataFrame
    boots: pl.DataFrame
    members: pl.DataFrame
    has_unlocks: bool


@dataclass(frozen=True)
class GroupResult:
    """Frames of the rebalances and locks of groups."""

    judged: JudgedRows
    uneven_shares: pl.DataFrame
    expired_pulls: pl.DataFrame  # rows of gold.rebalance_step with expired queues
    locks: LockResult


@dataclass(frozen=True)
class LockResult:
    """What requests for locks show: frames of queue_owner.py, findings/locks.py and sent_back.py."""

    judged: JudgedRows
    locked: pl.DataFrame
    blocked_locks: pl.DataFrame
    lock_requests: pl.DataFrame


@dataclass(frozen=True)
class PopResult:
    """What brokers gave the groups of POP."""

    judged: JudgedRows


def judge_groups(source: RowSource, shard: Shard, shared: GroupInput, gold: GoldRows) -> GroupResult:
    """Judge the rebalances and locks of some groups."""
    context = shared.context
    day, strategies = DayRows(context.day, source), context.settings.strategies
    rebalances = day.silver("rebalance", shard)  # with their verdicts
    by_polls, completed = with_polls(
        day, shard, shared.queue_lists, context.settings.findings, rebalances.drop(VERDICT)
    )
    of_polls = allocation(by_polls, strategies.groups, strategies.virtual_node_cnt)
    others = rebalances.filter(~pl.col("record_id").is_in(completed))
    judged = pl.concat([allocation_rows(others), of_polls])
    of_day = judged.filter(context.day.judged)
    allocations = add_judged(gold, ALLOCATION, of_day)
    known = day.with_before("gold.allocation", "rebalance_ts", of_day, shard)
    limits = context.settings.findings
    steps = rebalance_step(day.silver("assignment", shard), rebalances, limits.rebalance_interval_s)
    gold.add(REBALANCE_STEP.table, stored_rows(steps.filter(context.day.judged)))
    return GroupResult(
        merged([allocations, counted_rows(REBALANCE_STEP, steps.filter(context.day.judged))]),
        uneven_shares_of_shard(known, limits.uneven_queues),
        steps.filter(pl.col("expired").list.len() > 0),
        judge_locks(day.silver("lock", shard, context.skew), shared, gold),
    )


def judge_locks(lock: pl.DataFrame, shared: GroupInput, gold: GoldRows) -> LockResult:
    """Judge the locks of some groups: rows of silver.lock by the recorder's clock."""
    context = shared.context
    judged = queue_lock(
        *(lock, shared.boots, context.small["broker"], shared.members, context.starts, context.day.since),
        has_unlocks=shared.has_unlocks,
    )
    of_day = judged.filter(context.day.judged)
    gold.add(QUEUE_LOCK.table, stored_locks(of_day))
    return LockResult(
        counted_rows(QUEUE_LOCK, of_day),
        lock_intervals(lock, shared.members),
        blocked_locks(judged),
        lock_requests_of_shard(lock),
    )


def rebalance_verdicts(rebalances: pl.DataFrame, strategies: StrategySettings) -> pl.DataFrame:
    """Return the queues that the strategy gives at each rebalance, and whether the client took them, as VERDICT."""
    return verdicts(rebalances, strategies.groups, strategies.virtual_node_cnt)


def strategy_settings(shared: GroupInput) -> StrategySettings:
    """Return the settings that verdicts of rebalances need."""
    return shared.context.settings.strategies


def with_polls(
    day: DayRows, shard: Shard, queues: pl.DataFrame, limits: FindingSettings, rebalances: pl.DataFrame
) -> tuple[pl.DataFrame, list[str]]:
    """Return the rebalances that polls help to judge, and the record ids of those that logs have too.

    Columns: those of ``rebalances`` (silver.rebalance), and two of `observed_rebalances`. ``queues`` is the frame of
    `queue_lists`.
    """
    assignments = polled(day.silver("assignment", shard), RUNNING_INFO)
    of_clients = polled_members(assignments, rebalances)
    members = member_lists(day.of_recorder("consumer_list", shard))
    observed = observed_rebalances(assignments, members, queues, of_clients, limits.rebalance_interval_s, rebalances)
    return with_logged(observed, rebalances, members, queues, limits.clock_skew_s)


def judge_pops(source: RowSource, shard: Shard, shared: GroupInput, gold: GoldRows) -> PopResult:
    """Judge the messages handed out by POP, and the assignments by brokers, of some groups."""
    context = shared.context
    day = DayRows(context.day, source)
    pops = day.silver("pop", shard)
    acks = day.silver("pop_ack", None if len(pops) else pl.lit(False))
    receipts = pop_receipts(pops, acks, context.raw["broker"]).filter(context.day.judged)
    asked = day.silver("pop_assignment", shard)
    # Most nights have none, and read nothing for them.
    members = member_lists(day.of_recorder("consumer_list", shard, read=len(asked) > 0))
    assignments = pop_assignments(asked, members, shared.queue_lists).filter(context.day.judged)
    return PopResult(merged([add_judged(gold, POP_RECEIPT, receipts), add_judged(gold, POP_ASSIGNMENT, assignments)]))


def of_groups(*names: str) -> tuple[PassTable, ...]:
    """Return these tables, whose rows are dealt by group."""
    return tuple(PassTable(name, GROUP_BUCKET) for name in names)


# Each rebalance is judged by itself.
VERDICTS: Final = RowFunction(rebalance_verdicts, strategy_settings, JUDGED, "gold.allocation", tuple(VERDICT))
REBALANCES: Final = PassTable("silver.rebalance", GROUP_BUCKET, function=VERDICTS)
GROUP_PASS: Final = Pass(
    judge_groups,
    (REBALANCES, *of_groups("silver.assignment", "silver.consumer_list", "silver.lock", "gold.allocation")),
    ("gold.allocation", "gold.rebalance_step", "gold.queue_lock"),
)
POP_PASS: Final = Pass(
    judge_pops,
    (*of_groups("silver.pop", "silver.pop_assignment", "silver.consumer_list"), ACKNOWLEDGEMENTS),
    ("gold.pop_receipt", "gold.pop_assignment"),
)


def group_input(
    context: ReplayContext, queue_lists: pl.DataFrame, members: pl.DataFrame, asked_locks: pl.DataFrame
) -> GroupInput:
    """Return the input of the passes."""
    return GroupInput(
        context.with_tables("broker"),
        queue_lists,
        context.small["broker_runtime"].select(*BROKER, "ts", "boot_ts"),
        members.select(*MEMBER, "from_ts", "to_ts"),
        has_unlocks=UNLOCK in asked_locks["kind"],
    )


def asked_locks(rows: DayRows, context: ReplayContext) -> pl.DataFrame:
    """Return the number of requests for locks of each group and kind: consumer_group, kind, requests."""
    asked = rows.silver("lock", None, context.skew, ["consumer_group", "client_id", "kind", "ts"])
    return asked.group_by("consumer_group", "kind").agg(pl.len().alias("requests"))


def run_groups(
    runner: PassRunner,
    group_input: GroupInput,
    raw_rebalance: pl.DataFrame,
    raw_assignment: pl.DataFrame,
    asked_locks: pl.DataFrame,
) -> GroupResult:
    """Judge the rebalances and locks of all groups."""
    dealt = raw_rebalance if len(raw_rebalance) else raw_assignment
    locks = asked_locks.select(pl.col("consumer_group").repeat_by("requests").explode())
    requests = pl.concat([dealt.select("consumer_group"), locks])
    shards = deal(count_buckets(buckets(requests, GROUP_BUCKET)), REQUESTS_PER_TASK)
    return merged(list(runner.run(GROUP_PASS, shards, group_input)))


def run_pops(runner: PassRunner, group_input: GroupInput, popped: pl.DataFrame, assigned: pl.DataFrame) -> PopResult:
    """Judge what brokers gave the groups of POP."""
    requests = pl.concat([popped, assigned.select("consumer_group")])
    shards = deal(count_buckets(buckets(requests, GROUP_BUCKET)), POP_REQUESTS_PER_TASK)
    return merged(list(runner.run(POP_PASS, shards, group_input)))


def popped(rows: DayRows) -> pl.DataFrame:
    """Return the group of each request of POP."""
    return rows.silver("pop", None, None, ["consumer_group"])


def assigned(rows: DayRows) -> pl.DataFrame:
    """Return the group and the mode of each request for an assignment."""
    return rows.silver("pop_assignment", None, None, ["consumer_group", "mode"])


STEPS: Final = joined(
    outputs("groups", GroupResult),
    outputs("locks", LockResult),
    {
        "asked_locks": by_name(asked_locks),
        "popped": by_name(popped),
        "assigned": by_name(assigned),
        "group_input": by_name(group_input),
        "groups": by_name(run_groups),
        "pops": by_name(run_pops),
    },
)
