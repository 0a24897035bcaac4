"""gold.judgement: the number of decisions of each table by judgement and reason."""

from __future__ import annotations

import polars as pl

KEY = ("day", "decision", "judgement", "reason")


def judgements_of_shard(decision: str, rows: pl.DataFrame) -> pl.DataFrame:
    """Return the number of rows of the gold table ``decision`` by judgement and reason.

    Columns: day, decision, judgement, reason, decisions.

    A number in a reason becomes N: of millions of reasons that differ only in numbers, hundreds remain. ``rows`` are
    any part of the table.
    """
    counted = rows.group_by("day", "judgement", pl.col("reason").str.replace_all("-?[0-9]+", "N")).agg(
        pl.len().cast(pl.Int64).alias("decisions")
    )
    return counted.select("day", pl.lit(decision).alias("decision"), "judgement", "reason", "decisions")


def judgement(counts: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of gold.judgement: the sums of the counts of all shards and tables."""
    return counts.group_by(KEY).agg(pl.col("decisions").sum())
