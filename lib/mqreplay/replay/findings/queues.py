"""Queues that stood still, whose number changed, or whose offsets outlived them."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from mqreplay.replay.findings.shape import counted, evidence, finding, one_or_none, seconds, text_of
from mqreplay.replay.sessions import with_session


def stuck_findings(standstills: DataFrame, gap_s: int) -> DataFrame:
    """stuck_queue, of standstills' frame: one for each queue, those of one group and topic near in time as one."""
    by = ["cluster", "consumer_group", "topic"]
    together = with_session(standstills, by, "from_ts", "to_ts", gap_s)
    found = together.groupBy(*by, "session").agg(
        F.min("from_ts").alias("from_ts"),
        F.max("to_ts").alias("to_ts"),
        F.count(F.lit(1)).alias("queues"),
        F.array_join(
            F.array_sort(F.collect_set(F.concat_ws("/", "broker_name", F.col("queue_id").cast("string")))), ", "
        ).alias("places"),
        F.max("waiting").alias("waiting"),
        F.sum("refused").alias("refused"),
        one_or_none("offset"),
        one_or_none("broker_name"),
        one_or_none("queue_id"),
        evidence("silver.offset_change", "consumer_group", "topic", "broker_name", "queue_id"),
    )
    whole = F.round(seconds("from_ts", "to_ts")).cast("string")
    refused = F.when(F.col("refused") > 0, text_of("; ", counted("refused", "pull"), " refused meanwhile"))
    stood_at = F.when(F.col("offset").isNotNull(), text_of(" at ", "{offset}"))
    return finding(
        found,
        kind="stuck_queue",
        severity=F.lit("warning"),
        summary=text_of(
            "Group ",
            "{consumer_group}",
            " stood still on ",
            "{topic}",
            " in ",
            "{places}",
            F.coalesce(stood_at, F.lit("")),
            " for ",
            F.regexp_replace(whole, r"\.0$", ""),
            " s, with up to ",
            counted("waiting", "message"),
            " waiting",
            F.coalesce(refused, F.lit("")),
            ".",
        ),
        advice="Look for a message that does not end in the consumer (a thread dump), or a broker that refuses pulls.",
        confidence=0.95,
    )


def changed_counts(topic_config: DataFrame) -> DataFrame:
    """queue_count_changed: a topic's read or write queues became more or fewer, as the masters keep it."""
    order = Window.partitionBy("cluster", "source_name", "topic").orderBy("ts")
    before = topic_config.where(F.col("broker_id") == 0).withColumns(
        {"was_read": F.lag("read_queue_nums").over(order), "was_write": F.lag("write_queue_nums").over(order)}
    )
    other = (F.col("was_read") != F.col("read_queue_nums")) | (F.col("was_write") != F.col("write_queue_nums"))
    by = ["cluster", "topic", "was_read", "was_write", "read_queue_nums", "write_queue_nums"]
    together = with_session(before.where(other), by, "ts", "ts", 120)
    found = together.groupBy(*by, "session").agg(
        F.min("ts").alias("from_ts"),
        F.max("ts").alias("to_ts"),
        F.array_join(F.array_sort(F.collect_set("broker_name")), ", ").alias("brokers"),
        one_or_none("broker_name"),
        evidence("silver.topic_config", "source_name", "topic", "ts"),
    )
    return finding(
        found,
        kind="queue_count_changed",
        severity=F.lit("info"),
        summary=text_of(
            "Topic ",
            "{topic}",
            " went from ",
            "{was_read}",
            " read and ",
            "{was_write}",
            " write queues to ",
            "{read_queue_nums}",
            " and ",
            "{write_queue_nums}",
            " on ",
            "{brokers}",
            ".",
        ),
        advice="Shrink write queues first and read queues once they are consumed, or what is left in them is stranded.",
        confidence=1.0,
    )


def orphan_offset_keys(offset_change: DataFrame, topic_config: DataFrame) -> DataFrame:
    """orphan_offset_key: a master's file keeps offsets of queues or topics that it no longer has, at the night's end.

    ConsumerOffsetManager never drops the entries of removed queues.
    """
    key = ["cluster", "source_name", "topic"]
    before = F.lag("read_queue_nums").over(Window.partitionBy(*key).orderBy("ts"))
    since = F.when(~before.eqNullSafe(F.col("read_queue_nums")), F.col("ts"))
    config = (
        topic_config.where(F.col("broker_id") == 0)
        .withColumn("_since", since)
        .groupBy(*key)
        .agg(F.max_by(F.struct("change", "read_queue_nums"), "ts").alias("now"), F.max("_since").alias("_since"))
    )
    copied = config.select("cluster", "source_name").distinct().withColumn("_copied", F.lit(True))
    entries = (
        offset_change.where(F.col("broker_id") == 0)
        .groupBy(*key, "broker_name", "broker_id", "consumer_group", "queue_id")
        .agg(F.max_by("new_offset", "to_ts").alias("last"), F.max("to_ts").alias("to_ts"))
        .where(F.col("last").isNotNull())
        .join(F.broadcast(copied), ["cluster", "source_name"])
        .join(config, key, "left")
    )
    gone = F.col("now").isNull() | (F.col("now.change") == "removed")
    left = entries.where(gone | (F.col("queue_id") >= F.col("now.read_queue_nums")))
    # An orphan since the queue was gone and the offset set, whichever came later.
    left = left.withColumn("to_ts", F.greatest("to_ts", "_since"))
    found = left.groupBy("cluster", "topic", "broker_name", "broker_id").agg(
        F.max("to_ts").alias("to_ts"),
        F.min("to_ts").alias("from_ts"),
        F.count(F.lit(1)).alias("entries"),
        F.count_distinct("consumer_group").alias("groups"),
        one_or_none("consumer_group"),
        evidence("silver.offset_change", "source_name", "topic", "consumer_group", "queue_id"),
    )
    return finding(
        found,
        kind="orphan_offset_key",
        severity=F.lit("info"),
        summary=text_of(
            "",
            "{broker_name}",
            " keeps ",
            counted("entries", "offset"),
            " of ",
            counted("groups", "group"),
            " on queues of ",
            "{topic}",
            " that it no longer has.",
        ),
        advice="Harmless until queues of these numbers come back: consumers would then start from the old offsets.",
        confidence=0.9,
    )
