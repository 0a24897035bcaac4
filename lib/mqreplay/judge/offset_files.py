"""Which copies in silver.snapshot hold the offsets of a broker."""

from __future__ import annotations

import polars as pl

from mqreplay.decode.consumer_offset import FILE_NAMES


def is_offset_file() -> pl.Expr:
    """Return whether ``file_name`` is a broker's offset file, its .bak, or its polls (consumerOffset.jsonl.gz)."""
    names = (pl.col("file_name").str.starts_with(name) for name in FILE_NAMES)
    return pl.any_horizontal(*names) & pl.col("broker_id").is_not_null()
