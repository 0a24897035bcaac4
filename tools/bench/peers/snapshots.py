"""A source's snapshots into silver.offset_change, a file of the table for each source."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from .delta import Written, coded, constant, days, instants, write_file
from .offsets import NONE, Carry, read_source
from .recording import Source


@dataclass(frozen=True)
class SourceRead:
    """What a source gave: its table file, its keys (topic, group, queue) and where its changes lie as numbers."""

    source_name: str
    broker_name: str
    broker_id: int
    moments: list[int]
    written: Written
    keys: list[tuple[str, str, int]]
    numbers: str
    digests: list[str]
    entries: list[int]
    changed: list[int]
    counters: list[int | None]

    def rows(self) -> np.ndarray:
        """Snapshot, entry, offset before and after (NONE: none) of every change, in time order."""
        return np.load(self.numbers)


def read_changes(source: Source, cluster: str, table: str, scratch: str) -> SourceRead:
    """Reads a source, carrying the file before, and writes what changed."""
    carry, digests, entries, counters = read_source(source)
    rows, keys = changes_of(carry)
    written = write_file(Path(table), offset_change(source, rows, keys, digests, cluster))
    numbers = f"{scratch}/{source.source_name}.npy"
    np.save(numbers, rows)
    changed = np.bincount(rows[0], minlength=len(source.moments)).tolist()
    return SourceRead(
        source.source_name,
        source.broker_name,
        source.broker_id,
        source.moments,
        written,
        keys,
        numbers,
        digests,
        entries,
        changed,
        counters,
    )


def changes_of(carry: Carry) -> tuple[np.ndarray, list[tuple[str, str, int]]]:
    """Its changes as rows of numbers; and (topic, group, queue) of its entries."""
    made = carry.changes
    rows = np.stack([np.concatenate(c) for c in (made.snapshot, made.entry, made.previous, made.new)]).astype(np.int64)
    keys = []
    for key, queue in carry.keys:
        topic, _, group = key.decode("ascii").partition("@")
        keys.append((topic, group, queue))
    return rows, keys


def offset_change(
    source: Source, rows: np.ndarray, keys: list[tuple[str, str, int]], digests: list[str], cluster: str
) -> pa.Table:
    """silver.offset_change of one source."""
    snapshot, entry, previous, new = rows
    moments = np.array(source.moments, np.int64)
    to_ts, from_ts = moments[snapshot], np.where(snapshot > 0, moments[snapshot - 1], -1)
    count = len(snapshot)
    topics, topic_of = _distinct([key[0] for key in keys])
    groups, group_of = _distinct([key[1] for key in keys])
    return pa.table(
        {
            "cluster": constant(cluster, count),
            "day": days(to_ts),
            "source_name": constant(source.source_name, count),
            "broker_name": constant(source.broker_name, count),
            "broker_id": pa.array(np.full(count, source.broker_id, np.int64)),
            "client_id": pa.nulls(count, pa.string()),
            "topic": coded(topic_of[entry], topics),
            "consumer_group": coded(group_of[entry], groups),
            "queue_id": pa.array(np.array([key[2] for key in keys], np.int32)[entry]),
            "previous_offset": pa.array(previous, mask=previous == NONE),
            "new_offset": pa.array(new, mask=new == NONE),
            "from_ts": instants(from_ts),
            "to_ts": instants(to_ts),
            "source_digest": coded(snapshot, digests),
        }
    )


def _distinct(words: list[str]) -> tuple[list[str], np.ndarray]:
    codes: dict[str, int] = {}
    found = np.array([codes.setdefault(word, len(codes)) for word in words], np.int32)
    return list(codes), found


def snapshot_rows(reads: list[SourceRead], cluster: str) -> pa.Table:
    """silver.snapshot."""
    names = ("source", "name", "id", "ts", "entries", "changed", "counter", "digest")
    columns: dict[str, list] = {name: [] for name in names}
    for read in reads:
        count = len(read.moments)
        columns["source"] += [read.source_name] * count
        columns["name"] += [read.broker_name] * count
        columns["id"] += [read.broker_id] * count
        columns["ts"] += read.moments
        columns["entries"] += read.entries
        columns["changed"] += read.changed
        columns["counter"] += read.counters
        columns["digest"] += read.digests
    ts = np.array(columns["ts"], np.int64)
    return pa.table(
        {
            "cluster": constant(cluster, len(ts)),
            "day": days(ts),
            "source_name": pa.array(columns["source"]),
            "broker_name": pa.array(columns["name"]),
            "broker_id": pa.array(columns["id"], pa.int64()),
            "client_id": pa.nulls(len(ts), pa.string()),
            "ts": instants(ts),
            "file_name": constant("consumerOffset.json", len(ts)),
            "entries": pa.array(columns["entries"], pa.int64()),
            "changed": pa.array(columns["changed"], pa.int64()),
            "data_version_counter": pa.array(columns["counter"], pa.int64()),
            "source_digest": pa.array(columns["digest"]),
        }
    )
