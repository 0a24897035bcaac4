"""gold.failover_exposure: what losing a master would cost, minute by minute: bytes its slave lacks, messages again.

What is past the slave's commit log is lost with the master (HAService); what the slave's consumerOffset.json lacks is
delivered again, since SlaveSynchronize copies offsets every 10 s in 4.9 and about every minute in 5.x.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

MASTER = ["cluster", "broker_name"]
QUEUE = [*MASTER, "consumer_group", "topic", "queue_id"]


def failover_exposure(broker_runtime: DataFrame, offset_change: DataFrame) -> DataFrame:
    """One row a master and minute in which its runtime table was polled, or its offsets were copied."""
    logs = _logs(broker_runtime)
    again = _again(offset_change)
    both = logs.join(again, [*MASTER, "minute"], "full")
    order = Window.partitionBy(*MASTER).orderBy("minute").rowsBetween(Window.unboundedPreceding, 0)
    standing = F.last("by_group", ignorenulls=True).over(order)
    unknown = F.last("unknown", ignorenulls=True).over(order)
    by_group = F.map_from_entries(F.filter(standing, lambda g: g.messages > 0))
    copied = standing.isNotNull()
    total = F.aggregate(standing, F.lit(0).cast("bigint"), lambda a, g: a + g.messages)
    return both.select(
        "cluster",
        F.to_date("minute").alias("day"),
        "broker_name",
        F.col("minute").alias("minute_ts"),
        "master_up",
        "master_end",
        "slave_end",
        F.greatest(F.col("master_end") - F.col("slave_end"), F.lit(0)).alias("bytes_behind"),
        F.when(copied, by_group).alias("redelivered_by_group"),
        F.when(copied, total).alias("redelivered"),
        F.when(copied, unknown).alias("unknown_queues"),
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


def _again(offset_change: DataFrame) -> DataFrame:
    """MASTER, minute, by_group (array of group and messages), unknown: as it stood at the end of each minute."""
    changes = offset_change.where(F.col("broker_id").isNotNull()).select(
        *QUEUE,
        (F.col("broker_id") == 0).alias("master"),
        F.col("to_ts").alias("ts"),
        F.col("new_offset").alias("offset"),
    )
    order = Window.partitionBy(*QUEUE).orderBy("ts", "master").rowsBetween(Window.unboundedPreceding, 0)
    # A value that is gone counts as not known: last over a struct keeps the null that is inside.
    master = F.last(F.when(F.col("master"), F.struct("offset")), ignorenulls=True).over(order)["offset"]
    slave = F.last(F.when(~F.col("master"), F.struct("offset")), ignorenulls=True).over(order)["offset"]
    known = changes.select(
        *QUEUE,
        F.date_trunc("minute", "ts").alias("minute"),
        "ts",
        F.coalesce(F.greatest(master - slave, F.lit(0)), F.lit(0)).alias("messages"),
        (master.isNull() | slave.isNull()).cast("int").alias("unknown"),
    )
    # Each queue's state at the end of a minute, less that of its minute before: deltas that add up over any set.
    at_end = known.groupBy(*QUEUE, "minute").agg(F.max_by(F.struct("messages", "unknown"), "ts").alias("s"))
    before = Window.partitionBy(*QUEUE).orderBy("minute")
    deltas = at_end.select(
        *QUEUE,
        "minute",
        (F.col("s.messages") - F.coalesce(F.lag("s.messages").over(before), F.lit(0))).alias("messages"),
        (F.col("s.unknown") - F.coalesce(F.lag("s.unknown").over(before), F.lit(0))).alias("unknown"),
    )
    by_group = deltas.groupBy(*MASTER, "consumer_group", "minute").agg(
        F.sum("messages").alias("messages"), F.sum("unknown").alias("unknown")
    )
    minutes = by_group.select(*MASTER, "minute").distinct()
    groups = by_group.select(*MASTER, "consumer_group").distinct()
    grid = minutes.join(groups, MASTER).join(by_group, [*MASTER, "consumer_group", "minute"], "left")
    so_far = Window.partitionBy(*MASTER, "consumer_group").orderBy("minute").rowsBetween(Window.unboundedPreceding, 0)
    summed = grid.select(
        *MASTER,
        "minute",
        "consumer_group",
        F.sum(F.coalesce("messages", F.lit(0))).over(so_far).alias("messages"),
        F.sum(F.coalesce("unknown", F.lit(0))).over(so_far).alias("unknown"),
    )
    return summed.groupBy(*MASTER, "minute").agg(
        F.array_sort(F.collect_list(F.struct("consumer_group", "messages"))).alias("by_group"),
        F.sum("unknown").alias("unknown"),
    )
