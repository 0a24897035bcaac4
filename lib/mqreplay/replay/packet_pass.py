"""The audit of messages by packets: a pass over sends, by topic, and what it needs of the queues."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import polars as pl

from mqreplay.core.retry_topic import RETRY_GROUP_TOPIC_PREFIX
from mqreplay.decisions.packet_audit import packet_audit, packet_counts_of_shard, unplaced_messages
from mqreplay.engines.passes import GoldRows, Pass, PassRunner, PassTable
from mqreplay.engines.rows import RowSource
from mqreplay.engines.shards import Shard, count_buckets, deal
from mqreplay.evidence.members.membership import subscribed_expressions
from mqreplay.evidence.messages.audit_scope import GROUP_TOPIC
from mqreplay.evidence.messages.pulled_messages import PulledMessages
from mqreplay.evidence.messages.retry_fates import retry_fates
from mqreplay.evidence.messages.subscribed_messages import known_versions
from mqreplay.lake.buckets import buckets
from mqreplay.replay.context import ReplayContext
from mqreplay.replay.day import DayRows
from mqreplay.replay.merged import merged
from mqreplay.replay.send_pass import TOPIC

UNREAD: Final = (
    *("client_addr", "broker_addr", "born_ts", "sys_flag", "size", "invoke_id", "cost_ms", "response_name", "remark"),
    *("offset_msg_id", "source_digest"),
)


@dataclass(frozen=True)
class PacketInput:
    """The context, what groups received, their subscriptions, versions, breaks of offsets, and messages sent back."""

    context: ReplayContext
    pulled: PulledMessages
    subscriptions: pl.DataFrame
    versions: tuple[str, ...]
    offset_continuity: pl.DataFrame
    fates: pl.DataFrame  # retry_fates


@dataclass(frozen=True)
class PacketResult:
    """The outcomes of messages, counted; and sends that are not counted."""

    counts: pl.DataFrame
    unplaced: pl.DataFrame


def audit_packets(source: RowSource, shard: Shard, shared: PacketInput, gold: GoldRows) -> PacketResult:
    """Count the outcomes of the messages of some topics."""
    return _audited(DayRows(shared.context.day, source).silver("send", shard, shared.context.skew), shared)


def _audited(send: pl.DataFrame, shared: PacketInput) -> PacketResult:
    counts = packet_counts_of_shard(
        send, shared.pulled, shared.subscriptions, shared.versions, shared.offset_continuity, shared.fates
    )
    return PacketResult(counts, unplaced_messages(send))


PACKET_PASS: Final = Pass(audit_packets, (PassTable("silver.send", TOPIC, unread=UNREAD),))


@dataclass(frozen=True)
class AuditedMessages:
    """The rows of gold.delivery_audit."""

    audit: pl.DataFrame


def audit_by_packets(
    runner: PassRunner,
    context: ReplayContext,
    sent: pl.DataFrame,
    pulled: PulledMessages,
    continuity: pl.DataFrame,
    unshared: pl.DataFrame,
    retried: pl.DataFrame,
    popped: pl.DataFrame,
    logged: pl.DataFrame,
) -> AuditedMessages:
    """Return the rows of gold.delivery_audit by logs, ``logged``, and those by packets of other groups and topics.

    ``sent`` has the topic of each send, ``unshared`` the broadcasting groups, ``popped`` consumer_group and topic of
    requests of POP; ``retried`` are rows of gold.retried_message.
    """
    queues = pulled.queues.filter(~pl.col("topic").str.starts_with(RETRY_GROUP_TOPIC_PREFIX))
    for each in (logged, unshared, popped):
        queues = queues.join(each, [name for name in GROUP_TOPIC if name in each.columns], how="anti")
    shared = PacketInput(
        context.with_tables(),
        replace(pulled, queues=queues),
        subscribed_expressions(context.small["heartbeat"]),
        known_versions(context.raw["broker"]),
        continuity,
        retry_fates(retried, pulled),
    )
    shards = deal(count_buckets(buckets(sent, TOPIC))) if len(sent) and len(queues) else []
    none = DayRows(context.day, runner.source).silver("send", pl.lit(value=False))
    made = list(runner.run(PACKET_PASS, shards, shared)) if shards else [_audited(none, shared)]
    whole = merged(made)
    return AuditedMessages(pl.concat([logged, packet_audit(whole.counts, whole.unplaced)]))
