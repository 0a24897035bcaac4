"""Descriptions that hold until the next one: joined to moments by a broadcast, since they are few."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F


def join_span(
    left: DataFrame, at: str, described: DataFrame, ts: str, by: list[str], value: Column, out: str
) -> DataFrame:
    """``left`` with column ``out``: ``value`` of the last ``described`` row of the same ``by`` at or before ``at``.

    Before the first description, that one: what is described was there before somebody looked. Null where none is.
    """
    order = Window.partitionBy(*by).orderBy(ts)
    spans = described.select(
        *by,
        F.when(F.lag(ts).over(order).isNotNull(), F.col(ts)).alias("_from"),
        F.lead(ts).over(order).alias("_to"),
        value.alias(out),
    )
    moment = F.col(f"l.{at}")
    within = (moment >= F.coalesce("_from", moment)) & (F.col("_to").isNull() | (moment < F.col("_to")))
    keys = [F.col(f"l.{name}") == F.col(f"s.{name}") for name in by]
    joined = left.alias("l").join(F.broadcast(spans).alias("s"), [*keys, within], "left")
    return joined.select("l.*", f"s.{out}")
