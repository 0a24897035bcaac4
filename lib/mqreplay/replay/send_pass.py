"""The pass over sends, by topic."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import polars as pl

from mqreplay.decisions.decision import by_name
from mqreplay.decisions.send_attempt import SEND_ATTEMPT, send_tries, stored_rows
from mqreplay.engines.passes import GoldRows, Pass, PassRunner, PassTable
from mqreplay.engines.rows import RowSource
from mqreplay.engines.shards import Shard, count_buckets, deal
from mqreplay.evidence.messages.counted_retries import first_places
from mqreplay.evidence.messages.failed_sends import avoided_brokers, failed_tries
from mqreplay.evidence.messages.sent_back import second_tries
from mqreplay.findings.sends import send_runs
from mqreplay.lake.buckets import buckets, key_of
from mqreplay.replay.context import ReplayContext
from mqreplay.replay.day import DayRows
from mqreplay.replay.frames import joined, outputs
from mqreplay.replay.task_results import JudgedRows, counted_rows, merged

TOPIC_BUCKET: Final = key_of(("topic",))


@dataclass(frozen=True)
class SendInput:
    """The context, what `publish_routes` returns for the topics of all sends, and msg_id of what was sent back."""

    context: ReplayContext
    publish_changes: pl.DataFrame
    publish_queues: pl.DataFrame
    sent_back: pl.DataFrame


@dataclass(frozen=True)
class SendResult:
    """Frames of the tries of sends."""

    judged: JudgedRows
    failed_tries: pl.DataFrame  # send_runs
    avoided_brokers: pl.DataFrame
    first_places: pl.DataFrame  # counted_retries.first_places
    second_tries: pl.DataFrame


def judge_sends(source: RowSource, shard: Shard, shared: SendInput, gold: GoldRows) -> SendResult:
    """Judge the sends to some topics."""
    context = shared.context
    send = DayRows(context.day, source).silver("send", shard, context.skew)
    tries = send_tries(send, shared.publish_changes, shared.publish_queues)
    gold.add(SEND_ATTEMPT.table, stored_rows(tries.filter(context.day.judged)))
    return _send_result(tries, shared)


def _send_result(tries: pl.DataFrame, shared: SendInput) -> SendResult:
    """Return the result of the tries of the sends to whole topics."""
    limits = shared.context.settings.findings
    return SendResult(
        counted_rows(SEND_ATTEMPT, tries.filter(shared.context.day.judged)),
        send_runs(failed_tries(tries), limits.same_cause_gap_s),
        avoided_brokers(tries, shared.publish_changes, shared.publish_queues, limits.avoided_s),
        first_places(tries, shared.sent_back),
        second_tries(tries, shared.sent_back),
    )


SEND_PASS: Final = Pass(judge_sends, (PassTable("silver.send", TOPIC_BUCKET),), (SEND_ATTEMPT.table,))


def run_sends(
    runner: PassRunner,
    context: ReplayContext,
    rows: DayRows,
    sent: pl.DataFrame,
    publish_changes: pl.DataFrame,
    publish_queues: pl.DataFrame,
    send_back: pl.DataFrame,
) -> SendResult:
    """Judge the sends of producers; most nights have none, and no task. ``sent`` has the topic of each send."""
    sent_back = send_back.select("msg_id").unique()
    shared = SendInput(context.with_tables(), publish_changes, publish_queues.unique(), sent_back)
    if sent.is_empty():
        none = rows.silver("send", pl.lit(value=False))
        return _send_result(send_tries(none, shared.publish_changes, shared.publish_queues), shared)
    return merged(list(runner.run(SEND_PASS, deal(count_buckets(buckets(sent, TOPIC_BUCKET))), shared)))


def sent(rows: DayRows) -> pl.DataFrame:
    """Return the topic of each recorded send."""
    return rows.silver("send", None, None, ["topic"])


STEPS: Final = joined(outputs("sends", SendResult), {"sent": by_name(sent), "sends": by_name(run_sends)})
