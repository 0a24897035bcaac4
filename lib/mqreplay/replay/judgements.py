"""gold.judgement: how often each table's decisions came to which judgement, and why: what a page begins with."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

DIGIT = "\x01"  # stands for any digit; no reason holds it


def judgements(judged: Mapping[str, DataFrame]) -> DataFrame:
    """One row a decision, day, judgement and reason without its numbers.

    ``judged`` maps a gold table's name to its frame.
    """
    return reduce(DataFrame.unionByName, [_counted(name, frame) for name, frame in judged.items()])


def _counted(name: str, frame: DataFrame) -> DataFrame:
    # Digits first, which is cheap: of the millions of reasons that differ in numbers only, hundreds are left.
    plain = F.translate("reason", "0123456789", DIGIT * 10).alias("reason")
    few = frame.groupBy("cluster", "day", "judgement", plain).agg(F.count(F.lit(1)).alias("decisions"))
    reason = F.regexp_replace("reason", f"-?{DIGIT}+", "N").alias("reason")
    return (
        few.groupBy("cluster", "day", F.lit(name).alias("decision"), "judgement", reason)
        .agg(F.sum("decisions").alias("decisions"))
        .select("cluster", "day", "decision", "judgement", "reason", "decisions")
    )
