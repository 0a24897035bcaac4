"""Queues that nobody held, or several at once; consumers that held none."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from mqreplay.replay.findings.shape import counted, evidence, finding, one_or_none, seconds
from mqreplay.replay.membership import MEMBER
from mqreplay.replay.sessions import with_session

OWNER_KEY = ("consumer_group", "topic", "broker_name", "queue_id")


def ownership_findings(disputes: DataFrame, idle: DataFrame, dispute_s: int, idle_s: int, gap_s: int) -> DataFrame:
    """orphan_queue, double_owned_queue and idle_consumer, of ownership's frames.

    Seconds of disagreement are normal while lists spread; what lasts longer than ``dispute_s`` is told. A retry topic
    that nobody holds loses nothing while nothing is in it: told as info.
    """
    long = disputes.withColumn("seconds", seconds("from_ts", "to_ts")).where(F.col("seconds") > dispute_s)
    by = ["cluster", "consumer_group", "topic", "orphan"]
    together = with_session(long.withColumn("orphan", F.col("owners") == 0), by, "from_ts", "to_ts", gap_s)
    found = together.groupBy(*by, "session").agg(
        F.min("from_ts").alias("from_ts"),
        F.max("to_ts").alias("to_ts"),
        F.count_distinct("broker_name", "queue_id").alias("queues"),
        F.round(F.sum("seconds")).cast("bigint").alias("seconds"),
        F.max("owners").alias("owners"),
        one_or_none("broker_name"),
        one_or_none("queue_id"),
        evidence("gold.queue_owner", *OWNER_KEY),
        # Nobody's queue is in no row of queue_owner: what the members saw and took tells of it.
        evidence("silver.rebalance", "consumer_group", "topic").alias("seen"),
    )
    return _orphans(found).unionByName(_doubles(found)).unionByName(_idle(idle, idle_s))


def _severity() -> Column:
    return F.when(F.col("topic").startswith("%RETRY%"), "info").otherwise("warning")


def _orphans(found: DataFrame) -> DataFrame:
    summary = F.concat(
        F.lit("Group "),
        "consumer_group",
        F.lit(" left "),
        counted("queues", "queue"),
        F.lit(" of "),
        "topic",
        F.lit(" to nobody: "),
        "seconds",
        F.lit(" queue-seconds in which nothing of them was consumed."),
    )
    advice = (
        "See that all members have the same subscription and strategy, and reach the same brokers and name servers."
    )
    rows = found.where("orphan").withColumn("evidence", F.col("seen"))
    return finding(rows, kind="orphan_queue", severity=_severity(), summary=summary, advice=advice, confidence=0.95)


def _doubles(found: DataFrame) -> DataFrame:
    summary = F.concat(
        F.lit("Group "),
        "consumer_group",
        F.lit(": "),
        counted("queues", "queue"),
        F.lit(" of "),
        "topic",
        F.when(F.col("queues") == 1, " was").otherwise(" were"),
        F.lit(" held by up to "),
        counted("owners", "client"),
        F.lit(" at once, for "),
        "seconds",
        F.lit(" queue-seconds; what they held was consumed more than once."),
    )
    advice = "See that all members use the same strategy and see each other; they overwrite each other's offsets."
    rows = found.where("NOT orphan")
    return finding(
        rows, kind="double_owned_queue", severity=_severity(), summary=summary, advice=advice, confidence=0.95
    )


def _idle(idle: DataFrame, idle_s: int) -> DataFrame:
    rows = (
        idle.withColumn("seconds", F.round(seconds("from_ts", "to_ts")).cast("bigint"))
        .where(seconds("from_ts", "to_ts") > idle_s)
        .groupBy(*MEMBER, "from_ts", "to_ts", "seconds")
        .agg(evidence("silver.rebalance", "consumer_group", "client_id"))
    )
    summary = F.concat(
        F.lit("Consumer "),
        "client_id",
        F.lit(" of group "),
        "consumer_group",
        F.lit(" held no queue for "),
        "seconds",
        F.lit(" s."),
    )
    advice = "A group needs no more members than its topics have queues; add queues or take members away."
    return finding(rows, kind="idle_consumer", severity=F.lit("info"), summary=summary, advice=advice, confidence=0.95)
