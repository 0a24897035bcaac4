"""gold.group_status: a group on a topic at the end of each window: Burrow's status, lag in messages and in time."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from mqreplay.core.burrow import STATUSES
from mqreplay.replay.by_queue.events import PULL, STATS


def group_status(windows: DataFrame, cluster: str, window_s: int) -> DataFrame:
    """One row a group, topic and window of ``window_s`` seconds. ``windows`` is by_queue/windows.py's frame.

    Commits are those that clients sent; where none of a group were recorded, the master's snapshots stand in.
    """
    own = [name for name in windows.columns if name != "w"]
    return _groups(windows.select(F.lit(cluster).alias("cluster"), *own, F.explode("w").alias("w")), window_s)


def last_told(events: DataFrame) -> DataFrame:
    """One row, ``until_ms``: the last commit or end that the recording has, of by_queue/events.py's frame.

    Where all groups stop, the brokers' ends tell that the recording went on.
    """
    pulled = (F.col("what") == PULL) & (F.col("broker_id") == 0) & F.col("max_offset").isNotNull()
    ended = F.when(pulled, F.coalesce("also_at", "at")).when(F.col("what") == STATS, F.col("at"))
    told = F.greatest(F.when(F.col("counts"), F.col("at")), ended)
    return events.agg(F.max(F.unix_millis(told)).alias("until_ms"))


def _groups(windows: DataFrame, window_s: int) -> DataFrame:
    rank = F.array_position(F.array(*map(F.lit, STATUSES)), F.col("w.status"))
    queue = F.struct(rank.alias("rank"), F.coalesce("w.lag", F.lit(0)).alias("lag"), "broker_name", "queue_id")
    grouped = windows.groupBy("cluster", "consumer_group", "topic", "source", "w.window_end_ms").agg(
        F.max(rank).alias("rank"),
        F.count_if(F.col("w.status").isNull()).alias("undetermined"),
        F.count(F.lit(1)).alias("queues"),
        F.count_if(F.col("w.lag").isNull()).alias("queues_unknown"),
        F.try_sum("w.lag").alias("known_lag"),
        F.max("w.time_lag_ms").alias("known_time_lag"),
        F.count_if(F.col("w.time_lag_ms").isNull()).alias("time_unknown"),
        F.sum("w.commits").alias("commits"),
        F.max(queue).alias("worst"),
    )
    # As core's group_status: a trouble that is known stands; without one, a queue not known leaves the group open.
    hidden = (F.col("undetermined") > 0) & F.coalesce(F.col("rank") <= 1, F.lit(True))
    status = F.element_at(F.array(*map(F.lit, STATUSES)), F.coalesce("rank", F.lit(1)).cast("int"))
    end = F.timestamp_millis("window_end_ms")
    start = F.timestamp_millis(F.col("window_end_ms") - window_s * 1000)
    return grouped.select(
        "cluster",
        F.to_date(start).alias("day"),
        "consumer_group",
        "topic",
        start.alias("from_ts"),
        end.alias("to_ts"),
        F.when(hidden, "undetermined").otherwise(status).alias("status"),
        F.when(F.col("queues_unknown") == 0, F.col("known_lag")).alias("lag"),
        F.when(F.col("time_unknown") == 0, F.col("known_time_lag")).alias("time_lag_ms"),
        "queues",
        "queues_unknown",
        F.col("worst.broker_name").alias("worst_broker_name"),
        F.col("worst.queue_id").alias("worst_queue_id"),
        "commits",
        "source",
        F.when(hidden, "a queue's end is not known, so its lag is not")
        .when(F.col("queues_unknown") > 0, "the worst of the queues whose ends are known")
        .otherwise("the worst of its queues")
        .alias("reason"),
    )
