"""A finding that began before the lookback and goes on keeps the id that the day before gave it."""

from __future__ import annotations

import polars as pl

from mqreplay.findings.shape import PLACE, with_values

SAME = ("kind", *PLACE)


def going_on(found: pl.DataFrame, before: pl.DataFrame) -> pl.DataFrame:
    """Return the findings of a day; one that begins within one of the day before takes its id and its beginning.

    ``before`` has gold.finding's rows of the day before. Both days read the lookback: findings of one kind and place
    that overlap in time are one finding.
    """
    earlier = before.select(
        *SAME,
        pl.col("finding_id").alias("before_id"),
        pl.col("from_ts").alias("before_from"),
        pl.max_horizontal("from_ts", "to_ts").alias("before_to"),
    )
    within = (pl.col("from_ts") > pl.col("before_from")) & (pl.col("from_ts") <= pl.col("before_to"))
    begun = found.select(*SAME, "finding_id", "from_ts")
    # Streamed: of one kind and place there may be thousands on both days, and nearly all pairs are not within.
    pairs = begun.lazy().join(earlier.lazy(), on=SAME, nulls_equal=True).filter(within).drop(*SAME)
    met = pairs.collect(engine="streaming")
    # One to one: each takes the latest that it may be, and of several that take the same only the first keeps it.
    of_found = met.sort("before_from", "before_id", descending=[True, False]).unique("finding_id", keep="first")
    once = of_found.sort("from_ts", "finding_id").unique("before_id", keep="first")
    known = found.join(once.select("finding_id", "before_id", "before_from"), on="finding_id", how="left")
    begun_before = known.with_columns(
        pl.col("before_from").alias("began_ts"),
        pl.coalesce("before_id", "finding_id").alias("finding_id"),
        pl.coalesce("before_from", "from_ts").alias("from_ts"),
    )
    return with_values(begun_before, ["began_ts"]).select(found.columns)
