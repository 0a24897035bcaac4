"""Findings that `nightly --watch` reports, beside those of nightly runs."""

from __future__ import annotations

import polars as pl

from mqreplay.lake.row_filter import RowFilter
from mqreplay.lake.table_files import polars_schema
from mqreplay.lake.warehouse import Warehouse
from mqreplay.night.open_findings import TABLE

FINDING = "gold.finding"
# What watch knows beside the columns of gold.finding; null for a finding that watch does not report.
OPEN = ("open_since", "last_seen_ts", "undetermined_since")
WATCHED = (*OPEN, "first_seen_ts", "closed_ts", "closed_reason")
ID = ("cluster", "finding_id")


def watched_findings(warehouse: Warehouse, rows: RowFilter | None = None) -> pl.LazyFrame:
    """Return the rows of gold.open_finding, open or closed: gold.finding's columns, then WATCHED.

    ``day`` and ``follows_from`` are null: no nightly run has judged them. ``to_ts`` is the last evidence.
    """
    watched = warehouse.read(TABLE, rows).with_columns(
        pl.col("opened_ts").alias("from_ts"),
        pl.col("last_seen_ts").alias("to_ts"),
        pl.col("opened_ts").alias("open_since"),
    )
    names = set(watched.collect_schema().names())
    columns = polars_schema(warehouse.contracts[FINDING].arrow_schema)
    shaped = [(pl.col(name) if name in names else pl.lit(None)).cast(of).alias(name) for name, of in columns.items()]
    return watched.select(*shaped, *WATCHED)


def all_findings(warehouse: Warehouse, rows: RowFilter | None = None) -> pl.LazyFrame:
    """Return the findings of nightly runs and those that are open: gold.finding's columns, then OPEN.

    A finding that both have is the row of the nightly run, with OPEN of the other. Closed ones are left out: they
    are in gold.finding after the nightly run.
    """
    is_open = watched_findings(warehouse, rows).filter(pl.col("closed_ts").is_null())
    judged = warehouse.read(FINDING, rows)
    both = judged.join(is_open.select(*ID, *OPEN), on=ID, how="left")
    alone = is_open.join(judged.select(ID), on=ID, how="anti").select(both.collect_schema().names())
    return pl.concat([both, alone])
