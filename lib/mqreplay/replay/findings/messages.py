"""Messages that came back, that were given up, or that were delivered more than once."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from mqreplay.replay.deliveries import MESSAGE
from mqreplay.replay.far import less, total
from mqreplay.replay.findings.shape import counted, evidence, evidence_of, finding, one_or_none, text_of
from mqreplay.replay.sessions import with_session

RETRY, DLQ = "%RETRY%", "%DLQ%"  # MixAll.RETRY_GROUP_TOPIC_PREFIX, DLQ_GROUP_TOPIC_PREFIX
MAX_RECONSUME = 16  # SubscriptionGroupConfig.retryMaxTimes
GROUP = ["cluster", "consumer_group"]


def retry_findings(came_back: DataFrame, ends: DataFrame, cluster: str, warn_messages: int, gap_s: int) -> DataFrame:
    """retry_growth: messages sent back, by the consumers' logs; where a group left none, by its retry topic's end.

    Fewer than ``warn_messages`` are told as info. ``ends`` is queue_ends' frame.
    """
    logged = came_back.select(
        *GROUP, "ts", F.lit(1).cast("bigint").alias("messages"), F.lit("silver.consume").alias("table"), "record_id"
    )
    grown = _growth(ends, RETRY, cluster).join(F.broadcast(logged.select(*GROUP).distinct()), GROUP, "left_anti")
    told = logged.unionByName(
        grown.select(
            *GROUP, "ts", "messages", F.lit("silver.pull").alias("table"), F.lit(None).cast("string").alias("record_id")
        )
    )
    together = with_session(told, GROUP, "ts", "ts", gap_s)
    found = together.groupBy(*GROUP, "session").agg(
        F.min("ts").alias("from_ts"),
        F.max("ts").alias("to_ts"),
        total("messages").alias("messages"),
        F.array_sort(F.collect_set("record_id")).alias("record_ids"),
    )
    rows = found.withColumn("topic", F.concat(F.lit(RETRY), "consumer_group")).withColumn(
        "evidence", evidence_of("silver.consume", "record_ids")
    )
    return finding(
        rows,
        kind="retry_growth",
        severity=F.when(F.col("messages") >= warn_messages, "warning").otherwise("info"),
        summary=text_of(
            "Group ", "{consumer_group}", " sent messages back to be consumed later, ", counted("messages", "time"), "."
        ),
        advice="See why the listener fails on them; each try waits longer, and the last ends as a dead letter.",
        confidence=1.0,
    )


def dead_letters(came_back: DataFrame, topic_config: DataFrame, ends: DataFrame, cluster: str, gap_s: int) -> DataFrame:
    """dead_letter: messages a group gave up: its dead letter topic came to be, or grew, or the last try failed."""
    first = topic_config.groupBy("cluster", "source_name").agg(F.min("ts").alias("_first"))
    made = (
        topic_config.where(F.col("topic").startswith(DLQ) & (F.col("change") == "first") & (F.col("broker_id") == 0))
        .join(F.broadcast(first), ["cluster", "source_name"])
        .where(F.col("ts") > F.col("_first"))
        .select(
            "cluster",
            _group_of(DLQ),
            "ts",
            F.lit(None).cast("bigint").alias("messages"),
            _row("silver.topic_config", "source_name", "topic"),
        )
    )
    grown = _growth(ends, DLQ, cluster).select(*GROUP, "ts", "messages", F.lit(None).cast(ROW).alias("row"))
    last_try = came_back.where(F.col("reconsume_times") >= MAX_RECONSUME).select(
        *GROUP, "ts", F.lit(1).cast("bigint").alias("messages"), _row("silver.consume", "record_id")
    )
    together = with_session(made.unionByName(grown).unionByName(last_try), GROUP, "ts", "ts", gap_s)
    found = together.groupBy(*GROUP, "session").agg(
        F.min("ts").alias("from_ts"),
        F.max("ts").alias("to_ts"),
        total("messages").alias("messages"),
        F.array_sort(F.collect_set("row")).alias("evidence"),
    )
    rows = found.withColumn("topic", F.concat(F.lit(DLQ), "consumer_group"))
    count = F.coalesce(counted("messages", "message"), F.lit("messages"))
    return finding(
        rows,
        kind="dead_letter",
        severity=F.lit("warning"),
        summary=text_of("Group ", "{consumer_group}", " gave up ", count, ": they lie in ", "{topic}", "."),
        advice="Read them there, mend what failed, and send them again; nothing does so by itself.",
        confidence=0.95,
    )


def duplicate_findings(repeated: DataFrame, gap_s: int) -> DataFrame:
    """duplicate_delivery, of repeated_deliveries' frame.

    A queue that changes hands takes some messages along that its last owner had not committed: normal, told as info.
    The same client given a message again, with nothing else to explain it, is not.
    """
    moved = F.col("client_id") != F.col("first_client_id")
    together = with_session(repeated.withColumn("moved", moved), GROUP, "ts", "ts", gap_s)
    found = together.groupBy(*GROUP, "session").agg(
        F.min("ts").alias("from_ts"),
        F.max("ts").alias("to_ts"),
        F.count_distinct(*MESSAGE).alias("messages"),
        F.max(~F.col("moved")).alias("same"),
        one_or_none("topic"),
        one_or_none("broker_name"),
        evidence("silver.consume", "record_id"),
    )
    how = F.when(F.col("same"), "to a client that had had them").otherwise("when their queues changed hands")
    return finding(
        found,
        kind="duplicate_delivery",
        severity=F.when(F.col("same"), "warning").otherwise("info"),
        summary=text_of(
            "Group ", "{consumer_group}", " was given ", counted("messages", "message"), " more than once, ", how, "."
        ),
        advice="RocketMQ delivers at least once: consumers must bear a message twice, by its key.",
        confidence=1.0,
    )


ROW = "struct<table_name: string, key: string>"


def _row(table: str, *key: str):  # type: ignore[no-untyped-def]
    text = F.concat_ws(" ", *[F.concat(F.lit(f"{k}="), F.col(k).cast("string")) for k in key])
    return F.struct(F.lit(table).alias("table_name"), text.alias("key")).alias("row")


def _group_of(prefix: str):  # type: ignore[no-untyped-def]
    return F.substr("topic", F.lit(len(prefix) + 1)).alias("consumer_group")


def _growth(ends: DataFrame, prefix: str, cluster: str) -> DataFrame:
    """GROUP, ts, messages: by how much the queues of such topics grew, each time a master told of a new end."""
    from pyspark.sql import Window

    order = Window.partitionBy("broker_name", "topic", "queue_id").orderBy("at", "queue_max_offset")
    told = ends.where(F.col("topic").startswith(prefix)).withColumn("_before", F.lag("queue_max_offset").over(order))
    return told.where(F.col("queue_max_offset") > F.col("_before")).select(
        F.lit(cluster).alias("cluster"),
        _group_of(prefix),
        F.col("at").alias("ts"),
        less("queue_max_offset", "_before").alias("messages"),
    )
