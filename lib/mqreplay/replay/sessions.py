"""Rows close in time, taken together: what one cause did."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F


def with_session(frame: DataFrame, by: list[str], from_ts: str, to_ts: str, gap_s: int) -> DataFrame:
    """Adds ``session``: within ``by``, rows whose spans are less than ``gap_s`` seconds apart share a number.

    A span is [from_ts, to_ts]; rows are taken by from_ts.
    """
    # The hash first: a sort then seldom compares the columns, of which the first is mostly the cluster.
    order = Window.partitionBy(F.xxhash64(*by), *by).orderBy(from_ts, to_ts)
    reached = F.max(to_ts).over(order.rowsBetween(Window.unboundedPreceding, -1))
    apart = F.unix_millis(from_ts) - F.unix_millis("_reached") > gap_s * 1000
    starts = F.when(F.col("_reached").isNull() | apart, 1).otherwise(0)
    numbered = frame.repartition(*by).withColumn("_reached", reached).withColumn("_starts", starts)
    return numbered.withColumn("session", F.sum("_starts").over(order.rowsBetween(Window.unboundedPreceding, 0))).drop(
        "_reached", "_starts"
    )
