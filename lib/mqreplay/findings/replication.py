"""Data that exists once: slaves that do not get it, and disks that it is not written to."""

from __future__ import annotations

import polars as pl

from mqreplay.core.replication import PUT_OK
from mqreplay.evidence.brokers.commit_logs import BROKER
from mqreplay.evidence.time_spans import with_session
from mqreplay.evidence_advice import Need
from mqreplay.findings.finding_evidence import FindingEvidence
from mqreplay.findings.kind import Cause, FindingKind
from mqreplay.findings.limits import Limits
from mqreplay.findings.shape import counted, evidence, finding, none, whole_seconds


def find_lag(evidence: FindingEvidence, limits: Limits) -> pl.DataFrame:
    """Return the slaves that stayed behind, and the synchronous masters without a slave."""
    gap_s, cluster = limits.same_cause_gap_s, evidence.cluster
    found = evidence.replication
    return pl.concat(
        [
            slaves_behind(found.lags, evidence.outages, cluster, gap_s),
            masters_alone(found.alone, cluster, gap_s, limits.replication_lag_s),
        ]
    )


def find_unflushed(evidence: FindingEvidence, limits: Limits) -> pl.DataFrame:
    """Return the brokers that did not flush what they had to."""
    rows = evidence.replication.judged_polls
    return unflushed(rows, evidence.cluster, limits.same_cause_gap_s, limits.unflushed_bytes)


REPLICATION_LAG = FindingKind(
    name="replication_lag",
    find=find_lag,
    meaning="A slave does not have the newest data of its master, or a synchronous master (SYNC_MASTER) has no slave at"
    " all. If the master is lost, this data is lost with it. In RocketMQ 4 producers of a synchronous master get"
    " SLAVE_NOT_AVAILABLE; in RocketMQ 5 they get no error unless inSyncReplicas or minInSyncReplicas is above 1.",
    rule="At two polls or more, a slave's commit log ended below what its master's had reached more than"
    " replication_lag_s seconds before, or it did not answer and the master stored more meanwhile. Or no slave of a"
    " SYNC_MASTER answered for replication_lag_s seconds. Where a master of RocketMQ 5 reports its slaves"
    " (GET_BROKER_HA_STATUS), what they confirmed and how many are connected counts instead of an answer. It is"
    " critical if the master went down meanwhile.",
    follows="HAService#isSlaveOK, CommitLog#submitReplicaRequest; CommitLog#handleHA",
    advice="See whether the slave is connected: gold.slave_sync, or `mqadmin haStatus -b MASTER_ADDR` (RocketMQ 5)."
    " In RocketMQ 4 read store.log of master and slave for HAConnection and HAClient. Check that the slave reaches"
    " brokerIP2 and haListenPort of the master. A slave that restarts needs time to copy what it lacks: compare the"
    " network and the disk with the rate of writes.",
    confidence=0.9,
    needs=(Need("broker_runtime"),),
    thresholds=("findings.replication_lag_s", "findings.same_cause_gap_s"),
    example="Slave 2 of broker-a did not have the newest data of its master for 147 s: it lacked 164757 bytes of the"
    " commit log, at most 452 messages. No other slave has a copy: a loss of the master would have lost them.",
    causes=(Cause("broker_down", same=("broker_name",), after_s=120), Cause("master_changed", same=("broker_name",))),
)
UNFLUSHED_DATA = FindingKind(
    name="unflushed_data",
    find=find_unflushed,
    meaning="A broker had more data in memory than its flush settings allow: its disk does not keep up, or does not"
    " write at all. A broker that only restarts loses nothing. If the machine loses power or its kernel fails, all data"
    " that was not flushed is lost.",
    rule="In two polls or more, remainHowManyDataToFlush was above the data that the commit log got since the last"
    " flush was due: by flushIntervalCommitLog, flushCommitLogLeastPages and flushCommitLogThoroughInterval, and 500 ms"
    " for the disk at each flush; in one of them by unflushed_bytes or more. With SYNC_FLUSH nothing older than 1.5 s"
    " may be left.",
    follows="CommitLog.FlushRealTimeService, CommitLog.GroupCommitService, MappedFile#isAbleToFlush",
    advice="Read store.log of the broker for `Flush data to disk costs`, and look at the disk with `iostat -x 1`. Move"
    " other load away from it. If messages must survive a loss of power, use flushDiskType=SYNC_FLUSH, or a SYNC_MASTER"
    " with a slave on another machine.",
    confidence=0.9,
    needs=(Need("broker_runtime"), Need("brokers")),
    thresholds=("findings.same_cause_gap_s", "findings.unflushed_bytes"),
    example="Broker 0 of broker-a had up to 73400320 bytes in memory that were not flushed, up to 52428800 more than"
    " its settings allow, at 7 polls in 35 s. A loss of power would have lost them: at most 5210 messages, the oldest"
    " written at most 14 s before.",
)
LEAST_POLLS = 2  # one poll may meet a broker that has just started, or a disk that is slow once


def slaves_behind(lags: pl.DataFrame, outages: pl.DataFrame, cluster: str, gap_s: int) -> pl.DataFrame:
    """Return REPLICATION_LAG for each slave and time. ``lags`` is that of Replication, ``outages`` broker_outages'."""
    if lags.is_empty():
        return none()
    since = lags.with_columns(pl.col("behind_since").alias("from_ts"), pl.col("ts").alias("to_ts"))
    merged = (
        with_session(since, BROKER, "from_ts", "to_ts", gap_s)
        .group_by(*BROKER, "session")
        .agg(
            pl.len().alias("polls"),
            pl.col("from_ts").min(),
            pl.col("to_ts").max(),
            pl.col("behind_bytes").max(),
            pl.col("behind_messages").max(),
            pl.col("copies").max(),
            (pl.col("answered_ts") < pl.col("ts")).all().alias("silent"),
            evidence("silver.broker_runtime", "record_id"),
        )
        .filter(pl.col("polls") >= LEAST_POLLS)
    )
    rows = _with_outage(merged, outages)
    is_down = pl.col("down_ts").is_not_null()
    summary = pl.concat_str(
        pl.format("Slave {} of {} ", "broker_id", "broker_name"),
        pl.when("silent").then(pl.lit("did not answer, and did ")).otherwise(pl.lit("did ")),
        pl.lit("not have the newest data of its master for "),
        whole_seconds("from_ts", "to_ts"),
        pl.format(": it lacked {} of the commit log", counted("behind_bytes", "byte")),
        pl.format(", at most {}", counted("behind_messages", "message")).fill_null(""),
        pl.lit(". "),
        pl.when(is_down)
        .then(pl.format("The master went down meanwhile, at {} UTC.", pl.col("down_ts").dt.strftime("%H:%M:%S")))
        .when(pl.col("copies") == 1)
        .then(pl.lit("No other slave has a copy: a loss of the master would have lost them."))
        .otherwise(pl.lit("A loss of the master would have lost what no other slave has.")),
    )
    severity = pl.when(is_down).then(pl.lit("critical")).otherwise(pl.lit("warning"))
    return finding(rows, REPLICATION_LAG, cluster, severity=severity, summary=summary)


def _with_outage(spans: pl.DataFrame, outages: pl.DataFrame) -> pl.DataFrame:
    """Add down_ts: when the master went down while its slave was behind; null if it did not."""
    masters = outages.filter(pl.col("broker_id") == 0).select("broker_name", pl.col("from_ts").alias("down_ts"))
    met = spans.join(masters, "broker_name").filter(pl.col("down_ts").is_between("from_ts", "to_ts"))
    down = met.group_by(*BROKER, "session").agg(pl.col("down_ts").min())
    return spans.join(down, [*BROKER, "session"], how="left")


def masters_alone(alone: pl.DataFrame, cluster: str, gap_s: int, lag_s: int) -> pl.DataFrame:
    """Return REPLICATION_LAG for each synchronous master without a slave.

    ``alone`` is that of Replication: at each of its polls no slave had answered for ``lag_s`` seconds.
    """
    if alone.is_empty():
        return none()
    merged = (
        with_session(alone, BROKER, "ts", "ts", gap_s)
        .group_by(*BROKER, "session")
        .agg(
            pl.len().alias("polls"),
            (pl.col("ts").min() - pl.duration(seconds=lag_s)).alias("from_ts"),
            pl.col("ts").max().alias("to_ts"),
            (pl.col("log_end").max() - pl.col("log_end").min()).alias("stored"),
            pl.col("send_status").drop_nulls().last().alias("status"),
            evidence("silver.broker_runtime", "record_id"),
        )
        .filter(pl.col("polls") >= LEAST_POLLS)
    )
    status = pl.col("status")
    summary = pl.concat_str(
        pl.format("The master of {} is a SYNC_MASTER, and no slave of it answered for ", "broker_name"),
        whole_seconds("from_ts", "to_ts"),
        pl.format(". It stored at least {} meanwhile, which only it has.", counted("stored", "byte")),
        pl.when(status == PUT_OK)
        .then(pl.lit(" Producers get no error: by its settings it does not wait for a slave."))
        .when(status.is_not_null())
        .then(pl.format(" Producers get {}.", status))
        .otherwise(pl.lit("")),
    )
    return finding(merged, REPLICATION_LAG, cluster, severity="warning", summary=summary)


def unflushed(rows: pl.DataFrame, cluster: str, gap_s: int, least_bytes: int = 0) -> pl.DataFrame:
    """Return UNFLUSHED_DATA for each broker and time at which ``least_bytes`` too many waited.

    ``rows`` is gold.replication.
    """
    more = rows.filter(pl.col("judgement") == "differ")
    if more.is_empty():
        return none()
    merged = (
        with_session(more, BROKER, "ts", "ts", gap_s)
        .group_by(*BROKER, "session")
        .agg(
            pl.len().alias("polls"),
            pl.col("ts").min().alias("from_ts"),
            pl.col("ts").max().alias("to_ts"),
            pl.col("unflushed_bytes").max().alias("most"),
            (pl.col("unflushed_bytes") - pl.col("allowed_bytes")).max().alias("more"),
            pl.col("unflushed_messages").max().alias("messages"),
            pl.col("unflushed_ms").max().alias("oldest"),
            evidence("gold.replication", "record_id"),
        )
        .filter((pl.col("polls") >= LEAST_POLLS) & (pl.col("more") >= least_bytes))
    )
    parts = [
        pl.format("at most {}", counted("messages", "message")),
        pl.format("the oldest written at most {} s before", (pl.col("oldest") + 999) // 1000),
    ]
    lost = pl.concat_str(parts, separator=", ", ignore_nulls=True)
    summary = pl.concat_str(
        pl.format("Broker {} of {} had up to ", "broker_id", "broker_name"),
        counted("most", "byte"),
        pl.format(" in memory that were not flushed, up to {} more than its settings allow, at ", pl.col("more")),
        counted("polls", "poll"),
        pl.lit(" in "),
        whole_seconds("from_ts", "to_ts"),
        pl.lit(". A loss of power would have lost them"),
        pl.when(lost != "").then(pl.format(": {}.", lost)).otherwise(pl.lit(".")),
    )
    return finding(merged, UNFLUSHED_DATA, cluster, severity="warning", summary=summary)
