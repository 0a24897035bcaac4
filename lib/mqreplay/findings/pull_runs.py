"""Runs of pulls: what a shard keeps of the pulls that a finding counts, and how the runs of all shards are joined."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from mqreplay.evidence.intervals import with_session
from mqreplay.findings.shape import EVIDENCE_ROWS, evidence_rows, record_key


def pull_runs(
    pulls: pl.DataFrame, by: Sequence[str], columns: Mapping[str, str], gap_s: int, *more: pl.Expr
) -> pl.DataFrame:
    """Return runs of pulls of one ``by``, each at most ``gap_s`` seconds after the one before.

    Columns: ``by``, from_ts, to_ts, pulls, the least and the most of each of ``columns``, which are called by what they
    map to (queue_id_least, ...), record_ids, the first EVIDENCE_ROWS of them, and ``more``, other aggregates.
    """
    runs = with_session(pulls, by, "request_ts", "request_ts", gap_s).group_by(*by, "session")
    return runs.agg(
        pl.col("request_ts").min().alias("from_ts"),
        pl.col("request_ts").max().alias("to_ts"),
        pl.len().cast(pl.Int64).alias("pulls"),
        *[pl.col(column).min().alias(f"{name}_least") for column, name in columns.items()],
        *[pl.col(column).max().alias(f"{name}_most") for column, name in columns.items()],
        pl.col("record_id").unique().sort().head(EVIDENCE_ROWS).alias("record_ids"),
        *more,
    ).drop("session")


def joined_runs(
    runs: pl.DataFrame, by: Sequence[str], names: Sequence[str], gap_s: int, table: str, *more: pl.Expr
) -> pl.DataFrame:
    """Join the runs of all shards; a column of ``names`` has a value where all pulls share it.

    ``table`` holds the pulls, for the evidence. ``more`` are other aggregates.
    """
    together = with_session(runs, by, "from_ts", "to_ts", gap_s)
    keys = record_key(pl.col("record_ids").explode()).unique().sort().implode()
    return together.group_by(*by, "session").agg(
        pl.col("from_ts").min(),
        pl.col("to_ts").max(),
        pl.col("pulls").sum(),
        *[_shared(name) for name in names],
        evidence_rows(table, keys),
        pl.col("pulls").sum().alias("evidence_count"),
        *more,
    )


def _shared(name: str) -> pl.Expr:
    least, most = pl.col(f"{name}_least").min(), pl.col(f"{name}_most").max()
    return pl.when(least == most).then(most).alias(name)
