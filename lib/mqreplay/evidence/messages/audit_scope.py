"""The scope of gold.delivery_audit: first and last offset of each queue, and the step between offsets.

The scope depends on whole queues, so a shard here holds all rows of some queues. delivery_audit.py counts the messages;
its shards hold all rows of some messages. Groups and topics out of the scope, although sends were recorded, are gaps.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Sequence
from typing import Final, NamedTuple

import polars as pl

from mqreplay.evidence.frames import with_flag
from mqreplay.evidence.gap_rows import GAP, gap_rows
from mqreplay.evidence.messages.deliveries import DONE, once
from mqreplay.words.keys import CLIENT_QUEUE, GROUP_QUEUE, GROUP_TOPIC, MEMBER, QUEUE

OFFSET_STEPS = (1000, 100, 10)  # a log of a busy topic may have only every n-th offset of its queues
SCOPE_OFFSETS = ("first_offset", "last_offset", *(f"by_{step}" for step in OFFSET_STEPS))
OF_QUEUE = pl.col("queue_topic") == pl.col("topic")  # not a retried message, which is in a queue of %RETRY%
AUDITED_LOGS: Final = ("consume_log", "produce_log")
BY_POP: Final = "the group receives messages by POP: packets are audited for groups that pull"
NO_ANSWERS: Final = (
    "recorded sends have no answer with an offset, or no pulls of their topics were recorded. Next time: capture the"
    " packets of all brokers' ports"
)


class ScopeOfShard(NamedTuple):
    """The contribution of one shard to the scope.

    ``received`` (by group and queue) and ``sent`` (by queue) have SCOPE_OFFSETS: the first and last offset in
    the consumers' and in the producers' log, and whether each of OFFSET_STEPS divides all of them.
    """

    received: pl.DataFrame
    sent: pl.DataFrame
    committed: pl.DataFrame  # the offset that each group committed last, by queue
    committers: pl.DataFrame  # the clients (client_id) that committed, by group and queue
    loggers: pl.DataFrame  # consumer_group, client_id: clients with a log of deliveries
    failed_sends: pl.DataFrame  # topic, keys: messages that producers sent without a confirmation
    out_of_order: pl.DataFrame  # consumer_group, topic, day, out_of_order


class AuditScope(NamedTuple):
    """The scope of all queues. ``step``: distance between the offsets in the log; 1: the log has all offsets."""

    received: pl.DataFrame  # by group and queue: first_offset, step, committed, logged (all committers left a log)
    sent: pl.DataFrame  # by queue: first_offset, last_offset, step
    failed_sends: pl.DataFrame  # topic, keys
    out_of_order: pl.DataFrame  # consumer_group, topic, day, out_of_order: no row unless a listener is orderly


def scope_of_shard(
    produce: pl.DataFrame,
    consume: pl.DataFrame,
    offset_commit: pl.DataFrame,
    offset_change: pl.DataFrame,
    broadcasting: pl.DataFrame,
) -> ScopeOfShard:
    """Return the contribution of some whole queues; a row of ``consume`` belongs to the queue of its queue_topic.

    ``broadcasting`` has the consumer_group of groups whose clients each receive every message: they are not audited.
    """
    received = consume.join(broadcasting, on="consumer_group", how="anti")
    commits = offset_commit.filter((pl.col("kind") == "UPDATE") & pl.col("error").is_null())
    unconfirmed = (pl.col("send_status").fill_null("") != "SEND_OK") & pl.col("key").is_not_null()
    return ScopeOfShard(
        received=_offsets(received.filter(OF_QUEUE), GROUP_QUEUE),
        sent=_offsets(confirmed(produce), QUEUE),
        committed=last_committed(commits, offset_change),
        committers=commits.select(*CLIENT_QUEUE).unique(),
        loggers=received.select("consumer_group", "client_id").unique(),
        failed_sends=produce.filter(unconfirmed).select("topic", pl.col("key").alias("keys")).unique(),
        out_of_order=_out_of_order(received),
    )


def audit_scope(shards: Sequence[ScopeOfShard]) -> AuditScope:
    """Return the scope of all queues; there is at least one shard."""
    whole = ScopeOfShard(*[pl.concat(frames) for frames in zip(*shards, strict=True)])
    committers = with_flag(whole.committers, whole.loggers, MEMBER, "logs")
    logged = committers.group_by(GROUP_QUEUE).agg(pl.col("logs").all().alias("logged"))
    received = (
        whole.received.join(_step(whole.received, GROUP_TOPIC), on=GROUP_TOPIC)
        .join(whole.committed, on=GROUP_QUEUE, how="left")
        .join(logged, on=GROUP_QUEUE, how="left")
    )
    sent = whole.sent.join(_step(whole.sent, ["topic"]), on="topic")
    orders = whole.out_of_order.group_by(*GROUP_TOPIC, "day").agg(pl.col("out_of_order").sum())
    return AuditScope(
        received=received.select(*GROUP_QUEUE, "first_offset", "step", "committed", "logged"),
        sent=sent.select(*QUEUE, "first_offset", "last_offset", "step"),
        failed_sends=whole.failed_sends.unique(),
        out_of_order=orders,
    )


def confirmed(produce: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of messages that a broker confirmed, with their offset."""
    return produce.filter((pl.col("send_status") == "SEND_OK") & pl.col("queue_offset").is_not_null())


def _offsets(rows: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
    """Return the first and last queue_offset of the rows by the columns ``by``.

    Columns: ``by``, first_offset, last_offset, and for each of OFFSET_STEPS whether it divides all offsets.
    """
    offset = pl.col("queue_offset")
    divides = [(offset % step == 0).all().alias(f"by_{step}") for step in OFFSET_STEPS]
    return rows.group_by(by).agg(offset.min().alias("first_offset"), offset.max().alias("last_offset"), *divides)


def _step(offsets: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
    """Return the largest of OFFSET_STEPS that divides all offsets, else 1.

    Columns: ``by``, step.
    """
    whole = offsets.group_by(by).agg(
        pl.col("last_offset").max(), *[pl.col(f"by_{step}").all() for step in OFFSET_STEPS]
    )
    # Offset 0 alone proves no step.
    fits = [pl.when(pl.col(f"by_{step}") & (pl.col("last_offset") >= step)).then(step) for step in OFFSET_STEPS]
    return whole.select(*by, pl.coalesce(*fits, pl.lit(1)).cast(pl.Int64).alias("step"))


def last_committed(commits: pl.DataFrame, offset_change: pl.DataFrame) -> pl.DataFrame:
    """Return the last offset that each group committed, by the commits or by the master's file.

    Columns: consumer_group, topic, broker_name, queue_id, committed.
    """
    sent = commits.select(*GROUP_QUEUE, "ts", pl.col("commit_offset").alias("offset"))
    saved = offset_change.filter(pl.col("broker_id") == 0).select(
        *GROUP_QUEUE, pl.col("to_ts").alias("ts"), pl.col("new_offset").alias("offset")
    )
    known = pl.concat([sent, saved]).drop_nulls("offset")
    last = pl.col("offset").filter(pl.col("ts") == pl.col("ts").max()).max()
    return known.group_by(GROUP_QUEUE).agg(last.alias("committed"))


def _out_of_order(received: pl.DataFrame) -> pl.DataFrame:
    """Return the number of first deliveries after a later offset of the same queue.

    Columns: consumer_group, topic, day, out_of_order.

    RocketMQ promises an order only to orderly listeners (ConsumeMessageOrderlyService), so concurrent ones have no row.
    A delivery counts if the client has received a higher offset before, no client has received the message before, and
    it is not a retry.
    """
    orderly = once(received.filter(OF_QUEUE & pl.col("orderly") & pl.col("status").is_in(DONE)))
    before = orderly.sort("ts", "queue_offset").with_columns(
        pl.col("queue_offset").cum_max().shift(1).over(*CLIENT_QUEUE).alias("highest")
    )
    ordered = before.sort("ts", "client_id", "reconsume_times").with_columns(
        (pl.int_range(pl.len()).over(*GROUP_QUEUE, "queue_offset") == 0).alias("first")
    )
    late = pl.col("first") & (pl.col("highest") > pl.col("queue_offset")) & (pl.col("reconsume_times") == 0)
    return ordered.group_by(*GROUP_TOPIC, pl.col("ts").dt.date().alias("day")).agg(
        late.sum().cast(pl.Int64).alias("out_of_order")
    )


def audit_gaps(
    day: dt.date, sent: pl.DataFrame, popped: pl.DataFrame, audit: pl.DataFrame, missing: Collection[str]
) -> pl.DataFrame:
    """Return the gaps (columns of GAP) of the day.

    ``sent`` has the topic of each recorded send, ``popped`` consumer_group and topic of requests of POP. ``audit`` are
    the rows of gold.delivery_audit; the recording lacks the kinds of files ``missing``.
    """
    if sent.is_empty():  # that no sends were recorded is a gap of missing kinds
        return pl.DataFrame(schema=GAP)
    by_pop = (
        popped.select(GROUP_TOPIC)
        .unique()
        .join(sent.select("topic").unique(), "topic", how="semi")
        .join(audit, GROUP_TOPIC, how="anti")
        .with_columns(pl.lit(BY_POP).alias("reason"), pl.lit("undetermined").alias("evidence"))
    )
    parts = [by_pop]
    if audit.is_empty() and by_pop.is_empty() and not set(AUDITED_LOGS).isdisjoint(missing):
        parts.append(pl.DataFrame({"reason": [NO_ANSWERS], "evidence": ["sends"]}))
    named = pl.concat(parts, how="diagonal").with_columns(
        pl.lit(day).alias("day"),
        pl.lit("gold.delivery_audit").alias("decision"),
        pl.lit(0, pl.Int64).alias("decisions"),
    )
    return gap_rows(named)
