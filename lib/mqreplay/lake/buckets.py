"""Buckets of rows by a key, such as a queue: files are sorted by bucket, so that a task reads only some rows.

The bucket is a column of the Parquet files but not of the table, so other readers of the table do not see it. Files
without it, as OPTIMIZE writes them, are read completely.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable

import polars as pl

BUCKETS = 4096
COLUMN = "_bucket"
SEPARATOR = "\x1f"  # between the parts of a key as text
Key = tuple[tuple[str, ...], ...]  # columns of each part: the first one that is not null counts


def key_of(texts: Iterable[str]) -> Key:
    """Return a key as contracts write it: a column for each part, or several with | between them."""
    return tuple(tuple(text.split("|")) for text in texts)


def buckets(rows: pl.DataFrame, key: Key) -> pl.Series:
    """Return the bucket of each row, from 0: the CRC-32 of its key as text; the same on every machine."""
    parts = [pl.coalesce(names).cast(pl.String).fill_null("") for names in key]
    text = rows.select(pl.concat_str(parts, separator=SEPARATOR).alias("key"))
    distinct = text.unique()
    numbers = [zlib.crc32(value.encode()) % BUCKETS for value in distinct["key"].to_list()]
    known = distinct.with_columns(pl.Series(COLUMN, numbers, pl.Int32))
    return text.join(known, on="key", how="left", maintain_order="left")[COLUMN]


def columns_of(key: Key) -> list[str]:
    """Return all columns in the key."""
    return [name for names in key for name in names]
