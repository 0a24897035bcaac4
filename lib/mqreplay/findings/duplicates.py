"""Messages that a group received more than once, by the cause that the evidence of each delivery allows."""

from __future__ import annotations

import polars as pl

from mqreplay.evidence.messages.deliveries import MESSAGE
from mqreplay.evidence.offsets.asked_resets import wide_resets
from mqreplay.evidence.time_spans import with_session
from mqreplay.evidence_advice import Need
from mqreplay.findings.finding_evidence import FindingEvidence
from mqreplay.findings.kind import Cause, FindingKind
from mqreplay.findings.limits import Limits
from mqreplay.findings.redelivery_causes import RETAKEN, with_cause
from mqreplay.findings.shape import counted, evidence, finding, one_or_none


def find(evidence: FindingEvidence, limits: Limits, found: pl.DataFrame) -> pl.DataFrame:
    """Return the messages that a group received more than once; ``found`` are the findings that may be their cause."""
    return duplicate_findings(
        evidence.repeated_deliveries,
        found,
        evidence.offset_continuity,
        pl.concat([evidence.resets, wide_resets(evidence.asked_resets).select(evidence.resets.columns)]),
        evidence.queue_owner,
        evidence.cluster,
        gap_s=limits.lost_s,
        after_s=limits.failed_over_s,
        warn_messages=limits.duplicate_warn_messages,
    )


DUPLICATE_DELIVERY = FindingKind(
    name="duplicate_delivery",
    find_in_findings=find,
    meaning="A group processed messages more than once. RocketMQ delivers at least once, so this may happen whenever a"
    " queue changes hands, an offset goes back or a broker is down.",
    rule="One offset of a queue was consumed with success more than once by the group. A cause must lie between the two"
    " deliveries: a rewind or reset of this queue to this offset or a lower one, the loss of the client that had the"
    " message, several owners of the queue, or an outage of the queue's broker; the latest one counts. Without a cause,"
    " up to duplicate_warn_messages messages of a queue that changed hands are normal and no finding.",
    follows="RocketMQ delivers at least once; ConsumeMessageConcurrentlyService#processConsumeResult commits later",
    advice="Make consumers idempotent by message key. `mqreplay explain FINDING` lists the deliveries. If no cause is"
    " named, read rocketmq_client.log of the two clients for `add a new mq` and `remove unnecessary mq` at this time.",
    confidence=1.0,
    needs=(Need("consume_log"),),
    thresholds=("findings.duplicate_warn_messages", "findings.lost_s", "findings.failed_over_s"),
    example="Group reset-group received 275 messages of pay-topic more than once: its offsets had gone back.",
    causes=(
        Cause("offset_rewind", same=("consumer_group",), after_s=180),
        Cause("offset_reset", same=("consumer_group",), after_s=180),
        Cause("offset_beyond_max", same=("consumer_group",), after_s=180),
        Cause("consumer_lost", same=("consumer_group",), after_s=150),
        Cause("double_owned_queue", same=("consumer_group",)),
        Cause("strategy_conflict", same=("consumer_group",)),
        Cause("subscription_conflict", same=("consumer_group",)),
        Cause("broker_down", same=("broker_name",), after_s=60, of_master=True),
    ),
)
GROUP = ("consumer_group",)
QUEUE_OF_GROUP = ("consumer_group", "queue_topic", "broker_name", "queue_id")
WHY = {
    "offset_rewind": "its offsets had gone back",
    "offset_reset": "its offsets were reset",
    "offset_beyond_max": "an offset past the end of its queue was corrected",
    "consumer_lost": "a client was lost before it had committed what it had processed",
    "double_owned_queue": "several of its clients held a queue at once",
    "strategy_conflict": "several of its clients held a queue at once",
    "subscription_conflict": "several of its clients held a queue at once",
    "broker_down": "reads went from the master to a slave and back",
}


def duplicate_findings(
    repeated: pl.DataFrame,
    found: pl.DataFrame,
    continuity: pl.DataFrame,
    resets: pl.DataFrame,
    owners: pl.DataFrame,
    cluster: str,
    *,
    gap_s: int,
    after_s: int,
    warn_messages: int,
) -> pl.DataFrame:
    """Return DUPLICATE_DELIVERY: one finding for each group and cause, or without a cause for each group and broker.

    ``repeated`` has the rows of deliveries's repeated_deliveries of all shards, ``found`` the findings of all
    other kinds. ``continuity`` is gold.offset_continuity, ``resets`` offset_resets' frame, ``owners`` gold.queue_owner.
    Outages count until ``after_s`` seconds after their end. Without a cause, deliveries ``gap_s`` seconds apart or less
    are one finding, and more than ``warn_messages`` of a queue that changed hands.
    """
    rows = with_cause(repeated, found, continuity, resets, owners, after_s)
    caused = rows.filter(pl.col("cause_id") != "").with_columns(pl.lit(0, pl.UInt32).alias("session"))
    alone = with_session(rows.filter(pl.col("cause_id") == ""), (*GROUP, "broker_name", RETAKEN), "ts", "ts", gap_s)
    of_queue = pl.struct(MESSAGE).n_unique().over(*QUEUE_OF_GROUP, RETAKEN, "session")
    unusual = alone.filter(~pl.col(RETAKEN) | (of_queue > warn_messages))
    by = ("consumer_group", "cause_id", "cause_kind", "session")
    merged = pl.concat(
        [
            caused.group_by(by).agg(*_counts(), one_or_none("broker_name")),
            unusual.group_by(*by, "broker_name", RETAKEN).agg(*_counts()).select(*by, *_COUNTED, "broker_name"),
        ]
    )
    return _findings(merged, cluster, warn_messages)


_COUNTED = ("from_ts", "to_ts", "redelivered", "same_client", "topics", "topic", "queue_id", "evidence")


def _counts() -> list[pl.Expr]:
    return [
        pl.col("ts").min().alias("from_ts"),
        pl.col("ts").max().alias("to_ts"),
        pl.struct(MESSAGE).n_unique().cast(pl.Int64).alias("redelivered"),
        (~pl.col(RETAKEN)).any().alias("same_client"),
        pl.col("topic").n_unique().alias("topics"),
        one_or_none("topic"),
        one_or_none("queue_id"),
        evidence("silver.consume", "record_id"),
    ]


def _findings(merged: pl.DataFrame, cluster: str, warn_messages: int) -> pl.DataFrame:
    handed_over = pl.format(
        "queues changed hands, with more than the {} messages per queue that are normal then",
        pl.lit(warn_messages),
    )
    to_same = pl.lit("the same client received an offset again, and no rewind, reset or change of owner explains it")
    alone = pl.when("same_client").then(to_same).otherwise(handed_over)
    why = pl.col("cause_kind").replace_strict(WHY, default=None, return_dtype=pl.String)
    topics = pl.when(pl.col("topics") > 1).then(counted("topics", "topic")).otherwise("topic")
    summary = pl.format(
        "Group {} received {} of {} more than once: {}.",
        "consumer_group",
        counted("redelivered", "message"),
        topics,
        pl.coalesce(why, alone),
    )
    return finding(merged, DUPLICATE_DELIVERY, cluster, severity="warning", summary=summary)
