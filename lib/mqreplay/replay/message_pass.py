"""The passes over messages: deliveries, by queue, and the audit, by message."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import polars as pl

from mqreplay.decisions.committed_offset import committed_offsets, stored_rows
from mqreplay.decisions.delivery_audit import message_counts_of_shard
from mqreplay.engines.passes import GoldRows, Pass, PassTable
from mqreplay.engines.rows import RowSource
from mqreplay.engines.shards import Shard, name_bucket
from mqreplay.evidence.members.client_languages import without_other_languages
from mqreplay.evidence.messages.audit_scope import AuditScope, ScopeOfShard, scope_of_shard
from mqreplay.evidence.messages.deliveries import (
    max_reconsume_times_of_shard,
    redelivered_messages,
    repeated_deliveries,
    with_queue_topic,
)
from mqreplay.evidence.messages.failed_sends import failed_messages
from mqreplay.evidence.messages.sent_back import retry_deliveries
from mqreplay.evidence.messages.suspended import suspended_deliveries
from mqreplay.evidence.offsets.queue_events import stored_commits
from mqreplay.findings.sends import send_runs
from mqreplay.lake.buckets import key_of
from mqreplay.replay.context import ReplayContext
from mqreplay.replay.day import DayRows
from mqreplay.replay.judged_rows import JudgedRows, counted_rows
from mqreplay.replay.queue_tables import OFFSETS_BEFORE, SILVER, SNAPSHOTS

MESSAGE: Final = key_of(("msg_id",))


@dataclass(frozen=True)
class DeliveryInput:
    """The context, the broadcasting groups, the consumers of groups, whether any delivery was logged, and the
    clients in other languages.
    """

    context: ReplayContext
    unshared_groups: pl.DataFrame
    consumers: pl.DataFrame  # queue_start.consumers
    has_log: bool
    other_clients: pl.DataFrame  # client_languages.other_clients


@dataclass(frozen=True)
class DeliveryResult:
    """Frames of deliveries."""

    repeated_deliveries: pl.DataFrame
    redelivered_messages: pl.DataFrame
    max_reconsume_times: pl.DataFrame
    failed_messages: pl.DataFrame  # send_runs
    retry_deliveries: pl.DataFrame
    suspended_deliveries: pl.DataFrame
    commits: JudgedRows
    passed_commits: pl.DataFrame  # rows of gold.committed_offset


@dataclass(frozen=True)
class ScopedDeliveries:
    """The deliveries of some queues, and their part of the audit's scope."""

    deliveries: DeliveryResult
    scope: ScopeOfShard


@dataclass(frozen=True)
class AuditInput:
    """The context, the audit's scope, the groups' subscriptions, the brokers' versions, and the breaks of offsets."""

    context: ReplayContext
    scope: AuditScope
    subscriptions: pl.DataFrame
    versions: tuple[str, ...]
    offset_continuity: pl.DataFrame


@dataclass(frozen=True)
class AuditResult:
    """The outcomes of messages, counted."""

    counts: pl.DataFrame


def judge_deliveries(source: RowSource, shard: Shard, shared: DeliveryInput, gold: GoldRows) -> ScopedDeliveries:
    """Find messages that some queues delivered twice or took back, and the scope of the audit."""
    day, skew, unshared = DayRows(shared.context.day, source), shared.context.skew, shared.unshared_groups
    produce, commits, changes = (
        day.silver(name, shard, skew) for name in ("produce", "offset_commit", "offset_change")
    )
    consume = with_queue_topic(day.silver("consume", shard, skew))
    committed = committed_offsets(commits if shared.has_log else commits.clear(), consume, shared.consumers)
    committed = without_other_languages(committed, shared.other_clients)
    of_day = committed.filter(shared.context.day.judged)
    deliveries = DeliveryResult(
        repeated_deliveries(consume, unshared),
        redelivered_messages(consume),
        max_reconsume_times_of_shard(consume),
        send_runs(failed_messages(produce), shared.context.settings.findings.same_cause_gap_s),
        retry_deliveries(consume),
        suspended_deliveries(consume),
        counted_rows("gold.committed_offset", of_day),
        stored_rows(committed),
    )
    return ScopedDeliveries(deliveries, scope_of_shard(produce, consume, stored_commits(commits), changes, unshared))


def audit_messages(source: RowSource, shard: Shard, shared: AuditInput, gold: GoldRows) -> AuditResult:
    """Count the outcomes of some messages."""
    day, mine = DayRows(shared.context.day, source), shard.has(name_bucket("msg_id"))
    produce, consume = (day.silver(name, mine, shared.context.skew) for name in ("produce", "consume"))
    consume = with_queue_topic(consume)
    subscribed = (shared.subscriptions, shared.versions)
    counts = message_counts_of_shard(produce, consume, shared.scope, *subscribed, shared.offset_continuity)
    return AuditResult(counts)


DELIVERY_PASS: Final = Pass(
    judge_deliveries,
    (*(SILVER[name] for name in ("offset_commit", "offset_change", "consume", "produce")), OFFSETS_BEFORE, SNAPSHOTS),
)
AUDIT_PASS: Final = Pass(audit_messages, tuple(PassTable(f"silver.{name}", MESSAGE) for name in ("produce", "consume")))
