"""The scope of gold.delivery_audit: first and last offset of each queue, and the step between offsets.

The scope depends on whole queues, so a shard here holds all rows of some queues. delivery_audit.py counts the messages;
its shards hold all rows of some messages.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import polars as pl

from mqreplay.evidence.messages.deliveries import DONE, once

QUEUE = ("topic", "broker_name", "queue_id")
GROUP_TOPIC = ("consumer_group", "topic")
GROUP_QUEUE = ("consumer_group", *QUEUE)
STEPS = (1000, 100, 10)  # a log of a busy topic may have only every n-th offset of its queues
OFFSETS = ("first_offset", "last_offset", *(f"by_{step}" for step in STEPS))
OF_QUEUE = pl.col("queue_topic") == pl.col("topic")  # not a retried message, which is in a queue of %RETRY%


class ScopeOfShard(NamedTuple):
    """The contribution of one shard to the scope.

    ``received`` (by group and queue) and ``sent`` (by queue) have the columns OFFSETS: the first and last offset in the
    consumers' and in the producers' log, and whether each of STEPS divides all of them.
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
        committers=commits.select(*GROUP_QUEUE, "client_id").unique(),
        loggers=received.select("consumer_group", "client_id").unique(),
        failed_sends=produce.filter(unconfirmed).select("topic", pl.col("key").alias("keys")).unique(),
        out_of_order=_out_of_order(received),
    )


def audit_scope(shards: Sequence[ScopeOfShard]) -> AuditScope:
    """Return the scope of all queues; there is at least one shard."""
    whole = ScopeOfShard(*[pl.concat(frames) for frames in zip(*shards, strict=True)])
    loggers = whole.loggers.unique().with_columns(pl.lit(True).alias("logs"))
    committers = whole.committers.join(loggers, on=["consumer_group", "client_id"], how="left")
    logged = committers.group_by(GROUP_QUEUE).agg(pl.col("logs").is_not_null().all().alias("logged"))
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

    Columns: ``by``, first_offset, last_offset, and for each of STEPS whether it divides all offsets.
    """
    offset = pl.col("queue_offset")
    divides = [(offset % step == 0).all().alias(f"by_{step}") for step in STEPS]
    return rows.group_by(by).agg(offset.min().alias("first_offset"), offset.max().alias("last_offset"), *divides)


def _step(offsets: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
    """Return the largest of STEPS that divides all offsets, else 1.

    Columns: ``by``, step.
    """
    whole = offsets.group_by(by).agg(pl.col("last_offset").max(), *[pl.col(f"by_{step}").all() for step in STEPS])
    # Offset 0 alone proves no step.
    fits = [pl.when(pl.col(f"by_{step}") & (pl.col("last_offset") >= step)).then(step) for step in STEPS]
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
        pl.col("queue_offset").cum_max().shift(1).over(*GROUP_QUEUE, "client_id").alias("highest")
    )
    ordered = before.sort("ts", "client_id", "reconsume_times").with_columns(
        (pl.int_range(pl.len()).over(*GROUP_QUEUE, "queue_offset") == 0).alias("first")
    )
    late = pl.col("first") & (pl.col("highest") > pl.col("queue_offset")) & (pl.col("reconsume_times") == 0)
    return ordered.group_by(*GROUP_TOPIC, pl.col("ts").dt.date().alias("day")).agg(
        late.sum().cast(pl.Int64).alias("out_of_order")
    )
