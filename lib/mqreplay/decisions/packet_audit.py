"""gold.delivery_audit of groups without logs: by the answers to sends and to pulls, and by commits.

A message counts as acknowledged if the answer to its send has its offset; as delivered if an answer to a pull of the
group has this offset and the group committed a later one. It counts as lost only if a broker moved the group past it
(OFFSET_TOO_SMALL and the like). An offset that no recorded answer has may be in one that was not recorded: then it is
not known whether messages were lost.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import polars as pl

from mqreplay.core.tags_filter import SUB_ALL, TAG
from mqreplay.core.topic_route import LOGICAL_QUEUE_MOCK_BROKER_PREFIX
from mqreplay.decisions.delivery_audit import AUDIT_COUNTS, BY_DAY, with_skipped
from mqreplay.evidence.frames import first_of
from mqreplay.evidence.messages.pulled_messages import PulledMessages, within
from mqreplay.evidence.messages.sends import STORED, outcome
from mqreplay.evidence.messages.subscribed_messages import SENT_MESSAGE, with_match
from mqreplay.words.keys import GROUP_TOPIC, QUEUE

PACKETS: Final = "packets"
COUNTED: Final = ("acknowledged", "delivered", "pending", "failed", "skipped", "filtered", "lost")
# Messages of which something is not known, and messages that are not counted at all.
DOUBTS: Final = (
    *("maybe_filtered", "no_tags", "by_sql", "no_heartbeat", "unknown_end", "unanswered", "unseen", "unrecorded"),
    *("maybe_delivered", "maybe_failed", "maybe_again"),
)
IN_SHARD: Final = (*COUNTED, *DOUBTS)


def acknowledged_messages(send: pl.DataFrame) -> pl.DataFrame:
    """Return the messages that brokers acknowledged, with their offsets: PLACE, keys, tags, day.

    Messages of a batch have consecutive offsets (MessageBatch). ``tags`` are empty for a message without tags, null if
    they are not known. ``send`` are rows of silver.send.
    """
    stored = _stored(send).filter(_has_place() & ~_is_uncounted_batch())
    listed = stored.with_columns(pl.col("batch").list.len().fill_null(0).alias("size"))
    plain = listed.filter(~_is_batch())
    batches = (
        listed.filter(_is_batch())
        .with_columns(pl.int_ranges(0, pl.col("size")).alias("place"))
        .explode("batch", "place")
        .with_columns(
            (pl.col("queue_offset") + pl.col("place")).alias("queue_offset"),
            *(pl.col("batch").struct.field(name).alias(name) for name in ("msg_id", "keys", "tags")),
        )
    )
    queue_id = pl.coalesce("answer_queue_id", "queue_id").alias("queue_id")
    columns = ("topic", "broker_name", queue_id, "queue_offset", "msg_id", "keys", "tags")
    day = pl.col("ts").dt.date().alias("day")
    return pl.concat([each.select(*columns, day) for each in (plain, batches)]).unique()


def unplaced_messages(send: pl.DataFrame) -> pl.DataFrame:
    """Return topic, day, unplaced, uncounted_batches: acknowledged sends whose offset, or number, is not known.

    The answer to a delayed message, or to half of a transaction, has the offset in a topic of the broker.
    """
    placed = _has_place()
    return (
        _stored(send)
        .group_by("topic", pl.col("ts").dt.date().alias("day"))
        .agg(
            (~placed).sum().cast(pl.Int64).alias("unplaced"),
            (placed & _is_uncounted_batch()).sum().cast(pl.Int64).alias("uncounted_batches"),
        )
    )


def _stored(send: pl.DataFrame) -> pl.DataFrame:
    logical = pl.col("broker_name").str.starts_with(LOGICAL_QUEUE_MOCK_BROKER_PREFIX)
    return send.filter((outcome() == STORED) & pl.col("queue_offset").is_not_null() & ~logical)


def _has_place() -> pl.Expr:
    return ~(pl.col("is_delayed").fill_null(value=False) | pl.col("is_transaction").fill_null(value=False))


def _is_batch() -> pl.Expr:
    return pl.col("is_batch").fill_null(value=False)


def _is_uncounted_batch() -> pl.Expr:
    return _is_batch() & (pl.col("batch").list.len().fill_null(0) == 0)


def packet_counts_of_shard(
    send: pl.DataFrame,
    pulled: PulledMessages,
    subscriptions: pl.DataFrame,
    versions: Sequence[str],
    continuity: pl.DataFrame,
    fates: pl.DataFrame,
) -> pl.DataFrame:
    """Return how many messages of some whole topics had each outcome: BY_DAY and IN_SHARD.

    ``pulled`` and ``fates`` (of `retry_fates`) are those of all queues and groups; the other arguments are as in
    `message_counts_of_shard`. A message counts from the first offset of its queue that the group received.
    """
    sent = acknowledged_messages(send)
    due = sent.join(pulled.queues, on=QUEUE).filter(pl.col("queue_offset") >= pl.col("first_offset"))
    due = within(due, pulled.received, "received", ["is_whole"])
    due = within(within(due, pulled.again, "again"), pulled.gone, "gone")
    matched = _with_matches(due, sent, subscriptions, versions)
    skipped = with_skipped(matched.with_columns(pl.col("received").cast(pl.Int64).alias("deliveries")), continuity)
    known = skipped.join(
        fates.with_columns(pl.lit(value=True).alias("was_sent_back")), [*GROUP_TOPIC, "msg_id"], how="left"
    )
    counted = _with_outcome(known).group_by(BY_DAY).agg(_counts())
    return counted.select(*BY_DAY, *[pl.col(name).cast(pl.Int64) for name in IN_SHARD])


def _with_matches(
    due: pl.DataFrame, sent: pl.DataFrame, subscriptions: pl.DataFrame, versions: Sequence[str]
) -> pl.DataFrame:
    """Add matches, by_sql, has_no_tags and subscribed: whether a heartbeat has subscriptions of the group."""
    is_all = pl.col("sub_string").is_in([SUB_ALL, ""]) & (pl.col("expression_type").fill_null(TAG) == TAG)
    pairs = subscriptions.group_by(GROUP_TOPIC).agg(is_all.any().alias("takes_all"), pl.lit(1).alias("subscribed"))
    tagged = due.with_columns(
        pl.col("tags").is_null().alias("has_no_tags"), pl.when(pl.col("tags") != "").then("tags").alias("tags")
    )
    described = sent.select(*SENT_MESSAGE, pl.col("keys").alias("key"), pl.lit(None, pl.String).alias("properties"))
    matched = with_match(tagged, described, subscriptions, versions).join(pairs, GROUP_TOPIC, how="left")
    lacks_tags = pl.col("has_no_tags") & ~pl.col("takes_all").fill_null(value=False)
    return matched.with_columns(
        pl.when(~lacks_tags).then("matches").alias("matches"),
        (lacks_tags & pl.col("subscribed").is_not_null()).alias("has_no_tags"),
    )


def _with_outcome(messages: pl.DataFrame) -> pl.DataFrame:
    """Add what is known of each message.

    ``behind``: the group committed a later offset; null: not known. ``maybe_filtered``: it may not match the
    subscription. ``passed``: the group did not receive it, committed a later offset, and nothing else explains it.
    """
    matches, received = pl.col("matches"), pl.col("received")
    return messages.with_columns(
        (pl.col("queue_offset") < pl.max_horizontal("committed", "furthest")).alias("behind"),
        (~matches).fill_null(value=False).alias("filtered"),
        # All messages of the range were in the answers: the broker filtered none.
        (matches.is_null() & ~(received & pl.col("is_whole"))).alias("maybe_filtered"),
        pl.col("subscribed").is_null().alias("no_heartbeat"),
    ).with_columns(
        (~received & ~pl.col("filtered") & pl.col("behind").fill_null(value=False) & ~pl.col("skipped")).alias("passed")
    )


def _counts() -> Sequence[pl.Expr]:
    """Return the aggregates of one group, topic and day."""
    received, passed, maybe, wanted = (
        pl.col("received"),
        pl.col("passed"),
        pl.col("maybe_filtered"),
        ~pl.col("filtered"),
    )
    behind, is_dead = pl.col("behind"), pl.col("is_dead")
    returned = pl.col("was_sent_back").fill_null(value=False)
    consumed = received & wanted & ~maybe & behind.fill_null(value=False)
    in_doubt = passed | (received & maybe & behind.fill_null(value=False))
    unanswered = (pl.col("queue_offset") >= pl.col("unanswered_from")).fill_null(value=False)
    counted = {
        "acknowledged": pl.len(),
        "delivered": (consumed & (~returned | ~is_dead.fill_null(value=True))).sum(),
        "pending": (wanted & ~behind.fill_null(value=True)).sum(),
        "failed": (consumed & returned & is_dead.fill_null(value=False)).sum(),
        "skipped": (~received & wanted & behind.fill_null(value=False) & pl.col("skipped")).sum(),
        "filtered": pl.col("filtered").sum(),
        "lost": (passed & pl.col("gone")).sum(),
        "maybe_filtered": maybe.sum(),
        "no_tags": (in_doubt & maybe & pl.col("has_no_tags")).sum(),
        "by_sql": (in_doubt & maybe & pl.col("by_sql")).sum(),
        "no_heartbeat": (in_doubt & maybe & pl.col("no_heartbeat")).sum(),
        "unknown_end": (wanted & behind.is_null()).sum(),
        "unanswered": (passed & unanswered).sum(),
        "unseen": (passed & pl.col("has_unseen")).sum(),
        "unrecorded": (passed & ~pl.col("gone")).sum(),
        "maybe_delivered": (received & maybe & behind.fill_null(value=False)).sum(),
        "maybe_failed": (consumed & returned & is_dead.is_null()).sum(),
        "maybe_again": (received & pl.col("again")).sum(),
    }
    return [count.cast(pl.Int64).alias(name) for name, count in counted.items()]


def packet_audit(counts: pl.DataFrame, unplaced: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of gold.delivery_audit by packets; ``counts`` and ``unplaced`` are those of all shards."""
    none = pl.lit(None, pl.Int64)
    doubt = _doubt()
    is_known = (pl.col("maybe_failed") == 0) & (pl.col("maybe_delivered") == 0) & (pl.col("unknown_end") == 0)
    whole = counts.group_by(BY_DAY).agg(pl.col(IN_SHARD).sum()).join(unplaced, ["topic", "day"], how="left")
    judged = whole.filter(pl.col("acknowledged") > 0).with_columns(
        pl.when(is_known).then("delivered").alias("delivered"),
        pl.when(pl.col("maybe_failed") == 0).then("failed").alias("failed"),
        pl.when(pl.col("maybe_filtered") == 0).then("filtered").alias("filtered"),
        pl.when(doubt.is_null()).then("lost").alias("lost"),
        pl.when(pl.col("maybe_again") == 0).then(pl.lit(0, pl.Int64)).alias("duplicated"),
        none.alias("unexpected"),
        none.alias("out_of_order"),
        pl.lit(PACKETS).alias("source"),
        pl.concat_str(pl.coalesce(doubt, _basis()), _notes()).alias("reason"),
    )
    return judged.select("day", *GROUP_TOPIC, *AUDIT_COUNTS, "reason", "source")


def _doubt() -> pl.Expr:
    """Return why it is not known whether messages were lost; null where it is."""
    lacking = "messages that no recorded answer to a pull has, and that the group passed, may "
    doubts = {
        "no_tags": "the tags of messages are not known: import the capture again",
        "by_sql": "a SQL92 filter, and properties that are not known: messages may have been filtered",
        "no_heartbeat": "no heartbeat tells what the group subscribed to: messages may not match it",
        "unknown_end": "no commit tells how far the group came: messages may be pending",
        "unseen": f"a client committed of which no pull is recorded, {lacking}be its: capture all brokers' ports",
        "unanswered": f"pulls have no recorded answer, {lacking}be in it: capture without loss, with -s 0",
        "unrecorded": f"{lacking}be in one that was not recorded: capture all brokers without a break",
    }
    return first_of(*((pl.col(name) > 0, f"by packets: {why}") for name, why in doubts.items()))


def _basis() -> pl.Expr:
    return pl.lit("by packets: answers to sends and pulls, and commits; messages that nobody sent are not known")


def _notes() -> pl.Expr:
    """Return what else is not known, or not counted."""
    notes = {
        "maybe_failed": "; whether the retries of messages sent back succeeded is not known",
        "maybe_again": "; messages were pulled again: if they were consumed twice is not known",
        "unplaced": "; delayed messages and those of transactions are not counted",
        "uncounted_batches": "; batches whose body was cut are not counted",
    }
    return pl.concat_str([first_of((pl.col(name) > 0, note), otherwise="") for name, note in notes.items()])
