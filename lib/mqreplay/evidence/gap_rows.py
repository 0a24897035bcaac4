"""Rows of gold.replay_gap before they are merged: decisions that lack evidence."""

from __future__ import annotations

import polars as pl

from mqreplay.evidence.intervals import INSTANT

GAP: dict[str, pl.DataType] = {
    "day": pl.Date(),
    "decision": pl.String(),
    "evidence": pl.String(),
    "consumer_group": pl.String(),
    "topic": pl.String(),
    "broker_name": pl.String(),
    "from_ts": INSTANT,
    "to_ts": INSTANT,
    "decisions": pl.Int64(),
    "reason": pl.String(),
}


def gap_rows(frame: pl.DataFrame) -> pl.DataFrame:
    """Return a frame's columns of GAP; those that it lacks are null."""
    return frame.select(
        (pl.col(name) if name in frame.columns else pl.lit(None)).cast(kind).alias(name) for name, kind in GAP.items()
    )
