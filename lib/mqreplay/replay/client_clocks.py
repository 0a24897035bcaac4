"""Clients whose clock is off: their words carry other instants than what the brokers' files show.

A commit is in the master's consumerOffset.json with its next write (every 5 s) and in the next copy of it. A client
whose commits stand in copies taken long before, or only long after, tells a wrong time; brokers and name servers are
told by the recorder's clock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import groupby

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from mqreplay.replay.clock_stretches import LEAST, WRITE_MS, Words, stretches

__all__ = ["Row", "by_recorders_clock", "client_clocks", "clocks_frame"]

SCHEMA = (
    "client_id STRING, said_until_ms BIGINT, shown_from_ms BIGINT, shown_until_ms BIGINT, skew_ms BIGINT, "
    "matches BIGINT"
)


def client_clocks(clocks: DataFrame, skew_s: int) -> DataFrame:
    """Rows of SCHEMA: of each client whose clock was ever off by more than ``skew_s`` seconds, all its stretches.

    clock_stretches.Stretch has the meaning; ``clocks`` is by_queue/clocks.py's frame.
    """
    most_ms = skew_s * 1000
    # A median of LEAST words or more is off only where half of them are. Most clients are right, and go no further.
    off = F.count_if(F.abs(F.col("off_ms") + WRITE_MS) > most_ms)
    suspects = clocks.groupBy("client_id").agg(off.alias("n")).where(f"n > {LEAST // 2}").select("client_id")
    words = clocks.join(suspects, "client_id", "left_semi")
    return words.groupBy("client_id").applyInArrow(_finder(most_ms), SCHEMA)


def _finder(most_ms: int) -> Callable[[pa.Table], pa.Table]:
    schema = to_arrow_schema(StructType.fromDDL(SCHEMA))

    def find(rows: pa.Table) -> pa.Table:
        said, shown, off, unsure = (rows[name].to_numpy() for name in ("said_ms", "shown_ms", "off_ms", "unsure_ms"))
        client = rows["client_id"][0].as_py()
        found = stretches(Words(said, shown, off, unsure), most_ms)
        return pa.Table.from_pylist([{"client_id": client} | vars(one) for one in found], schema=schema)

    return find


def clocks_frame(spark: SparkSession, found: Iterable[Row], cluster: str) -> DataFrame:
    """Collected rows of `client_clocks` as a frame again, with their cluster."""
    return spark.createDataFrame(list(found), SCHEMA).withColumn("cluster", F.lit(cluster))


def by_recorders_clock(frame: DataFrame, found: Iterable[Row], *instants: str) -> DataFrame:
    """The frame with the instants of those clients put right; ``found`` are client_clocks' rows, one at least, few.

    By the first of the instants a row is of a stretch of its client's.
    """
    by_client = groupby(found, key=lambda row: row.client_id)
    pairs = [(F.lit(client), F.array(*map(_stretch, rows))) for client, rows in by_client]
    table = F.create_map(*[each for pair in pairs for each in pair])
    said = F.unix_millis(F.col(instants[0]))
    of_row = F.filter(table[F.col("client_id")], lambda s: s["until_ms"].isNull() | (said < s["until_ms"]))
    off = F.coalesce(F.get(of_row, F.lit(0))["skew_ms"], F.lit(0))
    return frame.withColumns({name: _back(F.col(name), off) for name in instants})


def _stretch(row: Row) -> Column:
    return F.struct(
        F.lit(row.said_until_ms).cast("bigint").alias("until_ms"), F.lit(row.skew_ms).cast("bigint").alias("skew_ms")
    )


def _back(ts: Column, off: Column) -> Column:
    return F.timestamp_millis(F.unix_millis(ts) - off)
