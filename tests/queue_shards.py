"""Rows of a night in shards: each queue lies whole in one of them."""

from __future__ import annotations

import polars as pl


def queue_shards(rows: pl.DataFrame, shards: int) -> list[pl.DataFrame]:
    """The rows in so many frames, by the hash of their queue."""
    shard = rows.select(pl.struct("broker_name", "topic", "queue_id").hash() % shards).to_series()
    return [rows.filter(shard == number) for number in range(shards)]
