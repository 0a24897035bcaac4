"""The passes over messages: deliveries, by queue; and the audits by logs and by packets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import polars as pl

from mqreplay.core.retry_topic import RETRY_GROUP_TOPIC_PREFIX
from mqreplay.decisions.committed_offset import COMMITTED_OFFSET, committed_offsets
from mqreplay.decisions.committed_offset import stored_rows as stored_offsets
from mqreplay.decisions.decision import by_name
from mqreplay.decisions.delivery_audit import delivery_audit, message_counts_of_shard
from mqreplay.decisions.packet_audit import packet_audit, packet_counts_of_shard, unplaced_messages
from mqreplay.engines.passes import GoldRows, Pass, PassRunner, PassTable
from mqreplay.engines.rows import RowSource
from mqreplay.engines.shards import Shard, count_buckets, deal, deal_evenly, name_bucket
from mqreplay.evidence.members.client_languages import without_other_languages
from mqreplay.evidence.members.membership import subscribed_expressions
from mqreplay.evidence.messages.audit_scope import AuditScope, ScopeOfShard, audit_gaps, audit_scope, scope_of_shard
from mqreplay.evidence.messages.deliveries import (
    max_reconsume_times_of_shard,
    redelivered_messages,
    repeated_deliveries,
    suspended_deliveries,
    with_queue_topic,
)
from mqreplay.evidence.messages.failed_sends import failed_messages
from mqreplay.evidence.messages.pulled_messages import PulledMessages, retry_fates
from mqreplay.evidence.messages.sent_back import retry_deliveries
from mqreplay.evidence.messages.subscribed_messages import known_versions
from mqreplay.evidence.offsets.queue_events import stored_commits
from mqreplay.findings.sends import send_runs
from mqreplay.lake.buckets import buckets, key_of
from mqreplay.replay.context import ReplayContext
from mqreplay.replay.day import DayRows
from mqreplay.replay.frames import joined, outputs
from mqreplay.replay.queue_tables import OFFSETS_BEFORE, SILVER, SNAPSHOT_ROWS
from mqreplay.replay.send_pass import TOPIC_BUCKET
from mqreplay.replay.task_results import JudgedRows, counted_rows, merged
from mqreplay.words.keys import GROUP_TOPIC

MESSAGE_BUCKET: Final = key_of(("msg_id",))
UNREAD_BY_PACKETS: Final = (
    *("client_addr", "broker_addr", "born_ts", "sys_flag", "size", "invoke_id", "cost_ms", "response_name", "remark"),
    *("offset_msg_id", "source_digest"),
)


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
    """Frames of deliveries; ``passed_commits`` are rows of gold.committed_offset, counted in ``judged``."""

    judged: JudgedRows
    passed_commits: pl.DataFrame
    repeated_deliveries: pl.DataFrame
    redelivered_messages: pl.DataFrame
    max_reconsume_times: pl.DataFrame
    failed_messages: pl.DataFrame  # send_runs
    retry_deliveries: pl.DataFrame
    suspended_deliveries: pl.DataFrame


@dataclass(frozen=True)
class ScopedDeliveries:
    """The deliveries of some queues, and their part of the audit's scope."""

    deliveries: DeliveryResult
    scope: ScopeOfShard


@dataclass(frozen=True)
class Delivered:
    """The deliveries of all queues, and the audit's scope."""

    deliveries: DeliveryResult
    scope: AuditScope


def judge_deliveries(source: RowSource, shard: Shard, shared: DeliveryInput, gold: GoldRows) -> ScopedDeliveries:
    """Find messages that some queues delivered twice or took back, and the scope of the audit."""
    day, skew, unshared = DayRows(shared.context.day, source), shared.context.skew, shared.unshared_groups
    produce, commits, changes = (
        day.silver(name, shard, skew) for name in ("produce", "offset_commit", "offset_change")
    )
    consume = with_queue_topic(day.silver("consume", shard, skew))
    committed = committed_offsets(commits if shared.has_log else commits.clear(), consume, shared.consumers)
    committed = without_other_languages(committed, shared.other_clients)
    deliveries = DeliveryResult(
        judged=counted_rows(COMMITTED_OFFSET, committed.filter(shared.context.day.judged)),
        passed_commits=stored_offsets(committed),
        repeated_deliveries=repeated_deliveries(consume, unshared),
        redelivered_messages=redelivered_messages(consume),
        max_reconsume_times=max_reconsume_times_of_shard(consume),
        failed_messages=send_runs(failed_messages(produce), shared.context.settings.findings.same_cause_gap_s),
        retry_deliveries=retry_deliveries(consume),
        suspended_deliveries=suspended_deliveries(consume),
    )
    return ScopedDeliveries(deliveries, scope_of_shard(produce, consume, stored_commits(commits), changes, unshared))


DELIVERY_PASS: Final = Pass(
    judge_deliveries,
    (
        *(SILVER[name] for name in ("offset_commit", "offset_change", "consume", "produce")),
        OFFSETS_BEFORE,
        SNAPSHOT_ROWS,
    ),
)


def logged_messages(logged_counts: pl.DataFrame) -> int:
    """Return the number of rows in the logs of messages."""
    return int(logged_counts["rows"].sum())


def run_deliveries(
    runner: PassRunner,
    context: ReplayContext,
    shards: Sequence[Shard],
    logged: int,
    unshared_groups: pl.DataFrame,
    consumers: pl.DataFrame,
    other_clients: pl.DataFrame,
) -> Delivered:
    """Judge the deliveries of all queues, by one task if none was logged."""
    shared = DeliveryInput(context.with_tables(), unshared_groups, consumers, logged > 0, other_clients)
    parts = list(runner.run(DELIVERY_PASS, shards if logged else shards[:1], shared))
    return Delivered(merged([each.deliveries for each in parts]), audit_scope([each.scope for each in parts]))


@dataclass(frozen=True)
class AuditInput:
    """The context, the groups' subscriptions, the brokers' versions, and the breaks of offsets."""

    context: ReplayContext
    subscriptions: pl.DataFrame
    versions: tuple[str, ...]
    offset_continuity: pl.DataFrame


def audit_input(
    context: ReplayContext, heartbeat: pl.DataFrame, broker: pl.DataFrame, continuity: pl.DataFrame
) -> AuditInput:
    """Return what both audits need."""
    return AuditInput(context.with_tables(), subscribed_expressions(heartbeat), known_versions(broker), continuity)


@dataclass(frozen=True)
class LogInput:
    """The input of the audit by logs."""

    audit: AuditInput
    scope: AuditScope


@dataclass(frozen=True)
class AuditResult:
    """The outcomes of messages, counted."""

    counts: pl.DataFrame


def audit_messages(source: RowSource, shard: Shard, shared: LogInput, gold: GoldRows) -> AuditResult:
    """Count the outcomes of some messages."""
    audit = shared.audit
    day, mine = DayRows(audit.context.day, source), shard.has(name_bucket("msg_id"))
    produce, consume = (day.silver(name, mine, audit.context.skew) for name in ("produce", "consume"))
    subscribed = (audit.subscriptions, audit.versions)
    return AuditResult(
        message_counts_of_shard(produce, with_queue_topic(consume), shared.scope, *subscribed, audit.offset_continuity)
    )


AUDIT_PASS: Final = Pass(
    audit_messages, tuple(PassTable(f"silver.{name}", MESSAGE_BUCKET) for name in ("produce", "consume"))
)


def audit_by_logs(runner: PassRunner, audit_input: AuditInput, scope: AuditScope, logged: int) -> pl.DataFrame:
    """Return the rows of gold.delivery_audit by the logs of producers and consumers."""
    parts = list(runner.run(AUDIT_PASS, deal_evenly(logged), LogInput(audit_input, scope)))
    return delivery_audit(merged(parts).counts, scope)


@dataclass(frozen=True)
class PacketInput:
    """The input of the audit by packets: what groups received, and what became of messages sent back."""

    audit: AuditInput
    pulled: PulledMessages
    fates: pl.DataFrame  # retry_fates


@dataclass(frozen=True)
class PacketResult:
    """The outcomes of messages, counted; and sends that are not counted."""

    counts: pl.DataFrame
    unplaced: pl.DataFrame


def audit_packets(source: RowSource, shard: Shard, shared: PacketInput, gold: GoldRows) -> PacketResult:
    """Count the outcomes of the messages of some topics."""
    context = shared.audit.context
    return _audited(DayRows(context.day, source).silver("send", shard, context.skew), shared)


def _audited(send: pl.DataFrame, shared: PacketInput) -> PacketResult:
    audit = shared.audit
    subscribed = (audit.subscriptions, audit.versions)
    counts = packet_counts_of_shard(send, shared.pulled, *subscribed, audit.offset_continuity, shared.fates)
    return PacketResult(counts, unplaced_messages(send))


PACKET_PASS: Final = Pass(audit_packets, (PassTable("silver.send", TOPIC_BUCKET, unread=UNREAD_BY_PACKETS),))


def audit_by_packets(
    runner: PassRunner,
    rows: DayRows,
    audit_input: AuditInput,
    sent: pl.DataFrame,
    popped_topics: pl.DataFrame,
    pulled: PulledMessages,
    unshared_groups: pl.DataFrame,
    retried: pl.DataFrame,
    logged_audit: pl.DataFrame,
) -> pl.DataFrame:
    """Return the rows of gold.delivery_audit by logs, and those by packets of other groups and topics.

    ``sent`` has the topic of each send, ``popped_topics`` consumer_group and topic of requests of POP; ``retried`` are
    rows of gold.retried_message.
    """
    queues = pulled.queues.filter(~pl.col("topic").str.starts_with(RETRY_GROUP_TOPIC_PREFIX))
    for each in (logged_audit, unshared_groups, popped_topics):
        queues = queues.join(each, [name for name in GROUP_TOPIC if name in each.columns], how="anti")
    shared = PacketInput(audit_input, replace(pulled, queues=queues), retry_fates(retried, pulled))
    if len(sent) and len(queues):
        whole = merged(list(runner.run(PACKET_PASS, deal(count_buckets(buckets(sent, TOPIC_BUCKET))), shared)))
    else:
        whole = _audited(rows.silver("send", pl.lit(value=False)), shared)
    return pl.concat([logged_audit, packet_audit(whole.counts, whole.unplaced)])


def popped_topics(rows: DayRows, sent: pl.DataFrame) -> pl.DataFrame:
    """Return the group and the topic of each request of POP; none if no sends are audited."""
    return rows.silver("pop", None if len(sent) else pl.lit(value=False), None, ["consumer_group", "topic"])


STEPS: Final = joined(
    outputs("deliveries", DeliveryResult),
    {
        "popped_topics": by_name(popped_topics),
        "deliveries": "delivered.deliveries",
        "delivered": by_name(run_deliveries),
        "logged": by_name(logged_messages),
        "audit_input": by_name(audit_input, continuity="gold.offset_continuity"),
        "logged_audit": by_name(audit_by_logs, scope="delivered.scope"),
        "gold.delivery_audit": by_name(audit_by_packets, retried="gold.retried_message"),
        "audit_gaps": by_name(audit_gaps, popped="popped_topics", audit="gold.delivery_audit"),
    },
)
