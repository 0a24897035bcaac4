"""Messages that a broker deleted before a group read them."""

from __future__ import annotations

import polars as pl

from mqreplay.decode.recording.advice import Need
from mqreplay.evidence.frames import columns, typed
from mqreplay.evidence.intervals import with_session
from mqreplay.evidence.offsets.offset_causes import OFFSET_MOVED
from mqreplay.findings.finding_evidence import FindingEvidence
from mqreplay.findings.kind import Cause, FindingKind
from mqreplay.findings.limits import Limits
from mqreplay.findings.shape import evidence, finding, one_or_none, places
from mqreplay.words.keys import GROUP_QUEUE

EXPIRED_READS: dict[str, pl.DataType] = columns(*GROUP_QUEUE, "ts", "queue_offset", "min_offset", "record_id")


def find(evidence: FindingEvidence, limits: Limits) -> pl.DataFrame:
    """Return the groups that asked a master for messages which it had deleted."""
    return expired_unread(evidence.expired_reads, evidence.cluster, limits.same_cause_gap_s)


EXPIRED_UNREAD = FindingKind(
    name="expired_unread",
    find=find,
    confidence=0.9,
    needs=(Need("pull_log"),),
    thresholds=("findings.same_cause_gap_s",),
    # A broker with a full disk deletes its oldest files at once, read or not (CleanCommitLogService#isSpaceToDelete).
    causes=(Cause("disk_full", same=("broker_name",), after_s=3600),),
)


def expired_reads_of_shard(pull: pl.DataFrame) -> pl.DataFrame:
    """Return the pulls of a shard that a master answered with the begin of its queue, of schema EXPIRED_READS.

    Follows DefaultMessageStore#getMessage: OFFSET_TOO_SMALL. A group that has no stored offset begins at 0: it had not
    read the queue before.
    """
    of_master = pl.col("broker_id").fill_null(0) == 0
    moved = (pl.col("response_code") == OFFSET_MOVED) & (pl.col("next_begin_offset") == pl.col("min_offset"))
    too_small = pull.filter(
        of_master & moved & (pl.col("queue_offset") > 0) & (pl.col("queue_offset") < pl.col("min_offset"))
    )
    first = too_small.sort("request_ts").unique([*GROUP_QUEUE, "queue_offset"], keep="first", maintain_order=True)
    return typed(first, EXPIRED_READS, ts=pl.coalesce("response_ts", "request_ts"))


def expired_unread(reads: pl.DataFrame, cluster: str, gap_s: int) -> pl.DataFrame:
    """Return EXPIRED_UNREAD: one for each group, topic and session, of the frame of `expired_reads_of_shard`."""
    by = ["consumer_group", "topic"]
    lost = pl.col("min_offset") - pl.col("queue_offset")
    rows = (
        with_session(reads.with_columns(lost.alias("lost")), by, "ts", "ts", gap_s)
        .group_by(*by, "session")
        .agg(
            pl.col("ts").min().alias("from_ts"),
            pl.col("ts").max().alias("to_ts"),
            pl.col("lost").cast(pl.Int128).sum().cast(pl.Int64, strict=False),
            *places(text="{}/{}"),
            *(one_or_none(name) for name in ("broker_name", "queue_id", "queue_offset", "min_offset")),
            evidence("silver.pull", "record_id"),
        )
    )
    return finding(rows, EXPIRED_UNREAD, cluster, severity="warning")
