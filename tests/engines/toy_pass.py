"""A pass in two halves that both engines run: it counts the pulls of queues. Workers import it by name."""

from __future__ import annotations

import datetime as dt
import os
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl
import pyarrow as pa

from mqreplay.engines.passes import Asked, CaseRule, GoldRows, Pass, PassTable
from mqreplay.engines.rows import CountedRows
from mqreplay.engines.shards import Shard
from mqreplay.evidence.arrays.distinct import distinct_cases
from mqreplay.lake.row_filter import Days
from mqreplay.replay.queue_tables import PULL_ROUTES, QUEUE_BUCKET

DAY = dt.date(2026, 11, 21)
COUNTS = pa.schema({"pulls": pa.int64()})
KILLS = "MQREPLAY_TEST_KILLS"  # the variable with the path of the file whose finder kills its executor
QUEUE_COLUMNS = ["broker_name", "topic", "queue_id"]


@dataclass(frozen=True)
class Counted:
    """The pulls of each queue of a task, the columns of a pull, its routes of the day before, and a whole table."""

    queues: pl.DataFrame
    columns: pl.DataFrame
    before: pl.DataFrame
    tasks: pl.DataFrame


def count_pulls(source: CountedRows, shard: Shard, factor: int, gold: GoldRows) -> Asked:
    """Count the pulls by queue. The cases are the distinct counts."""
    of_day = Days(DAY, DAY)
    pulls = source.read("silver.pull", of_day, pl.lit(True), shard)
    queues = pulls.group_by(QUEUE_COLUMNS).agg(pl.len().cast(pl.Int64).alias("pulls"))
    before = source.read("gold.pull_route", Days(last=DAY - dt.timedelta(days=1)), pl.lit(True), shard)
    stats = source.read("silver.topic_stats", of_day, pl.lit(True))
    tasks = pl.DataFrame({"process": [os.getpid()], "queues": [len(queues)], "stats": [len(stats)]})
    columns = pl.DataFrame({"name": pulls.columns})
    cases, case_of = distinct_cases(queues.select("pulls"))
    numbered = queues.drop("pulls").with_columns(case=pl.Series(case_of))
    return Asked([cases], Counted(numbered, columns, before.select(QUEUE_COLUMNS), tasks))


def count_pulls_once_killed(source: CountedRows, shard: Shard, factor: int, gold: GoldRows) -> Asked:
    """As count_pulls; the first task kills its executor."""
    try:
        Path(os.environ[KILLS]).unlink()
    except FileNotFoundError:
        return count_pulls(source, shard, factor, gold)
    daemon = Path(f"/proc/{os.getppid()}/stat").read_text(encoding="utf-8")
    os.kill(int(daemon.rpartition(")")[2].split()[1]), signal.SIGKILL)
    time.sleep(60)
    raise AssertionError("the executor is alive")


def times(cases: pl.DataFrame, factor: int) -> pl.DataFrame:
    """Return the numbers of pulls times the factor."""
    return cases.select(pl.col("pulls") * factor)


def same_factor(factor: int) -> int:
    """Return the input of the pass: the setting of the rule."""
    return factor


def finish_count(counted: Counted, answers: Sequence[pl.DataFrame], factor: int, gold: GoldRows) -> Counted:
    """Return the pulls times the factor, and add a row of gold.queue_progress for each queue."""
    queues = counted.queues.hstack(answers[0][counted.queues["case"]]).drop("case")
    gold.add("gold.queue_progress", progress(queues))
    return replace(counted, queues=queues)


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
    (CaseRule(times, same_factor, COUNTS, COUNTS),),
    finish_count,
)
ONCE_KILLED = replace(COUNT_PASS, function=count_pulls_once_killed)
