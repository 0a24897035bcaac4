"""Slaves whose copies of the offsets stayed behind: SlaveSynchronize no longer copies them.

Told from the files alone, which change only: what a file held between two copies that agree, it held all the while.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from mqreplay.replay.as_of import as_of
from mqreplay.replay.findings.shape import evidence, finding, queues_text, text_of
from mqreplay.replay.sessions import with_session

NAME = ["cluster", "broker_name"]
SLAVE = [*NAME, "slave_id"]
COPY = [*SLAVE, "consumer_group", "topic", "queue_id"]


def stale_slave_offsets(
    copies: DataFrame, snapshot: DataFrame, outages: DataFrame, cluster: str, stale_slave_s: int
) -> DataFrame:
    """One finding a slave that kept an offset below all that its master held in the last ``stale_slave_s`` seconds.

    ``copies`` is by_queue/slave_copies.py's frame, ``outages`` broker_outages'. Judged where both files were copied and
    the master was there all that time.
    """
    read = snapshot.where("file_name = 'consumerOffset.json' AND broker_id IS NOT NULL")
    watched = _watched(read, outages, stale_slave_s)
    behind = copies.select(F.lit(cluster).alias("cluster"), *COPY[1:], F.inline("behind"))
    since, until = F.greatest("from_ms", "watched_from"), F.least("to_ms", "watched_to")
    met = behind.join(F.broadcast(watched), SLAVE).where(since <= until)
    by_queue = met.groupBy(*COPY).agg(
        # The copy was right at most so long before it was stale.
        (F.min("began_ms") - stale_slave_s * 1000).alias("from_ms"),
        F.max(until).alias("to_ms"),
        F.max("lacks").alias("lacks"),
    )
    found = (
        by_queue.withColumn("source_name", F.concat_ws("-", "broker_name", F.col("slave_id").cast("string")))
        .withColumnRenamed("slave_id", "broker_id")
        .groupBy(*NAME, "broker_id")
        .agg(
            F.timestamp_millis(F.min("from_ms")).alias("from_ts"),
            F.timestamp_millis(F.max("to_ms")).alias("to_ts"),
            F.count(F.lit(1)).alias("queues"),
            F.count_distinct("consumer_group").alias("groups"),
            F.sum("lacks").alias("messages"),
            evidence("silver.offset_change", "source_name", "topic", "consumer_group", "queue_id"),
        )
    )
    return finding(
        found,
        kind="stale_slave_offsets",
        severity=F.lit("warning"),
        summary=text_of(
            "Slave ",
            "{broker_id}",
            " of ",
            "{broker_name}",
            " kept offsets of ",
            queues_text(),
            " of ",
            "{groups}",
            F.when(F.col("groups") == 1, " group").otherwise(" groups"),
            f" below all that its master held for {stale_slave_s} s; were it read instead, up to ",
            "{messages}",
            " messages would be delivered again.",
        ),
        advice="See in the slave's broker.log why SlaveSynchronize fails, and whether it still reaches its master.",
        confidence=0.9,
    )


def _watched(copies: DataFrame, outages: DataFrame, stale_slave_s: int) -> DataFrame:
    """SLAVE, watched_from, watched_to (epoch ms): spans of a slave's copies that can be held against its master.

    Within the last ``stale_slave_s`` seconds of each the master's file was copied, and the master was never gone.
    """
    slaves = copies.where("broker_id > 0").select(*NAME, F.col("broker_id").alias("slave_id"), "ts")
    masters = copies.where("broker_id = 0").select(*NAME, "ts")
    copied = as_of(slaves, masters, NAME, "ts", F.col("ts"), "master_ts").where(
        F.unix_millis("ts") - F.unix_millis("master_ts") < stale_slave_s * 1000
    )
    gone = outages.where("broker_id = 0").select(*NAME, F.col("from_ts").alias("_from"), F.col("to_ts").alias("_to"))
    keys = [F.col(f"c.{k}") == F.col(f"g.{k}") for k in NAME]
    reached = F.col("c.ts") - F.make_dt_interval(secs=F.lit(stale_slave_s))
    within = (F.col("g._from") <= F.col("c.ts")) & (F.col("g._to") > reached)
    there = copied.alias("c").join(F.broadcast(gone).alias("g"), [*keys, within], "left_anti")
    together = with_session(there, SLAVE, "ts", "ts", stale_slave_s)
    return together.groupBy(*SLAVE, "session").agg(
        F.unix_millis(F.min("ts")).alias("watched_from"), F.unix_millis(F.max("ts")).alias("watched_to")
    )
