"""gold.group_status: a group on a topic at the end of each window: Burrow's status, lag in messages and in time."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from mqreplay.bind import status_columns
from mqreplay.core.burrow import STATUSES

QUEUE = ["topic", "broker_name", "queue_id"]
KEY = ["cluster", "consumer_group", *QUEUE]


def group_status(commits: DataFrame, offset_change: DataFrame, ends: DataFrame, window_s: int) -> DataFrame:
    """One row a group, topic and window of ``window_s`` seconds. ``ends`` is queue_ends' frame.

    Commits are those that clients sent; where none of a group were recorded, the master's snapshots stand in.
    """
    told = _commits(commits, offset_change)
    # Where all groups stop, the brokers' ends tell that the recording went on.
    seen = ends.agg(F.max(F.unix_millis("at")).alias("seen_ms"))
    until = told.groupBy("cluster").agg(F.max("ts_ms").alias("told_ms")).crossJoin(seen)
    until = until.select("cluster", F.greatest("told_ms", "seen_ms").alias("until_ms"))
    by_queue = told.groupBy(*KEY, "source").agg(*_arrays("ts_ms", "offset", "commit"))
    heads = ends.where(F.col("queue_max_offset").isNotNull()).select(
        *QUEUE, F.unix_millis("at").alias("ts_ms"), F.col("queue_max_offset").alias("offset")
    )
    # Of ends that do not move the first of each second is enough: flat runs keep two points anyway.
    heads = heads.groupBy(*QUEUE, (F.col("ts_ms") / 1000).cast("bigint").alias("second")).agg(
        F.max("ts_ms").alias("ts_ms"), F.max("offset").alias("offset")
    )
    both = by_queue.join(heads.groupBy(*QUEUE).agg(*_arrays("ts_ms", "offset", "head")), QUEUE, "left")
    empty = F.array().cast("array<bigint>")
    asked = both.join(F.broadcast(until), "cluster")
    windows = status_columns.status_windows(
        F.col("commit_ts"),
        F.col("commit_offset"),
        F.coalesce("head_ts", empty),
        F.coalesce("head_offset", empty),
        F.lit(window_s * 1000).cast("bigint"),
        F.col("until_ms"),
    )
    return _groups(asked.select(*KEY, "source", F.explode(windows).alias("w")), window_s)


def _commits(commits: DataFrame, offset_change: DataFrame) -> DataFrame:
    """KEY, ts_ms, offset, source. A commit that reached no broker is none."""
    sent = commits.where("kind = 'UPDATE' AND commit_offset IS NOT NULL AND error IS NULL").select(
        *KEY,
        F.unix_millis("ts").alias("ts_ms"),
        F.col("commit_offset").alias("offset"),
        F.lit("offset_commit").alias("source"),
    )
    known = sent.select("cluster", "consumer_group").distinct()
    saved = offset_change.where("broker_id = 0 AND new_offset IS NOT NULL").select(
        *KEY,
        F.unix_millis("to_ts").alias("ts_ms"),
        F.col("new_offset").alias("offset"),
        F.lit("offset_change").alias("source"),
    )
    return sent.unionByName(saved.join(F.broadcast(known), ["cluster", "consumer_group"], "left_anti"))


def _arrays(ts: str, offset: str, name: str) -> list[Column]:
    both = F.array_sort(F.collect_list(F.struct(F.col(ts).alias("t"), F.col(offset).alias("o"))))
    return [
        F.transform(both, lambda p: p.t).alias(f"{name}_ts"),
        F.transform(both, lambda p: p.o).alias(f"{name}_offset"),
    ]


def _groups(windows: DataFrame, window_s: int) -> DataFrame:
    rank = F.array_position(F.array(*map(F.lit, STATUSES)), F.col("w.status"))
    queue = F.struct(rank.alias("rank"), F.coalesce("w.lag", F.lit(0)).alias("lag"), "broker_name", "queue_id")
    grouped = windows.groupBy("cluster", "consumer_group", "topic", "source", "w.window_end_ms").agg(
        F.max(rank).alias("rank"),
        F.count_if(F.col("w.status").isNull()).alias("undetermined"),
        F.count(F.lit(1)).alias("queues"),
        F.count_if(F.col("w.lag").isNull()).alias("queues_unknown"),
        F.sum("w.lag").alias("known_lag"),
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
