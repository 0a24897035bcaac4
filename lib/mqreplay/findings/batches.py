"""Groups that catch up slowly because their brokers read from disk."""

from __future__ import annotations

import polars as pl

from mqreplay.core.slave_suggestion import TransferLimits
from mqreplay.evidence.time_spans import with_session
from mqreplay.evidence_advice import Need
from mqreplay.findings.finding_evidence import FindingEvidence
from mqreplay.findings.kind import Cause, FindingKind
from mqreplay.findings.limits import Limits
from mqreplay.findings.shape import counted, evidence, finding, none, one_or_none, places, places_text, whole_seconds


def find(found: FindingEvidence, limits: Limits) -> pl.DataFrame:
    """Return the groups that read from disk for long."""
    return disk_bound(found.disk_runs, found.cluster, limits.same_cause_gap_s, limits.disk_catchup_s)


GROUP_TOPIC = ("consumer_group", "topic")
DEFAULT = TransferLimits()
DISK_BOUND_CATCHUP = FindingKind(
    name="disk_bound_catchup",
    find=find,
    meaning="A group is so far behind that brokers read its messages from disk. One pull then gets 8 messages or 64 KiB"
    " at most instead of 32 messages or 256 KiB, so that the group catches up slowly, and the reads compete with writes"
    " for the disk.",
    rule="For longer than disk_catchup_s seconds, pulls of the group read messages that lie further from the end of the"
    " commit log than accessMessageInMemoryMaxRatio percent of the broker's memory, and left others in the queue. It is"
    " a warning if the last reads of a queue were such, and info if the group read from memory again.",
    follows="DefaultMessageStore#checkInDiskByCommitOffset, DefaultMessageStore#isTheBatchFull",
    advice="To catch up faster, raise the limits on the brokers while the group is behind: `mqadmin updateBrokerConfig"
    " -b BROKER_ADDR -k maxTransferCountOnMessageInDisk -v 32`, and the same with maxTransferBytesOnMessageInDisk and"
    " 262144. If the group does not need the messages, skip them: `mqadmin skipAccumulatedMessage -g GROUP -t TOPIC -n"
    " NAMESRV`. If a slave takes all messages to be on disk, set its accessMessageInMemoryMaxRatio above 10: a slave of"
    " RocketMQ 5 subtracts 10.",
    confidence=0.9,
    needs=(Need("pull_log"), Need("broker_runtime"), Need("brokers")),
    thresholds=("findings.disk_catchup_s", "findings.same_cause_gap_s"),
    example="Group archive-group read readings in 2 queues (broker-a/0, broker-a/1) from disk for 160 s: 14710 messages"
    " in 2942 pulls, 8 messages or 65536 bytes at most in each; 12000 messages arrived meanwhile. 90210 messages are"
    " waiting: at this speed it catches up in 88 min.",
    causes=(
        Cause("offset_reset", same=GROUP_TOPIC, after_s=3600),
        Cause("start_from_oldest", same=GROUP_TOPIC, after_s=3600),
        Cause("slow_listener", same=GROUP_TOPIC, after_s=3600),
        Cause("slave_pull", same=GROUP_TOPIC, after_s=3600, before_s=120),
    ),
)
MINUTE, HOUR, DAY = 60, 3_600, 86_400  # seconds


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
        places(),
        one_or_none("broker_name"),
        one_or_none("queue_id"),
    )
    keys = (
        sessions.select(*GROUP_TOPIC, "session", pl.col("record_ids").alias("record_id"))
        .explode("record_id")
        .group_by(*GROUP_TOPIC, "session")
        .agg(evidence("gold.slave_suggestion", "record_id"))
    )
    lasted_s = (pl.col("to_ts") - pl.col("from_ts")).dt.total_milliseconds() / 1000
    # By a second: messages read, less those that arrived.
    gain = (pl.col("messages") - pl.col("arrived")).cast(pl.Float64) / pl.col("lasted_s")
    rows = (
        merged.with_columns(lasted_s.alias("lasted_s"))
        .filter(pl.col("lasted_s") > disk_catchup_s)
        .with_columns(gain.alias("gain"), pl.col("pulls").cast(pl.Int64).alias("evidence_count"))
        .join(keys, [*GROUP_TOPIC, "session"], how="left")
    )
    return finding(
        rows,
        DISK_BOUND_CATCHUP,
        cluster,
        severity=pl.when(pl.col("waiting") > 0).then(pl.lit("warning")).otherwise(pl.lit("info")),
        summary=_summary(),
    )


def _summary() -> pl.Expr:
    waits, gain = pl.col("waiting") > 0, pl.col("gain")
    needed = (pl.col("waiting").cast(pl.Float64) / gain).clip(upper_bound=1e15)
    speed = (
        pl.when(gain > 0)
        .then(pl.format(": at this speed it catches up in {}.", _duration(needed)))
        .otherwise(pl.lit(": at this speed it never catches up."))
    )
    return pl.concat_str(
        pl.format("Group {} read {} in {}", "consumer_group", "topic", counted("queues", "queue")),
        places_text(),
        pl.lit(" from disk for "),
        whole_seconds("from_ts", "to_ts"),
        pl.format(": {} in {}", counted("messages", "message"), counted("pulls", "pull")),
        pl.format(", {} messages or {} bytes at most in each; ", "disk_messages", "disk_bytes"),
        pl.format("{} arrived meanwhile.", counted("arrived", "message")),
        pl.when(waits)
        .then(pl.concat_str(pl.format(" {} are waiting", counted("waiting", "message")), speed))
        .otherwise(pl.lit(" Then the group was near enough to the end to read from memory again.")),
        pl.when("never_in_memory")
        .then(pl.lit(" A slave takes all messages to be on disk: its effective ratio is below 1 percent."))
        .otherwise(pl.lit("")),
    )


def _duration(s: pl.Expr) -> pl.Expr:
    """Return seconds as text, in the largest unit of which there are two."""
    whole = s.round(0).cast(pl.Int64)
    return (
        pl.when(whole < 2 * MINUTE)
        .then(pl.format("{} s", whole))
        .when(whole < 2 * HOUR)
        .then(pl.format("{} min", whole // MINUTE))
        .when(whole < 2 * DAY)
        .then(pl.format("{} h", whole // HOUR))
        .otherwise(pl.format("{} d", whole // DAY))
    )
