"""Where a slave's copy of an offset stayed behind its master's: SlaveSynchronize no longer copies it.

Told from the files alone, which change only: what a file held between two copies that agree, it held all the while.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from mqreplay.replay.as_of import as_of
from mqreplay.replay.sessions import with_session

NAME = ["cluster", "broker_name"]
SLAVE = [*NAME, "slave_id"]
COPY = [*SLAVE, "consumer_group", "topic", "queue_id"]


def stale_copies(
    copies: DataFrame, snapshot: DataFrame, outages: DataFrame, cluster: str, stale_slave_s: int
) -> DataFrame:
    """gold.offset_continuity's rows of kind stale: a slave's offset below all that its master held for so long.

    One row a stretch of time. ``copies`` is by_queue/slave_copies.py's frame, ``outages`` broker_outages',
    ``snapshot`` silver.snapshot. Judged where both files were copied and the master was there all that time.
    """
    read = snapshot.where("file_name = 'consumerOffset.json' AND broker_id IS NOT NULL")
    watched = _watched(read, outages, stale_slave_s)
    behind = copies.select(F.lit(cluster).alias("cluster"), *COPY[1:], F.inline("behind"))
    since, until = F.greatest("from_ms", "watched_from"), F.least("to_ms", "watched_to")
    met = behind.join(F.broadcast(watched), SLAVE).where(since <= until)
    most = F.max_by(F.struct("holds", "has", "lacks"), F.struct("lacks", "to_ms")).alias("most")
    # The copy was right at most so long before it was stale.
    began = F.timestamp_millis(F.col("began_ms") - stale_slave_s * 1000)
    stretches = met.groupBy(*COPY, "began_ms").agg(F.timestamp_millis(F.max(until)).alias("to_ts"), most)
    slaves = read.where("broker_id > 0").withColumnsRenamed({"broker_id": "slave_id", "ts": "to_ts"})
    shown = as_of(stretches, slaves, SLAVE, "to_ts", F.col("source_digest"), "source_digest")
    none = F.lit(None).cast("bigint")
    return shown.select(
        "cluster",
        F.to_date("to_ts").alias("day"),
        "broker_name",
        F.col("slave_id").alias("broker_id"),
        "topic",
        "consumer_group",
        "queue_id",
        F.lit("stale").alias("kind"),
        F.col("most.holds").alias("previous_offset"),
        F.col("most.has").alias("new_offset"),
        F.col("most.lacks").alias("size"),
        began.alias("from_ts"),
        "to_ts",
        F.lit("not_copied").alias("cause"),
        F.col("most.lacks").alias("redelivered_max"),
        none.alias("queue_min_offset"),
        none.alias("queue_max_offset"),
        "source_digest",
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
