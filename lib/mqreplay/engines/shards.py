"""Shards of a day's rows. A shard has whole queues: RocketMQ decides by queue, so each shard is judged separately."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import polars as pl

from mqreplay.lake.buckets import BUCKETS

SHARD_ROWS = 400_000  # rows of pull and the like: some 500 MB of a worker's memory while they are judged
LARGE_SHARD = 1.5  # of SHARD_ROWS: a shard with more rows is a single large queue

Counts = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Shard:
    """All rows with a bucket from ``low`` to ``high``: whole queues, because a queue is in one bucket.

    ``rows`` is their number as far as it is known. With a ``part``, the task does only this part of the pass's work.
    """

    low: int
    high: int
    rows: int = 0
    part: str = ""

    def does(self, part: str) -> bool:
        """Return whether a part of the work belongs to the shard's task."""
        return self.part in ("", part)

    def has(self, bucket: pl.Expr) -> pl.Expr:
        """Return which buckets belong to the shard."""
        return bucket.is_between(self.low, self.high)


ALL = Shard(0, BUCKETS - 1)


def name_bucket(name: str | pl.Expr) -> pl.Expr:
    """Return the bucket of each row by a name alone, such as its consumer group."""
    column = pl.col(name) if isinstance(name, str) else name
    return (column.hash(1) % BUCKETS).cast(pl.Int32)


def count_buckets(bucket: pl.Series) -> Counts:
    """Return the number of rows in each bucket."""
    return np.bincount(bucket.drop_nulls().to_numpy(), minlength=BUCKETS).astype(np.int64)


def deal(counts: Counts, most_rows: int = SHARD_ROWS) -> list[Shard]:
    """Return shards of about equal size with at most ``most_rows`` rows each, except for a larger bucket.

    Buckets of a shard are consecutive, as in files. There is at least one shard.
    """
    number = max(1, -(-int(counts.sum()) // most_rows))
    wanted = counts.sum() / number
    ends, rows = [], 0
    for bucket, count in enumerate(counts.tolist()):
        # A shard ends before a bucket that would increase its distance from the target size.
        if rows and rows + count - wanted > wanted - rows:
            ends.append(bucket)
            rows = 0
        rows += count
    bounds = [0, *ends, BUCKETS]
    return [Shard(low, high - 1, int(counts[low:high].sum())) for low, high in pairwise(bounds)]


def divided(shards: Sequence[Shard], parts: Collection[str], most_rows: int = SHARD_ROWS) -> list[Shard]:
    """Return the shards; those of a queue that is too large for one task have a task for each part of the work."""
    return [
        replace(shard, part=part)
        for shard in shards
        for part in (parts if shard.rows > LARGE_SHARD * most_rows else [""])
    ]


def deal_evenly(rows: int, most_rows: int = SHARD_ROWS) -> list[Shard]:
    """Return shards for this number of rows, assuming equal buckets."""
    return deal(np.full(BUCKETS, -(-rows // BUCKETS), np.int64), most_rows)


def total(counts: Sequence[Counts]) -> Counts:
    """Return the sum of several counts; no counts are no rows."""
    return np.asarray(np.sum([np.zeros(BUCKETS, np.int64), *counts], axis=0), np.int64)
