"""gold.group_status: a group on a topic at the end of each window: Burrow's status, lag in messages and in time."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from mqreplay.core.burrow import STATUSES
from mqreplay.replay.by_queue.events import PULL, STATS
from mqreplay.replay.digits import as_one, digit, read_signed, signed

RANKS, NAMES, IDS = len(STATUSES) + 1, 2**20, 2**32  # how many there may be of each


def group_status(windows: DataFrame, cluster: str, window_s: int) -> DataFrame:
    """One row a group, topic and window of ``window_s`` seconds. ``windows`` is by_queue/windows.py's frame.

    Commits are those that clients sent; where none of a group were recorded, the master's snapshots stand in.
    """
    names = F.broadcast(_names(windows))
    own = [name for name in windows.columns if name != "w"]
    each = windows.join(names, "broker_name").select(*own, "place", F.explode("w").alias("w"))
    groups = _groups(each, window_s).join(names, "place").drop("place")
    return groups.withColumnRenamed("broker_name", "worst_broker_name").withColumn("cluster", F.lit(cluster))


def last_told(events: DataFrame) -> DataFrame:
    """One row, ``until_ms``: the last commit or end that the recording has, of by_queue/events.py's frame.

    Where all groups stop, the brokers' ends tell that the recording went on.
    """
    pulled = (F.col("what") == PULL) & (F.col("broker_id") == 0) & F.col("max_offset").isNotNull()
    ended = F.when(pulled, F.coalesce("also_at", "at")).when(F.col("what") == STATS, F.col("at"))
    told = F.greatest(F.when(F.col("counts"), F.col("at")), ended)
    return events.agg(F.max(F.unix_millis(told)).alias("until_ms"))


def _names(windows: DataFrame) -> DataFrame:
    """broker_name, and its ``place`` among all of them: they are few."""
    place = F.row_number().over(Window.orderBy("broker_name"))
    return windows.select("broker_name").distinct().withColumn("place", place)


def _groups(windows: DataFrame, window_s: int) -> DataFrame:
    rank = F.array_position(F.array(*map(F.lit, STATUSES)), F.col("w.status"))
    grouped = windows.groupBy("consumer_group", "topic", "source", "w.window_end_ms").agg(
        F.max(rank).alias("rank"),
        F.count_if(F.col("w.status").isNull()).alias("undetermined"),
        F.count(F.lit(1)).alias("queues"),
        F.count_if(F.col("w.lag").isNull()).alias("queues_unknown"),
        F.try_sum("w.lag").alias("known_lag"),
        F.max("w.time_lag_ms").alias("known_time_lag"),
        F.count_if(F.col("w.time_lag_ms").isNull()).alias("time_unknown"),
        F.sum("w.commits").alias("commits"),
        F.max(_weight(rank)).alias("worst"),
    )
    # As core's group_status: a trouble that is known stands; without one, a queue not known leaves the group open.
    hidden = (F.col("undetermined") > 0) & F.coalesce(F.col("rank") <= 1, F.lit(True))
    status = F.element_at(F.array(*map(F.lit, STATUSES)), F.coalesce("rank", F.lit(1)).cast("int"))
    start = F.timestamp_millis(F.col("window_end_ms") - window_s * 1000)
    told = {
        "day": F.to_date(start),
        "from_ts": start,
        "to_ts": F.timestamp_millis("window_end_ms"),
        "status": F.when(hidden, "undetermined").otherwise(status),
        "lag": F.when(F.col("queues_unknown") == 0, F.col("known_lag")),
        "time_lag_ms": F.when(F.col("time_unknown") == 0, F.col("known_time_lag")),
        "place": digit(F.col("worst"), NAMES, IDS).cast("int"),
        "worst_queue_id": read_signed(F.col("worst"), IDS).cast("int"),
        "reason": F.when(hidden, "a queue's end is not known, so its lag is not")
        .when(F.col("queues_unknown") > 0, "the worst of the queues whose ends are known")
        .otherwise("the worst of its queues"),
    }
    own = ("consumer_group", "topic", "queues", "queues_unknown", "commits", "source")
    return grouped.select(*own, *[column.alias(name) for name, column in told.items()])


def _weight(rank: Column) -> Column:
    """A queue's status, then its lag, its broker's place and its id."""
    lag = F.coalesce("w.lag", F.lit(0))
    ranked = F.coalesce(rank, F.lit(0)), RANKS
    return as_one(ranked, signed(lag), (F.col("place"), NAMES), signed(F.col("queue_id"), IDS))
