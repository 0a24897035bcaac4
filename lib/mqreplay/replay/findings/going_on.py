"""What began before the lookback and goes on: the finding that the day before told of, and no other."""

from __future__ import annotations

from functools import reduce

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from mqreplay.replay.findings.shape import PLACE

SAME = ("cluster", "kind", *PLACE)


def going_on(found: DataFrame, before: DataFrame) -> DataFrame:
    """The findings of a day (shape.py); those that begin within one of the day before take its id and its beginning.

    ``before`` are gold.finding's rows of that day. Both days saw the lookback: of the same kind and place, and at the
    same time, they are one. ``found`` must be kept (persisted): it is read twice.
    """
    told = before.select(*[F.col(name).alias(f"b_{name}") for name in (*SAME, "finding_id", "from_ts", "to_ts")])
    same = reduce(Column.__and__, [F.col(name).eqNullSafe(F.col(f"b_{name}")) for name in SAME])
    until = F.greatest(F.col("b_from_ts"), F.coalesce("b_to_ts", "b_from_ts"))
    within = (F.col("from_ts") > F.col("b_from_ts")) & (F.col("from_ts") <= until)
    pairs = found.join(F.broadcast(told), same & within).select("finding_id", "from_ts", "b_finding_id", "b_from_ts")
    # One to one: the first within it, and the last that it may be.
    of_found = Window.partitionBy("finding_id").orderBy(F.col("b_from_ts").desc(), "b_finding_id")
    of_before = Window.partitionBy("b_finding_id").orderBy("from_ts", "finding_id")
    once = pairs.withColumn("n", F.row_number().over(of_found)).where("n = 1")
    once = once.withColumn("n", F.row_number().over(of_before)).where("n = 1")
    known = found.join(F.broadcast(once.select("finding_id", "b_finding_id", "b_from_ts")), "finding_id", "left")
    since = F.date_format("b_from_ts", "yyyy-MM-dd HH:mm:ss")
    text = F.concat("summary", F.lit(" It goes on since "), since, F.lit(" UTC; the day before tells more."))
    changed = {
        "summary": F.coalesce(text, F.col("summary")),
        "finding_id": F.coalesce("b_finding_id", "finding_id"),
        "from_ts": F.coalesce("b_from_ts", "from_ts"),
    }
    return known.withColumns(changed).select(*found.columns)
