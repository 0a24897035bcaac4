"""gold.failover_exposure: what losing a master would cost, minute by minute: bytes its slave lacks, messages again.

What is past the slave's commit log is lost with the master (HAService); what the slave's consumerOffset.json lacks is
delivered again, since SlaveSynchronize copies offsets every 10 s in 4.9 and about every minute in 5.x.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from mqreplay.replay.far import COUNTLESS, less

MASTER = ["cluster", "broker_name"]
QUEUE = [*MASTER, "consumer_group", "topic", "queue_id"]
COPY = [*MASTER, "slave_id"]


def failover_exposure(broker_runtime: DataFrame, offset_change: DataFrame) -> DataFrame:
    """One row a master and minute in which its runtime table was polled, or its offsets were copied.

    Of several slaves the furthest counts: in bytes by its commit log, in messages by its copy of the offsets.
    """
    both = _logs(broker_runtime).join(_again(offset_change), [*MASTER, "minute"], "full")
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


def _again(offset_change: DataFrame) -> DataFrame:
    """MASTER, minute, again (by_group, messages, unknown): as it stood at the end of each minute with a change.

    Only from the minute on in which both files had been copied: before that nothing is known.
    """
    changes = offset_change.where(F.col("broker_id").isNotNull()).select(
        *QUEUE, "broker_id", F.date_trunc("minute", "to_ts").alias("minute"), F.col("to_ts").alias("ts"), "new_offset"
    )
    pairs = F.broadcast(_pairs(changes))
    by_group = _deltas(_states(changes, pairs)).groupBy(*COPY, "consumer_group", "minute")
    moved = by_group.agg(F.sum("messages").alias("messages"), F.sum("unknown").alias("unknown"))
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
    known = by_copy.join(pairs, COPY).where(F.col("minute") >= F.col("since"))
    # A copy that lacks fewer queues is further than one whose messages cannot be counted.
    furthest = F.struct("unknown", "messages", "slave_id")
    return known.groupBy(*MASTER, "minute").agg(
        F.min_by(F.struct("by_group", "messages", "unknown"), furthest).alias("again")
    )


def _pairs(changes: DataFrame) -> DataFrame:
    """COPY, since: a master's slaves, and the minute from which both files are known."""
    seen = changes.groupBy(*MASTER, "broker_id").agg(F.min("minute").alias("minute"))
    masters = seen.where("broker_id = 0").select(*MASTER, F.col("minute").alias("_master"))
    slaves = seen.where("broker_id > 0").join(masters, MASTER)
    return slaves.select(*MASTER, F.col("broker_id").alias("slave_id"), F.greatest("minute", "_master").alias("since"))


def _states(changes: DataFrame, pairs: DataFrame) -> DataFrame:
    """QUEUE, slave_id, minute, messages, unknown: each queue and copy at the end of each minute in which it changed."""
    columns = [*QUEUE, "slave_id", "minute", "ts", "master", F.col("new_offset").alias("offset")]
    held = changes.where("broker_id = 0").join(pairs, MASTER).withColumn("master", F.lit(True)).select(*columns)
    copied = changes.where("broker_id > 0").withColumnRenamed("broker_id", "slave_id")
    rows = held.unionByName(copied.withColumn("master", F.lit(False)).select(*columns))
    order = Window.partitionBy(*QUEUE, "slave_id").orderBy("ts", "master").rowsBetween(Window.unboundedPreceding, 0)
    # A value that is gone counts as not known: last over a struct keeps the null that is inside.
    master = F.last(F.when(F.col("master"), F.struct("offset")), ignorenulls=True).over(order)["offset"]
    slave = F.last(F.when(~F.col("master"), F.struct("offset")), ignorenulls=True).over(order)["offset"]
    lacks = F.when(master > slave, less(master, slave)).otherwise(F.lit(0).cast("bigint"))
    # A number that somebody set counts no messages.
    open_ended = (master.isNull() != slave.isNull()) | (lacks > COUNTLESS)
    counted = F.when(lacks > COUNTLESS, F.lit(0)).otherwise(lacks)
    state = F.struct(counted.alias("messages"), open_ended.cast("int").alias("unknown"))
    stood = rows.select(*QUEUE, "slave_id", "minute", F.struct("ts", "master").alias("at"), state.alias("state"))
    return stood.groupBy(*QUEUE, "slave_id", "minute").agg(F.max_by("state", "at").alias("state"))


def _deltas(states: DataFrame) -> DataFrame:
    """The same, less the state of the queue's minute before: what adds up over any set of queues and minutes."""
    before = Window.partitionBy(*QUEUE, "slave_id").orderBy("minute")
    return states.select(
        *COPY,
        "consumer_group",
        "minute",
        *[
            (F.col(f"state.{name}") - F.coalesce(F.lag(f"state.{name}").over(before), F.lit(0))).alias(name)
            for name in ("messages", "unknown")
        ],
    )
