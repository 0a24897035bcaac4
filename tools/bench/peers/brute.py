"""The same changes by brute force: every entry of every snapshot becomes a row, and a window finds those that moved."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import polars as pl

from .delta import write_file
from .offsets import NONE, Carry, Reader
from .recording import Source
from .snapshots import SourceRead, offset_change


class EveryEntry(Carry):
    """Reads each file in full, and keeps all of it."""

    def _same_places(self, snapshot: int, raw: np.ndarray) -> bool:
        return False

    def _compare(self, snapshot: int, entries: np.ndarray, values: np.ndarray) -> None:
        self.changes.add(snapshot, entries, np.full(len(entries), NONE), values)
        self._entries, self._values = entries, values


def read_all_entries(source: Source, cluster: str, table: str, scratch: str) -> SourceRead:
    """As read_changes, but for what it costs."""
    carry, reader, digests, entries, counters = EveryEntry(), Reader(), [], [], []
    for snapshot, path in enumerate(source.paths):
        raw = reader.read(path)
        digests.append(hashlib.sha256(raw).hexdigest()[:32])
        entries.append(carry.read(snapshot, raw))
        counters.append(carry.counter)
    rows = moved(carry, len(source.paths))
    keys = [(*key.decode("ascii").partition("@")[::2], queue) for key, queue in carry.keys]
    written = write_file(Path(table), offset_change(source, rows, keys, digests, cluster))
    numbers = f"{scratch}/{source.source_name}.npy"
    np.save(numbers, rows)
    changed = np.bincount(rows[0], minlength=len(source.moments)).tolist()
    place = (source.source_name, source.broker_name, source.broker_id, source.moments)
    return SourceRead(*place, written, keys, numbers, digests, entries, changed, counters)


def moved(carry: Carry, snapshots: int) -> np.ndarray:
    """Rows that differ from the snapshot before, by a window over all entries; what vanished is one more row."""
    made = carry.changes
    frame = pl.DataFrame({n: np.concatenate(getattr(made, n)) for n in ("snapshot", "entry", "new")})
    before = frame.with_columns(
        before=pl.col("snapshot").shift().over("entry"),
        previous=pl.col("new").shift().over("entry"),
        after=pl.col("snapshot").shift(-1).over("entry"),
    )
    went_on = pl.col("before") == pl.col("snapshot") - 1
    rows = before.filter(~went_on.fill_null(False) | (pl.col("previous") != pl.col("new"))).select(
        "snapshot", "entry", pl.when(went_on).then("previous").otherwise(NONE).fill_null(NONE).alias("previous"), "new"
    )
    last = before.filter(pl.col("after").fill_null(snapshots + 1) > pl.col("snapshot") + 1)
    gone = last.filter(pl.col("snapshot") < snapshots - 1).select(
        pl.col("snapshot") + 1, "entry", pl.col("new").alias("previous"), pl.lit(NONE).alias("new")
    )
    both = pl.concat([rows.cast(pl.Int64), gone.cast(pl.Int64)]).sort("snapshot", "entry")
    return np.ascontiguousarray(both.to_numpy().T)
