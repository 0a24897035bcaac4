"""The audit of messages by packets: a pass over sends, by topic, and what it needs of the queues."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import polars as pl

from mqreplay.core.retry_topic import RETRY_GROUP_TOPIC_PREFIX
from mqreplay.decisions.delivery_audit import BY_DAY
from mqreplay.decisions.packet_audit import IN_SHARD, UNPLACED, packet_audit, packet_counts_of_shard, unplaced_messages
from mqreplay.engines.passes import GoldRows, Pass, PassRunner, PassTable
from mqreplay.engines.rows import RowSource
from mqreplay.engines.shards import Shard, count_buckets, deal
from mqreplay.evidence.messages.audit_scope import GROUP_TOPIC
from mqreplay.evidence.messages.pulled_messages import PulledMessages
from mqreplay.evidence.messages.retry_fates import retry_fates
from mqreplay.lake.buckets import buckets
from mqreplay.replay.context import ReplayContext
from mqreplay.replay.day import DayRows
from mqreplay.replay.merged import merged
from mqreplay.replay.send_pass import TOPIC

GROUP_TOPIC_DAY: Final = {"consumer_group": pl.String, "topic": pl.String, "day": pl.Date}
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
    send = DayRows(shared.context.day, source).silver("send", shard, shared.context.skew)
    counts = packet_counts_of_shard(
        send, shared.pulled, shared.subscriptions, shared.versions, shared.offset_continuity, shared.fates
    )
    return PacketResult(counts, unplaced_messages(send))


PACKET_PASS: Final = Pass(audit_packets, (PassTable("silver.send", TOPIC, unread=UNREAD),))


def packet_audit_of_day(
    runner: PassRunner,
    sent: pl.DataFrame,
    shared: PacketInput,
    retried: pl.DataFrame,
    others: Sequence[pl.DataFrame],
) -> pl.DataFrame:
    """Return the rows of gold.delivery_audit by packets.

    ``sent`` has the topic of each send, ``retried`` rows of gold.retried_message. ``others`` are frames of groups, or
    of groups and topics, that are not audited by packets.
    """
    queues = shared.pulled.queues.filter(~pl.col("topic").str.starts_with(RETRY_GROUP_TOPIC_PREFIX))
    for each in others:
        queues = queues.join(each, [name for name in GROUP_TOPIC if name in each.columns], how="anti")
    mine = replace(shared, pulled=replace(shared.pulled, queues=queues), fates=retry_fates(retried, shared.pulled))
    if sent.is_empty() or queues.is_empty():
        none = pl.DataFrame(schema=dict.fromkeys((*BY_DAY, *IN_SHARD, *UNPLACED), pl.Int64) | GROUP_TOPIC_DAY)
        return packet_audit(none.drop(UNPLACED), none.select("topic", "day", *UNPLACED))
    shards = deal(count_buckets(buckets(sent, TOPIC)))
    made = merged(list(runner.run(PACKET_PASS, shards, mine)))
    return packet_audit(made.counts, made.unplaced)
