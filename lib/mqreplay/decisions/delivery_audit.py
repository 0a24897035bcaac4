"""gold.delivery_audit: what became of each group's messages, by the logs of producers and consumers.

The sums are those of Jepsen's total-queue (tests/oracles/delivery_audit.py has the rule over multisets); here each
message is a row, named by its unique id. A message is lost only if the group passed it without having received it:
missing evidence is never counted as a loss.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import polars as pl

from mqreplay.decisions.decision import Decision, RowCount
from mqreplay.decode.recording.advice import Need
from mqreplay.evidence.frames import first_of, with_flag
from mqreplay.evidence.messages.audit_scope import OF_QUEUE, AuditScope, confirmed
from mqreplay.evidence.messages.deliveries import DELIVERY, DONE, once
from mqreplay.evidence.messages.subscribed_messages import with_match
from mqreplay.words.keys import GROUP_QUEUE, GROUP_TOPIC, QUEUE

BY_DAY = (*GROUP_TOPIC, "day")
AUDIT_COUNTS = (
    "acknowledged",
    "delivered",
    "pending",
    "failed",
    "skipped",
    "filtered",
    "lost",
    "duplicated",
    "unexpected",
    "out_of_order",
)
DOUBTS = ("maybe_filtered", "by_sql", "no_heartbeat", "unknown_end", "unlogged")
IN_SHARD = (*(name for name in AUDIT_COUNTS if name != "out_of_order"), *DOUBTS)
LOGS_EVIDENCE = "logs"
MESSAGE_ID = (*GROUP_TOPIC, "msg_id")
MISSING = (pl.col("deliveries") + pl.col("tries") == 0).fill_null(value=True)


def message_counts_of_shard(
    produce: pl.DataFrame,
    consume: pl.DataFrame,
    scope: AuditScope,
    subscriptions: pl.DataFrame,
    versions: Sequence[str],
    continuity: pl.DataFrame,
) -> pl.DataFrame:
    """Return how many messages of a shard had each outcome, by group, topic and day.

    Columns: consumer_group, topic, day, and one count for each name of IN_SHARD.

    A shard of ``produce`` and ``consume`` holds all rows of some messages by msg_id, whichever queues they are in: a
    message that comes back does so by another queue, and a producer may store one twice. ``scope``, ``subscriptions``
    (see `with_match`) and ``continuity`` (gold.offset_continuity) are those of all shards; ``versions`` those of the
    brokers.

    A message counts from the first offset of its queue that the group received; where a log holds only each n-th
    offset, only those count.
    """
    audited = consume.join(scope.received, on=GROUP_TOPIC, how="semi")
    received = once(audited.select(*DELIVERY, "msg_id", "keys", "record_id"))
    sent = (
        confirmed(produce)
        .select(*QUEUE, "queue_offset", "tags", "msg_id", pl.col("ts").dt.date().alias("day"))
        .unique()
    )
    due = sent.join(scope.received, on=QUEUE).filter(
        (pl.col("queue_offset") >= pl.col("first_offset")) & (pl.col("queue_offset") % pl.col("step") == 0)
    )
    done = pl.col("status").is_in(DONE)
    by_message = received.group_by(MESSAGE_ID).agg(done.sum().alias("deliveries"), (~done).sum().alias("tries"))
    tracked = due.join(by_message, on=MESSAGE_ID, how="left").with_columns(MISSING.alias("missing"))
    # Only a message without a delivery may have been filtered.
    matched = with_match(tracked.filter("missing"), produce, subscriptions, versions)
    both = pl.concat([tracked.filter(~pl.col("missing")), matched], how="diagonal")
    subscribed = with_flag(both, subscriptions, GROUP_TOPIC, "subscribed")
    counted = _with_outcome(with_skipped(subscribed, continuity)).group_by(BY_DAY).agg(_counts())
    strange = _unexpected(received.filter(done & OF_QUEUE), sent, scope)
    return pl.concat([counted, strange], how="diagonal").select(
        *BY_DAY, *[pl.col(name).fill_null(0).cast(pl.Int64) for name in IN_SHARD]
    )


def delivery_audit(counts: pl.DataFrame, scope: AuditScope) -> pl.DataFrame:
    """Return the rows of gold.delivery_audit: one a group, topic and day; ``counts`` are those of all shards."""
    whole = counts.group_by(BY_DAY).agg(pl.col(IN_SHARD).sum()).filter(pl.col("acknowledged") > 0)
    steps = scope.received.select(*GROUP_TOPIC, "step").unique()
    known = whole.join(steps, on=GROUP_TOPIC).join(scope.out_of_order, on=BY_DAY, how="left")
    doubt = _doubt()
    judged = known.with_columns(
        pl.when(pl.col("maybe_filtered") == 0).then("filtered").alias("filtered"),
        pl.when(doubt.is_null()).then("lost").alias("lost"),
        pl.coalesce(doubt, _basis()).alias("reason"),
        pl.lit(LOGS_EVIDENCE).alias("source"),
    )
    return judged.select("day", *GROUP_TOPIC, *AUDIT_COUNTS, "reason", "source")


def _doubt() -> pl.Expr:
    """Return why it is not known whether messages were lost; null where it is."""
    undelivered = "messages without a delivery may "
    return first_of(
        (pl.col("by_sql") > 0, f"a SQL92 filter, and properties that are not known: {undelivered}have been filtered"),
        (pl.col("no_heartbeat") > 0, f"no heartbeat tells what the group subscribed to: {undelivered}not match it"),
        (pl.col("unknown_end") > 0, f"no commit tells how far the group came: {undelivered}be pending"),
        (pl.col("unlogged") > 0, f"a client that committed past them left no log of deliveries: {undelivered}be in it"),
    )


def _basis() -> pl.Expr:
    """Return what the counts rest on, where nothing is in doubt."""
    sampled = pl.format(", of every {}th offset of a queue, as logged", "step")
    no_order = pl.when(pl.col("out_of_order").is_null()).then(pl.lit("; order is promised to orderly listeners only"))
    logs = pl.lit("by the logs of producers and consumers")
    return pl.concat_str(logs, pl.when(pl.col("step") > 1).then(sampled), no_order, ignore_nulls=True)


def with_skipped(due: pl.DataFrame, continuity: pl.DataFrame) -> pl.DataFrame:
    """Add ``skipped``: the group's offset was moved past the message, which was there then."""
    jumps = continuity.filter(pl.col("kind").is_in(["jump", "beyond_max"]) & (pl.col("broker_id") == 0)).select(
        *GROUP_QUEUE,
        pl.col("previous_offset").alias("from_offset"),
        pl.min_horizontal("new_offset", "queue_max_offset").alias("to_offset"),
    )
    numbered = due.with_row_index("row")
    offset = pl.col("queue_offset")
    # Only a message without a delivery is counted as skipped.
    open_rows = numbered.filter(pl.col("deliveries").fill_null(0) == 0)
    inside = open_rows.join(jumps, on=GROUP_QUEUE).filter(
        (offset >= pl.col("from_offset")) & (offset < pl.col("to_offset"))
    )
    return numbered.with_columns(pl.col("row").is_in(inside["row"].unique().implode()).alias("skipped")).drop("row")


def _with_outcome(tracked: pl.DataFrame) -> pl.DataFrame:
    """Add what is known of each message.

    ``missing``: the group never received it. ``wanted``: missing, and not ``filtered``. ``passed``: wanted, and the
    group committed a later offset, which was not moved past it.
    """
    return (
        tracked.with_columns(
            (pl.col("deliveries") > 0).fill_null(False).alias("consumed"),
            (~pl.col("subscribed")).alias("no_heartbeat"),
            pl.col("by_sql").fill_null(False),
            (pl.col("queue_offset") < pl.col("committed")).alias("behind"),  # null: not known
            (~pl.col("matches")).fill_null(False).alias("filtered"),
        )
        .with_columns((pl.col("missing") & ~pl.col("filtered")).alias("wanted"))
        .with_columns((pl.col("wanted") & pl.col("behind").fill_null(False) & ~pl.col("skipped")).alias("passed"))
    )


def _counts() -> Sequence[pl.Expr]:
    """Return the aggregates of one group, topic and day."""
    behind, missing, passed, wanted = (pl.col(name) for name in ("behind", "missing", "passed", "wanted"))
    again = pl.col("deliveries").cast(pl.Int64).fill_null(0) - 1
    counted = {
        "acknowledged": pl.len(),
        "delivered": pl.col("consumed").sum(),
        "pending": (wanted & ~behind.fill_null(True)).sum(),
        "failed": (~pl.col("consumed") & ~missing).sum(),
        "skipped": (wanted & behind & pl.col("skipped")).sum(),
        "filtered": pl.col("filtered").sum(),
        "lost": passed.sum(),
        "duplicated": again.clip(0).sum(),
        "maybe_filtered": (missing & (pl.col("no_heartbeat") | pl.col("by_sql"))).sum(),
        "by_sql": (passed & pl.col("by_sql")).sum(),
        "no_heartbeat": (passed & pl.col("no_heartbeat")).sum(),
        "unknown_end": (wanted & behind.is_null()).sum(),
        "unlogged": (passed & ~pl.col("logged").fill_null(False)).sum(),
    }
    return [count.cast(pl.Int64).alias(name) for name, count in counted.items()]


def _unexpected(done: pl.DataFrame, sent: pl.DataFrame, scope: AuditScope) -> pl.DataFrame:
    """Return the number of received messages that nobody sent, at offsets that the producers' log covers.

    Columns: consumer_group, topic, day, unexpected.
    """
    offset = pl.col("queue_offset")
    covered = done.join(scope.sent, on=QUEUE).filter(
        (offset >= pl.col("first_offset")) & (offset <= pl.col("last_offset")) & (offset % pl.col("step") == 0)
    )
    # A send that ended in an error may have been stored all the same: only its key identifies it.
    strange = covered.join(sent, on="msg_id", how="anti").join(scope.failed_sends, on=["topic", "keys"], how="anti")
    return strange.group_by(*GROUP_TOPIC, pl.col("ts").dt.date().alias("day")).agg(
        pl.col("msg_id").drop_nulls().n_unique().cast(pl.Int64).alias("unexpected")
    )


DELIVERY_AUDIT: Final = Decision(
    table="gold.delivery_audit",
    one="delivery audit",
    many="delivery audits",
    importance=27,
    needs=(Need("consume_log", or_recorded=("sends",)), Need("produce_log", or_recorded=("sends",))),
    count=RowCount("gold.delivery_audit", pl.col("lost").is_null(), pl.col("reason")),
)
