"""The pass over commits of offsets, by queue."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import polars as pl

from mqreplay.decisions.decision import by_name
from mqreplay.decisions.offset_commit import (
    IN_MEMORY_OF,
    INCREASED,
    KEPT_AT,
    KEPT_OFFSET,
    MEMORY,
    OFFSET_COMMIT,
    compare_and_increase,
    offset_commits,
)
from mqreplay.engines.passes import GoldRows, Pass, PassRunner, PassTable, RowBefore, RowFunction, no_settings
from mqreplay.engines.rows import RowSource
from mqreplay.engines.shards import Shard
from mqreplay.evidence.members.client_languages import without_other_languages
from mqreplay.replay.context import ReplayContext
from mqreplay.replay.day import DayRows
from mqreplay.replay.queue_tables import QUEUE_BUCKET
from mqreplay.replay.task_results import JudgedRows, add_judged, merged

UNREAD: Final = ("broker_addr", "broker_id", "response_name", "source_digest")


@dataclass(frozen=True)
class CommitInput:
    """The context, and frames for `offset_commits`."""

    context: ReplayContext
    started_clients: pl.DataFrame
    hook_consumers: pl.DataFrame
    explained_breaks: pl.DataFrame
    received_resets: pl.DataFrame
    clients_of_other_languages: pl.DataFrame


def judge_commits(source: RowSource, shard: Shard, shared: CommitInput, gold: GoldRows) -> JudgedRows:
    """Judge the commits of some queues."""
    context = shared.context
    commits = DayRows(context.day, source).silver("offset_commit", shard)
    judged = offset_commits(
        commits,
        shared.started_clients,
        shared.hook_consumers,
        shared.explained_breaks,
        shared.received_resets,
        context.settings.replay.reset_reach_s,
    )
    of_day = without_other_languages(judged.filter(context.day.judged), shared.clients_of_other_languages)
    return add_judged(gold, OFFSET_COMMIT, of_day)


def span(shared: CommitInput) -> tuple[dt.datetime, dt.datetime]:
    """Return begin and end of the day with its lookback."""
    return shared.context.day.since, shared.context.day.end


IN_MEMORY: Final = RowBefore(MEMORY, KEPT_OFFSET, IN_MEMORY_OF, KEPT_AT, "ts", span)
RULE: Final = RowFunction(
    compare_and_increase,
    no_settings,
    (MEMORY, "commit_offset"),
    OFFSET_COMMIT.table,
    tuple(INCREASED),
    before=IN_MEMORY,
    is_pandas=True,
)
COMMIT_PASS: Final = Pass(
    judge_commits,
    (PassTable("silver.offset_commit", QUEUE_BUCKET, function=RULE, unread=UNREAD),),
    (OFFSET_COMMIT.table,),
)


def run_commits(
    runner: PassRunner,
    shards: Sequence[Shard],
    context: ReplayContext,
    started_clients: pl.DataFrame,
    hook_consumers: pl.DataFrame,
    explained_breaks: pl.DataFrame,
    queue_resets: pl.DataFrame,
    other_clients: pl.DataFrame,
) -> JudgedRows:
    """Judge the commits of all queues."""
    shared = CommitInput(
        context.with_tables(), started_clients, hook_consumers, explained_breaks, queue_resets, other_clients
    )
    return merged(list(runner.run(COMMIT_PASS, shards, shared)))


STEPS: Final = {"commits": by_name(run_commits, started_clients="facts.new_clients")}
