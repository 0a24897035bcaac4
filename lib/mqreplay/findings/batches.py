"""Groups that catch up slowly because their brokers read from disk."""

from __future__ import annotations

import polars as pl

from mqreplay.core.slave_suggestion import TransferLimits
from mqreplay.decode.recording.advice import Need
from mqreplay.evidence.intervals import with_session
from mqreplay.findings.finding_evidence import FindingEvidence
from mqreplay.findings.kind import Cause, FindingKind
from mqreplay.findings.limits import Limits
from mqreplay.findings.shape import evidence, finding, none, one_or_none, places
from mqreplay.words.keys import GROUP_TOPIC


def find(found: FindingEvidence, limits: Limits) -> pl.DataFrame:
    """Return the groups that read from disk for long."""
    return disk_bound(found.disk_runs, found.cluster, limits.same_cause_gap_s, limits.disk_catchup_s)


DEFAULT = TransferLimits()
DISK_BOUND_CATCHUP = FindingKind(
    name="disk_bound_catchup",
    find=find,
    confidence=0.9,
    needs=(Need("pull_log"), Need("broker_runtime"), Need("brokers")),
    thresholds=("findings.disk_catchup_s", "findings.same_cause_gap_s"),
    causes=(
        Cause("offset_reset", same=GROUP_TOPIC, after_s=3600),
        Cause("start_from_oldest", same=GROUP_TOPIC, after_s=3600),
        Cause("slow_listener", same=GROUP_TOPIC, after_s=3600),
        Cause("slave_pull", same=GROUP_TOPIC, after_s=3600, before_s=120),
    ),
)


def disk_bound(runs: pl.DataFrame, cluster: str, gap_s: int, disk_catchup_s: int) -> pl.DataFrame:
    """Return DISK_BOUND_CATCHUP, one finding a group, topic and time. ``runs`` is disk_runs of pull_batches."""
    if runs.is_empty():
        return none()
    sessions = with_session(runs.drop("session"), GROUP_TOPIC, "from_ts", "to_ts", gap_s)
    # Sums may not fit 64 bits: a broker may answer any offset.
    sums = [pl.col(name).cast(pl.Int128).sum() for name in ("pulls", "messages", "arrived")]
    shared = (pl.col("from_ts").min(), pl.col("to_ts").max(), pl.col("never_in_memory").any())
    limits = [
        pl.col("disk_messages").max().fill_null(DEFAULT.max_transfer_count_on_message_in_disk),
        pl.col("disk_bytes").max().fill_null(DEFAULT.max_transfer_bytes_on_message_in_disk),
    ]
    of_queues = (
        sessions.sort("to_ts")
        .group_by(*GROUP_TOPIC, "session", "broker_name", "queue_id")
        .agg(*shared, *sums, *limits, pl.col("waiting", "went_on").last())
        .with_columns(pl.when("went_on").then(0).otherwise("waiting").alias("waiting"))
    )
    merged = of_queues.group_by(*GROUP_TOPIC, "session").agg(
        *shared,
        *[pl.col(name).cast(pl.Int128).sum() for name in ("pulls", "messages", "arrived", "waiting")],
        *limits,
        pl.len().cast(pl.Int64).alias("queues"),
        *places(),
        one_or_none("broker_name"),
        one_or_none("queue_id"),
    )
    keys = (
        sessions.select(*GROUP_TOPIC, "session", pl.col("record_ids").alias("record_id"))
        .explode("record_id")
        .group_by(*GROUP_TOPIC, "session")
        .agg(evidence("gold.slave_suggestion", "record_id"))
    )
    read_s = (pl.col("to_ts") - pl.col("from_ts")).dt.total_milliseconds() / 1000
    # By a second: messages read, less those that arrived.
    gain = (pl.col("messages") - pl.col("arrived")).cast(pl.Float64) / pl.col("read_s")
    rows = (
        merged.with_columns(read_s.alias("read_s"))
        .filter(pl.col("read_s") > disk_catchup_s)
        .with_columns(gain.alias("gain"), pl.col("pulls").cast(pl.Int64).alias("evidence_count"))
        .join(keys, [*GROUP_TOPIC, "session"], how="left")
    )
    needed_s = (pl.col("waiting").cast(pl.Float64) / pl.col("gain")).clip(upper_bound=1e15).round(0)
    catch_up_s = pl.when(pl.col("gain") > 0).then(needed_s).cast(pl.Int64).alias("catch_up_s")
    severity = pl.when(pl.col("waiting") > 0).then(pl.lit("warning")).otherwise(pl.lit("info"))
    return finding(rows.with_columns(catch_up_s), DISK_BOUND_CATCHUP, cluster, severity=severity)
