"""What was told of queues, in one narrow frame: rows of silver.offset_change, offset_commit, pull and topic_stats."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

CHANGE, COMMIT, PULL, STATS = range(4)  # `what`: which of the tables a row is of
QUEUE = ("broker_name", "topic", "queue_id")
KEY = ("consumer_group", "topic", "broker_name", "queue_id")  # of a queue's offset
# Every column, its type, and what of each table it is; null where a table has none.
COLUMNS: Mapping[str, str] = {
    "broker_name": "string",
    "topic": "string",
    "queue_id": "int",
    "consumer_group": "string",
    "client_id": "string",
    "broker_id": "bigint",
    "at": "timestamp",  # to_ts; ts; request_ts; ts
    "also_at": "timestamp",  # from_ts; -; response_ts; -
    "committed": "bigint",  # new_offset; commit_offset; commit_offset if it says one; -
    "previous_offset": "bigint",
    "queue_offset": "bigint",
    "next_begin_offset": "bigint",  # where the pull was answered
    "min_offset": "bigint",
    "max_offset": "bigint",
    "opaque": "bigint",
    "counts": "boolean",  # a change or commit by which the group's status is told
}


def queue_events(offset_change: DataFrame, commits: DataFrame, pull: DataFrame, topic_stats: DataFrame) -> DataFrame:
    """``what`` and COLUMNS; brokers' files only. Offsets are of messages in the queue."""
    return reduce(
        DataFrame.unionByName,
        [_changes(offset_change, commits), _commits(commits), _pulls(pull), _stats(topic_stats)],
    )


def _changes(offset_change: DataFrame, commits: DataFrame) -> DataFrame:
    # Where no commits of a group were recorded, the master's snapshots stand in.
    known = _sent(commits).where(F.col("error").isNull()).select("cluster", "consumer_group").distinct()
    saved = offset_change.where(F.col("broker_id").isNotNull()).join(
        F.broadcast(known.withColumn("_known", F.lit(True))), ["cluster", "consumer_group"], "left"
    )
    stands_in = (F.col("broker_id") == 0) & F.col("new_offset").isNotNull() & F.col("_known").isNull()
    return _event(
        saved,
        CHANGE,
        at=F.col("to_ts"),
        also_at=F.col("from_ts"),
        committed=F.col("new_offset"),
        previous_offset=F.col("previous_offset"),
        counts=stands_in,
    )


def _commits(commits: DataFrame) -> DataFrame:
    return _event(
        _sent(commits), COMMIT, at=F.col("ts"), committed=F.col("commit_offset"), counts=F.col("error").isNull()
    )


def _sent(commits: DataFrame) -> DataFrame:
    return commits.where("kind = 'UPDATE' AND commit_offset IS NOT NULL")


def _pulls(pull: DataFrame) -> DataFrame:
    return _event(
        pull,
        PULL,
        at=F.col("request_ts"),
        also_at=F.col("response_ts"),
        # Sent with the commit bit of PullSysFlag only; 0 says nothing then.
        committed=F.when(F.col("commit_offset") > 0, F.col("commit_offset")),
        queue_offset=F.col("queue_offset"),
        next_begin_offset=F.when(F.col("response_code").isNotNull(), F.col("next_begin_offset")),
        min_offset=F.col("min_offset"),
        max_offset=F.col("max_offset"),
        opaque=F.col("opaque"),
    )


def _stats(topic_stats: DataFrame) -> DataFrame:
    looked = topic_stats.where((F.col("broker_id") == 0) & F.col("offsets").isNotNull())
    each = looked.select("ts", "broker_id", F.explode("offsets").alias("o")).select("ts", "broker_id", "o.*")
    ends = {"min_offset": F.col("min_offset"), "max_offset": F.col("max_offset")}
    return _event(each, STATS, at=F.col("ts"), **ends)


def _event(frame: DataFrame, what: int, **columns: Column) -> DataFrame:
    own = {name: F.col(name) for name in (*QUEUE, "consumer_group", "client_id", "broker_id") if name in frame.columns}
    given = own | columns
    named = [given.get(name, F.lit(None)).cast(kind).alias(name) for name, kind in COLUMNS.items()]
    return frame.select(F.lit(what).cast("tinyint").alias("what"), *named)
