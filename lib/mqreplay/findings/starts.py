"""Groups that began a queue without a stored offset, and skipped or repeated what was in it."""

from __future__ import annotations

import polars as pl

from mqreplay.core.retry_topic import RETRY_GROUP_TOPIC_PREFIX
from mqreplay.decode.recording.advice import Need
from mqreplay.evidence.intervals import with_session
from mqreplay.findings.finding_evidence import FindingEvidence
from mqreplay.findings.kind import Cause, FindingKind
from mqreplay.findings.limits import Limits
from mqreplay.findings.shape import evidence, finding, one_or_none, places
from mqreplay.words.keys import GROUP_TOPIC

NEEDS = (Need("offset_commits"), Need("pull_log"))


def new_starts_of_shard(starts: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of gold.queue_start that began without a stored offset.

    Columns: those of gold.queue_start that the findings need.
    """
    # A retry topic is made with its group, and is always read from 0.
    is_retry = pl.col("topic").str.starts_with(RETRY_GROUP_TOPIC_PREFIX)
    return starts.filter(~pl.col("had_offset") & ~is_retry).select(
        *GROUP_TOPIC,
        *("broker_name", "queue_id", "client_id", "request_ts", "consume_from_where"),
        *("actual_offset", "max_offset", "skipped", "record_id"),
    )


def first_uses_of_shard(pull: pl.DataFrame) -> pl.DataFrame:
    """Return the first pull of each group from each topic of a shard. Columns: consumer_group, topic, used_ts."""
    return pull.group_by(GROUP_TOPIC).agg(pl.col("request_ts").min().alias("used_ts"))


def find_skipped(evidence: FindingEvidence, limits: Limits) -> pl.DataFrame:
    """Return the groups that skipped messages in queues of which they had no offset."""
    return skipped_starts(evidence.new_starts, evidence.first_uses, evidence.cluster, limits.same_cause_gap_s)


def find_from_oldest(evidence: FindingEvidence, limits: Limits) -> pl.DataFrame:
    """Return the groups that began with the oldest messages of queues of which they had no offset."""
    return oldest_starts(
        evidence.new_starts, evidence.first_uses, evidence.cluster, limits.same_cause_gap_s, limits.start_messages
    )


START_SKIPPED = FindingKind(
    name="start_skipped",
    find=find_skipped,
    confidence=0.9,
    needs=NEEDS,
    thresholds=("findings.same_cause_gap_s",),
    causes=(Cause("queue_count_changed", same=("topic",), after_s=3600),),
    ends_after=None,
)
START_FROM_OLDEST = FindingKind(
    name="start_from_oldest",
    find=find_from_oldest,
    confidence=0.9,
    needs=NEEDS,
    thresholds=("findings.same_cause_gap_s", "findings.start_messages"),
    ends_after=None,
)
QUEUES_NAMED = 8  # queues in a summary, if there are no more


def skipped_starts(starts: pl.DataFrame, uses: pl.DataFrame, cluster: str, gap_s: int) -> pl.DataFrame:
    """Return START_SKIPPED. ``starts`` and ``uses`` are rows of new_starts_of_shard and first_uses_of_shard.

    Starts of one group and topic that are ``gap_s`` seconds apart or less are one finding.
    """
    merged = _merged(starts.filter(pl.col("skipped") > 0), uses, gap_s, pl.col("skipped"))
    existed = pl.col("existed")
    severity = pl.when(existed).then(pl.lit("critical")).otherwise(pl.lit("info"))
    return finding(merged, START_SKIPPED, cluster, severity=severity)


def oldest_starts(
    starts: pl.DataFrame, uses: pl.DataFrame, cluster: str, gap_s: int, start_messages: int
) -> pl.DataFrame:
    """Return START_FROM_OLDEST; the arguments as above. With fewer messages than ``start_messages`` there is none."""
    waiting = pl.col("max_offset") - pl.col("actual_offset")
    merged = _merged(starts.filter(pl.col("skipped") == 0), uses, gap_s, waiting)
    surprising = pl.col("where") == "CONSUME_FROM_LAST_OFFSET"
    severity = pl.when(pl.col("existed") | surprising.fill_null(value=False)).then(pl.lit("warning"))
    many = merged.filter(pl.col("messages") >= start_messages)
    return finding(many, START_FROM_OLDEST, cluster, severity=severity.otherwise(pl.lit("info")))


def _merged(starts: pl.DataFrame, uses: pl.DataFrame, gap_s: int, messages: pl.Expr) -> pl.DataFrame:
    """Return the starts of a group and topic as one row. existed: the group had pulled from the topic long before."""
    sessions = with_session(
        starts.with_columns(pl.col("request_ts").alias("from_ts"), pl.col("request_ts").alias("to_ts")),
        GROUP_TOPIC,
        "from_ts",
        "to_ts",
        gap_s,
    )
    merged = sessions.group_by(*GROUP_TOPIC, "session").agg(
        pl.col("from_ts").min(),
        pl.col("to_ts").max(),
        *places(None, text="{}/{}"),
        # The sum may not fit 64 bits: a broker may answer any offset.
        messages.cast(pl.Int128).sum().alias("messages"),
        one_or_none("consume_from_where").alias("where"),
        one_or_none("broker_name"),
        one_or_none("queue_id"),
        one_or_none("client_id"),
        evidence("gold.queue_start", "record_id"),
    )
    first = uses.group_by(GROUP_TOPIC).agg(pl.col("used_ts").min())
    # The queues of a new group start at its first rebalances.
    existed = pl.col("used_ts") < pl.col("from_ts") - pl.duration(seconds=gap_s)
    number = pl.col("places").list.len().cast(pl.Int64)
    named = pl.when(number <= QUEUES_NAMED).then("places").alias("places")
    known = merged.join(first, GROUP_TOPIC, how="left")
    return known.with_columns(existed.fill_null(value=False).alias("existed"), named, queues=number)
