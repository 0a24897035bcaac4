"""Recordings of consumer offsets that were polled, made for tests, and what the tables hold of them."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import polars as pl

from mqreplay.engines.local import LocalEngine
from mqreplay.ingest.digests import KnownDigests
from mqreplay.ingest.listing import find_recordings
from mqreplay.ingest.run import ingest_recordings
from mqreplay.lake.warehouse import Warehouse
from mqreplay.settings import IngestSettings
from tests_shared import table_at

START = 1_795_305_300_000  # 2026-11-21T23:55:00Z
NAME = "consumerOffset.jsonl.gz"
OFFSETS = ("topic", "consumer_group", "queue_id", "previous_offset", "new_offset", "from_ts", "to_ts")
Table = dict[str, dict[str, int]]


def whole(ts: int, table: Table) -> bytes:
    return json.dumps({"ts": ts, "offsetTable": table}).encode()


def change(ts: int, changed: Table | None = None, removed: dict[str, list[int]] | None = None) -> bytes:
    given = {"changed": changed, "removed": removed}
    return json.dumps({"ts": ts} | {name: value for name, value in given.items() if value}).encode()


def members(lines: Iterable[bytes]) -> bytes:
    """A gzip member for each line, as the recorder appends them."""
    return b"".join(gzip.compress(line + b"\n", mtime=0) for line in lines)


def polled(recording: Path, lines: list[bytes], first: int = START, source: str = "b-0") -> Path:
    """A file of polled offsets in a recording."""
    path = recording / "snapshots" / source / str(first) / NAME
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(members(lines))
    return path


def copied(recording: Path, ts: int, table: Table, name: str = "consumerOffset.json") -> Path:
    """A copy of a broker's file in a recording."""
    path = recording / "snapshots" / "b-0" / str(ts) / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"offsetTable": table}))
    return path


def read(warehouse: Path, *recordings: Path, settings: IngestSettings | None = None) -> None:
    """Ingest the recordings as they are now."""
    digested = KnownDigests(str(warehouse)).of_recordings(find_recordings([str(folder) for folder in recordings]))
    with LocalEngine(warehouse, processes=1) as engine:
        ingest_recordings(
            Warehouse(str(warehouse)), engine, digested, "c", settings or IngestSettings(), lambda _: None
        )


def moves(warehouse: Path) -> list[tuple[Any, ...]]:
    """The offsets that moved: topic, group, queue, previous, new, from and to in ms since START; in order."""
    rows = table_at(warehouse, "silver.offset_change").with_columns(
        *((pl.col(name).dt.epoch("ms") - START).alias(name) for name in ("from_ts", "to_ts"))
    )
    return sorted(rows.select(OFFSETS).rows(), key=lambda row: (row[-1], row[:3]))


def snapshots(warehouse: Path) -> list[tuple[int, str, int, int]]:
    """The tables that were read: ms since START, file name, entries, changed."""
    rows = table_at(warehouse, "silver.snapshot").with_columns(pl.col("ts").dt.epoch("ms") - START)
    return rows.select("ts", "file_name", "entries", "changed").sort("ts").rows()


def files(warehouse: Path) -> dict[str, tuple[str, int, int, int, int]]:
    """By the path within snapshots/: status, rows in, out, quarantined and duplicate."""
    counts = "rows_in", "rows_out", "rows_quarantined", "rows_duplicate"
    rows = table_at(warehouse, "bronze.source_file").select("path", "status", *counts).rows()
    return {path.split("/", 2)[2]: tuple(row) for path, *row in rows}  # type: ignore[misc]


def refused(warehouse: Path) -> list[tuple[int, str, str]]:
    """Line number, code and reason of what was refused."""
    return table_at(warehouse, "bronze.quarantine").sort("line_number").select("line_number", "code", "reason").rows()


def everything(warehouse: Path) -> dict[str, list[str]]:
    """The rows of all tables that snapshots are read into."""
    names = ("silver.offset_change", "silver.snapshot", "bronze.source_file", "bronze.quarantine")
    return {name: sorted(map(str, table_at(warehouse, name).to_dicts())) for name in names}
