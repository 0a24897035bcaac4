"""gold.judgement: the number of decisions of each table by judgement and reason; and the gaps of undetermined ones."""

from __future__ import annotations

import polars as pl

from mqreplay.decisions.decision import Decision
from mqreplay.evidence.gap_rows import GAP
from mqreplay.words.keys import GROUP_TOPIC_BROKER

JUDGEMENT_KEY = ("day", "decision", "judgement", "reason")


def judgements_of_shard(decision: Decision, rows: pl.DataFrame) -> pl.DataFrame:
    """Return the number of rows of the decision's table by judgement and reason.

    Columns: day, decision, judgement, reason, decisions.

    A number in a reason becomes N: of millions of reasons that differ only in numbers, hundreds remain. ``rows`` are
    any part of the table.
    """
    counted = rows.group_by("day", "judgement", pl.col("reason").str.replace_all("-?[0-9]+", "N")).agg(
        pl.len().cast(pl.Int64).alias("decisions")
    )
    return counted.select("day", pl.lit(decision.table).alias("decision"), "judgement", "reason", "decisions")


def undetermined_of_shard(decision: Decision, rows: pl.DataFrame) -> pl.DataFrame:
    """Return the gaps (columns of GAP) of undetermined ``rows``, any part of the table of the decision.

    A gap is for a group, topic, broker name and reason, with numbers replaced by N.
    """
    open_rows = rows.filter(pl.col("judgement") == "undetermined")
    unknown = [pl.lit(None, pl.String).alias(name) for name in GROUP_TOPIC_BROKER if name not in rows.columns]
    open_rows = open_rows.with_columns(unknown)
    gaps = open_rows.group_by("day", *GROUP_TOPIC_BROKER, pl.col("reason").str.replace_all("[0-9]+", "N")).agg(
        pl.col(decision.instant).min().alias("from_ts"),
        pl.col(decision.instant).max().alias("to_ts"),
        pl.len().alias("decisions"),
    )
    named = gaps.with_columns(pl.lit(decision.table).alias("decision"), pl.lit("undetermined").alias("evidence"))
    return named.select([pl.col(name).cast(kind) for name, kind in GAP.items()])


def judgement(counts: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of gold.judgement: the sums of the counts of all shards and tables."""
    return counts.group_by(JUDGEMENT_KEY).agg(pl.col("decisions").sum())
