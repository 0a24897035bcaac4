"""gold.failover_exposure: what losing a master would cost, minute by minute: bytes its slave lacks, messages again.

What is past the slave's commit log is lost with the master (HAService); what the slave's consumerOffset.json lacks is
delivered again, since SlaveSynchronize copies offsets every 10 s in 4.9 and about every minute in 5.x.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from mqreplay.replay.far import less

MASTER = ["cluster", "broker_name"]
COPY = [*MASTER, "slave_id"]


def failover_exposure(broker_runtime: DataFrame, lacked: DataFrame) -> DataFrame:
    """One row a master and minute in which its runtime table was polled, or its offsets were copied.

    Of several slaves the furthest counts: in bytes by its commit log, in messages by its copy of the offsets.
    ``lacked`` is lacked_by_minute's frame, which is read several times.
    """
    both = _logs(broker_runtime).join(_again(lacked), [*MASTER, "minute"], "full")
    order = Window.partitionBy(*MASTER).orderBy("minute").rowsBetween(Window.unboundedPreceding, 0)
    standing = F.last("again", ignorenulls=True).over(order)
    behind = less("master_end", "slave_end")
    return both.withColumn("again", standing).select(
        "cluster",
        F.to_date("minute").alias("day"),
        "broker_name",
        F.col("minute").alias("minute_ts"),
        "master_up",
        "master_end",
        "slave_end",
        # The polls of a minute are seconds apart: a slave seen later than its master may look further.
        F.when(behind < 0, F.lit(0)).otherwise(behind).alias("bytes_behind"),
        F.map_from_entries(F.filter("again.by_group", lambda g: g.messages > 0)).alias("redelivered_by_group"),
        F.col("again.messages").alias("redelivered"),
        F.col("again.unknown").alias("unknown_queues"),
    )


def _logs(broker_runtime: DataFrame) -> DataFrame:
    """MASTER, minute, master_up, master_end, slave_end: bytes, as last told in the minute, of the best slave."""
    minute = F.date_trunc("minute", "ts").alias("minute")
    last = (
        broker_runtime.where(F.col("broker_id").isNotNull())
        .groupBy(*MASTER, "broker_id", minute)
        .agg(
            F.max_by("commit_log_max_offset", F.when(F.col("commit_log_max_offset").isNotNull(), F.col("ts"))).alias(
                "end"
            ),
            F.max(F.col("error").isNull()).alias("up"),
        )
    )
    is_master = F.col("broker_id") == 0
    return last.groupBy(*MASTER, "minute").agg(
        F.max(F.when(is_master, F.col("up"))).alias("master_up"),
        F.max(F.when(is_master, F.col("end"))).alias("master_end"),
        F.max(F.when(~is_master, F.col("end"))).alias("slave_end"),
    )


def lacked_by_minute(copies: DataFrame, cluster: str) -> DataFrame:
    """COPY, consumer_group, minute: by how much ``messages`` and ``unknown`` queues rose in it, and whose file changed.

    ``copies`` is by_queue/slave_copies.py's frame.
    """
    each = copies.select(F.lit(cluster).alias("cluster"), *COPY[1:], "consumer_group", F.inline("lacked"))
    return each.groupBy(*COPY, "consumer_group", "minute").agg(
        F.sum("messages").alias("messages"),
        F.sum("unknown").alias("unknown"),
        F.max("of_master").alias("of_master"),
        F.max("of_slave").alias("of_slave"),
    )


def _again(moved: DataFrame) -> DataFrame:
    """MASTER, minute, again (by_group, messages, unknown): as it stood at the end of each minute with a change.

    Only from the minute on in which both files had been copied: before that nothing is known.
    """
    # Sums of groups, not queues, are carried over the minutes: a grid of few rows.
    grid = moved.select(*MASTER, "minute").distinct().join(moved.select(*COPY, "consumer_group").distinct(), MASTER)
    so_far = Window.partitionBy(*COPY, "consumer_group").orderBy("minute").rowsBetween(Window.unboundedPreceding, 0)
    standing = grid.join(moved, [*COPY, "consumer_group", "minute"], "left").select(
        *COPY,
        "minute",
        "consumer_group",
        F.coalesce(F.sum("messages").over(so_far), F.lit(0)).alias("messages"),
        F.coalesce(F.sum("unknown").over(so_far), F.lit(0)).alias("unknown"),
    )
    by_copy = standing.groupBy(*COPY, "minute").agg(
        F.array_sort(F.collect_list(F.struct("consumer_group", "messages"))).alias("by_group"),
        F.sum("messages").alias("messages"),
        F.sum("unknown").alias("unknown"),
    )
    known = by_copy.join(F.broadcast(_both_known(moved)), COPY).where(F.col("minute") >= F.col("since"))
    # A copy that lacks fewer queues is further than one whose messages cannot be counted.
    furthest = F.struct("unknown", "messages", "slave_id")
    return known.groupBy(*MASTER, "minute").agg(
        F.min_by(F.struct("by_group", "messages", "unknown"), furthest).alias("again")
    )


def _both_known(moved: DataFrame) -> DataFrame:
    """COPY, since: the minute from which the master's file and the slave's are known; none where one never is."""
    first = moved.groupBy(*COPY).agg(
        *[F.min(F.when(F.col(name), F.col("minute"))).alias(name) for name in ("of_master", "of_slave")]
    )
    return first.dropna().select(*COPY, F.greatest("of_master", "of_slave").alias("since"))
