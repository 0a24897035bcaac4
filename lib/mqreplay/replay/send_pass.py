"""The pass over sends: each try of a send, by topic."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import polars as pl

from mqreplay.decisions.send_attempt import send_tries, stored_rows
from mqreplay.engines.passes import GoldRows, Pass, PassTable
from mqreplay.engines.rows import RowSource
from mqreplay.engines.shards import Shard
from mqreplay.evidence.messages.avoided_brokers import avoided_brokers
from mqreplay.evidence.messages.counted_retries import first_places
from mqreplay.evidence.messages.failed_sends import failed_tries
from mqreplay.evidence.messages.second_tries import second_tries
from mqreplay.findings.sends import send_runs
from mqreplay.lake.buckets import key_of
from mqreplay.replay.context import ReplayContext
from mqreplay.replay.day import DayRows
from mqreplay.replay.judged_rows import JudgedRows, counted_rows

TOPIC: Final = key_of(("topic",))


@dataclass(frozen=True)
class SendResult:
    """Frames of the tries of sends."""

    attempts: JudgedRows
    failed_runs: pl.DataFrame  # send_runs
    avoided: pl.DataFrame  # avoided_brokers
    first_places: pl.DataFrame  # counted_retries.first_places
    second_tries: pl.DataFrame


@dataclass(frozen=True)
class SendInput:
    """The context, what publish_routes.py returns for the topics of all sends, and msg_id of what was sent back."""

    context: ReplayContext
    publish_changes: pl.DataFrame
    publish_queues: pl.DataFrame
    sent_back: pl.DataFrame


def judge_sends(source: RowSource, shard: Shard, shared: SendInput, gold: GoldRows) -> SendResult:
    """Judge the sends to some topics."""
    context = shared.context
    send = DayRows(context.day, source).silver("send", shard, context.skew)
    tries = send_tries(send, shared.publish_changes, shared.publish_queues)
    gold.add("gold.send_attempt", stored_rows(tries.filter(context.day.judged)))
    return send_result(tries, shared)


def send_result(tries: pl.DataFrame, shared: SendInput) -> SendResult:
    """Return the result of the tries of the sends to whole topics."""
    limits = shared.context.settings.findings
    of_nobody = tries.filter(shared.context.day.judged).with_columns(pl.lit(None, pl.String).alias("consumer_group"))
    return SendResult(
        counted_rows("gold.send_attempt", of_nobody),
        send_runs(failed_tries(tries), limits.same_cause_gap_s),
        avoided_brokers(tries, shared.publish_changes, shared.publish_queues, limits.avoided_s),
        first_places(tries, shared.sent_back),
        second_tries(tries, shared.sent_back),
    )


SEND_PASS: Final = Pass(judge_sends, (PassTable("silver.send", TOPIC),), ("gold.send_attempt",))
