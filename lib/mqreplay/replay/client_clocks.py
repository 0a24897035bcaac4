"""Clients whose clock is off: their words carry other instants than what the brokers' files show.

A commit is in the master's consumerOffset.json with its next write (every 5 s) and in the next copy of it. A client
whose commits stand in copies taken long before, or only long after, tells a wrong time; brokers and name servers are
told by the recorder's clock.
"""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as F

__all__ = ["Row", "by_recorders_clock", "client_clocks", "skewed", "skewed_frame"]

WRITE_MS = 3_000  # from a commit to the copy that shows it, about: writes and copies are each 5 s apart
LEAST = 3  # commits that must agree


def client_clocks(clocks: DataFrame, cluster: str) -> DataFrame:
    """cluster, client_id, skew_ms (its clock less the recorder's), unsure_ms, matches: of every client seen to commit.

    The medians over its commits, of by_queue/clocks.py's frame.
    """
    return clocks.groupBy(F.lit(cluster).alias("cluster"), "client_id").agg(
        (_median("off_ms") + WRITE_MS).alias("skew_ms"),
        _median("unsure_ms").alias("unsure_ms"),
        F.sum("commits").alias("matches"),
    )


def _median(name: str) -> Column:
    return F.round(F.percentile(name, F.lit(0.5), F.col("commits"))).cast("bigint")


def skewed(clocks: DataFrame, skew_s: int) -> DataFrame:
    """Those off by more than ``skew_s`` seconds, and by more than copies that are far apart leave open."""
    off = F.abs("skew_ms") - F.col("unsure_ms") > skew_s * 1000
    return clocks.where(off & (F.col("matches") >= LEAST)).drop("unsure_ms")


def skewed_frame(spark: SparkSession, found: Iterable[Row]) -> DataFrame:
    """Collected rows of `skewed` as a frame again."""
    return spark.createDataFrame(list(found), "cluster STRING, client_id STRING, skew_ms BIGINT, matches BIGINT")


def by_recorders_clock(frame: DataFrame, found: Iterable[Row], *instants: str) -> DataFrame:
    """The frame with the instants of those clients put right; ``found`` are skewed's rows, one at least, few."""
    skew = {row.client_id: row.skew_ms for row in found}
    table = F.create_map(*[F.lit(each) for pair in skew.items() for each in pair])
    off = F.coalesce(table[F.col("client_id")], F.lit(0))
    return frame.withColumns({name: _back(F.col(name), off) for name in instants})


def _back(ts: Column, off: Column) -> Column:
    return F.timestamp_millis(F.unix_millis(ts) - off)
