"""A pass that both engines run: it counts the pulls of queues. Workers import it by name."""

from __future__ import annotations

import datetime as dt
import os
from dataclasses import dataclass

import polars as pl

from mqreplay.engines.passes import GoldRows, Pass, PassTable
from mqreplay.engines.rows import CountedRows
from mqreplay.engines.shards import Shard
from mqreplay.lake.row_filter import Days
from mqreplay.replay.queue_tables import PULL_ROUTES, QUEUE_BUCKET

DAY = dt.date(2026, 11, 21)
QUEUE_COLUMNS = ["broker_name", "topic", "queue_id"]


@dataclass(frozen=True)
class Counted:
    """The pulls of each queue of a task, the columns of a pull, its routes of the day before, and a whole table."""

    queues: pl.DataFrame
    columns: pl.DataFrame
    before: pl.DataFrame
    tasks: pl.DataFrame


def count_pulls(source: CountedRows, shard: Shard, factor: int, gold: GoldRows) -> Counted:
    """Count the pulls by queue, times the factor, and add a row of gold.queue_progress for each."""
    of_day = Days(DAY, DAY)
    pulls = source.read("silver.pull", of_day, pl.lit(True), shard)
    queues = pulls.group_by(QUEUE_COLUMNS).agg(pl.len().cast(pl.Int64).alias("pulls") * factor)
    before = source.read("gold.pull_route", Days(last=DAY - dt.timedelta(days=1)), pl.lit(True), shard)
    stats = source.read("silver.topic_stats", of_day, pl.lit(True))
    tasks = pl.DataFrame({"process": [os.getpid()], "queues": [len(queues)], "stats": [len(stats)]})
    gold.add("gold.queue_progress", progress(queues))
    columns = pl.DataFrame({"name": pulls.columns})
    return Counted(queues, columns, before.select(QUEUE_COLUMNS), tasks)


def progress(queues: pl.DataFrame) -> pl.DataFrame:
    """Return rows of gold.queue_progress with the number of pulls as their changes."""
    hour = pl.lit(dt.datetime.combine(DAY, dt.time(), dt.UTC), pl.Datetime("us", "UTC"))
    offset = pl.col("pulls")
    named = dict.fromkeys(("first_offset", "last_offset", "min_offset", "max_offset", "changes"), offset)
    return queues.with_columns(
        pl.lit(DAY).alias("day"),
        pl.lit(0, pl.Int32).alias("broker_id"),
        pl.lit("g").alias("consumer_group"),
        hour.alias("hour"),
        pl.lit(0, pl.Int64).alias("advance"),
        pl.lit(None, pl.Int64).alias("queue_max_offset"),
        pl.lit(None, pl.Int64).alias("lag"),
        **named,
    )


COUNT_PASS = Pass(
    count_pulls,
    (PassTable("silver.pull", QUEUE_BUCKET, unread=("remark", "error")), PULL_ROUTES, PassTable("silver.topic_stats")),
    ("gold.queue_progress",),
)
