"""A day's rows dealt into shards of whole queues: RocketMQ decides by queue, so a shard is judged by itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

BUCKETS = 4096  # a shard is some of them; a queue is in one
SHARD_ROWS = 400_000  # rows of pull and the like: some 500 MB of a worker's memory while they are judged

Counts = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Shard:
    """Whole queues: those whose bucket is one of these. ``number`` is its place among the day's shards."""

    number: int
    buckets: tuple[int, ...]

    def has(self, bucket: pl.Expr) -> pl.Expr:
        """Whether a row is of the shard, by its bucket."""
        return pl.lit(True) if len(self.buckets) == BUCKETS else bucket.is_in(list(self.buckets))


def queue_bucket(topic: str | pl.Expr = "topic") -> pl.Expr:
    """Return the bucket of each row's queue; the same in all processes of a run."""
    name = pl.col(topic) if isinstance(topic, str) else topic
    mixed = pl.col("broker_name").hash(1) + name.hash(2) + pl.col("queue_id").hash(3)
    return (mixed % BUCKETS).cast(pl.Int32)


def name_bucket(name: str | pl.Expr) -> pl.Expr:
    """Return the bucket of each row by a name alone, such as its consumer group."""
    column = pl.col(name) if isinstance(name, str) else name
    return (column.hash(1) % BUCKETS).cast(pl.Int32)


def count_buckets(bucket: pl.Series) -> Counts:
    """Return how many rows each bucket has."""
    return np.bincount(bucket.drop_nulls().to_numpy(), minlength=BUCKETS).astype(np.int64)


def deal(counts: Counts, most_rows: int = SHARD_ROWS) -> list[Shard]:
    """Return shards of about equal size, as few as hold ``most_rows`` rows each; at least one.

    The largest buckets are dealt first, each to the shard that has fewest rows: a queue of more rows than that has a
    shard to itself.
    """
    number = max(1, -(-int(counts.sum()) // most_rows))
    rows = np.zeros(number, np.int64)
    dealt: list[list[int]] = [[] for _ in range(number)]
    for bucket in np.argsort(-counts, kind="stable").tolist():
        least = int(rows.argmin()) if counts[bucket] else bucket % number
        dealt[least].append(bucket)
        rows[least] += counts[bucket]
    return [Shard(place, tuple(sorted(buckets))) for place, buckets in enumerate(dealt)]


def deal_evenly(rows: int, most_rows: int = SHARD_ROWS) -> list[Shard]:
    """Return shards for so many rows whose buckets are not counted, since they are about equal."""
    return deal(np.full(BUCKETS, -(-rows // BUCKETS), np.int64), most_rows)


def total(counts: Sequence[Counts]) -> Counts:
    """Return the sum of several counts; none are no rows."""
    return np.asarray(np.sum([np.zeros(BUCKETS, np.int64), *counts], axis=0), np.int64)
