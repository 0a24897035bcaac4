"""gold.judgement: how often each table's decisions came to which judgement, and why: what a page begins with."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F


def judgements(judged: Mapping[str, DataFrame]) -> DataFrame:
    """One row a decision, day, judgement and reason without its numbers.

    ``judged`` maps a gold table's name to its frame.
    """
    return reduce(DataFrame.unionByName, [_counted(name, frame) for name, frame in judged.items()])


def _counted(name: str, frame: DataFrame) -> DataFrame:
    # Of the millions of reasons that differ in numbers only, hundreds are left.
    reason = F.regexp_replace("reason", "-?[0-9]+", "N").alias("reason")
    return (
        frame.groupBy("cluster", "day", F.lit(name).alias("decision"), "judgement", reason)
        .agg(F.count(F.lit(1)).alias("decisions"))
        .select("cluster", "day", "decision", "judgement", "reason", "decisions")
    )
