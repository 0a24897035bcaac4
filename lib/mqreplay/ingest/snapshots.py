"""Tasks that read changes from snapshots: one for each piece of a source, starting from the state before it."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import polars as pl
import pyarrow as pa

from mqreplay.decode.recording.files import SNAPSHOT_KINDS, split_source
from mqreplay.ingest.diffs import Source
from mqreplay.ingest.entries import CONFIGS, KEY_MARK, SnapshotFile, payload
from mqreplay.ingest.lines import read_whole
from mqreplay.ingest.manifest import NewFile
from mqreplay.ingest.offset_changes import change_batches
from mqreplay.ingest.pieces import Piece, catch_up, pieces
from mqreplay.ingest.polled import read_source
from mqreplay.ingest.prefetch import Prefetch
from mqreplay.ingest.snapshot_rows import Row
from mqreplay.lake.files import is_remote
from mqreplay.settings import IngestSettings

PIECE_BYTES = 64_000_000  # bytes of snapshots in a piece: each piece decodes some files completely
# The state of a source: an offset, the configuration of a topic or group (payload), or the time of a last copy.
KNOWN = pl.Schema(
    {
        "source_name": pl.String(),
        "family": pl.String(),
        "topic": pl.String(),
        "consumer_group": pl.String(),
        "broker_name": pl.String(),
        "queue_id": pl.Int32(),
        "offset": pl.Int64(),
        "payload": pl.String(),
        "ts_ms": pl.Int64(),
    }
)
PieceKey = tuple[str, int]  # source, number
ORPHAN_KEYS = "orphan_keys"  # instead of a family: the topic is an invalid key that was reported


@dataclass(frozen=True)
class PieceTask:
    """A piece of a source to read, and the state before the source's files (shape KNOWN) if needed."""

    source_name: str
    piece: Piece
    known: pl.DataFrame | None


def cut(files: Iterable[NewFile], most_bytes: int = PIECE_BYTES) -> dict[PieceKey, Piece]:
    """Split the files of each source into pieces that are read in parallel."""
    by_source: dict[str, list[NewFile]] = {}
    for new in files:
        by_source.setdefault(str(new.file.source_name), []).append(new)
    made = {}
    for source, some in sorted(by_source.items()):
        # Two recordings may have the same path: the full path distinguishes them.
        sizes = {new.file.full_path: new.file.bytes for new in some}
        for number, piece in enumerate(pieces(map(_snapshot_file, some), sizes, most_bytes)):
            made[source, number] = piece
    return made


def _snapshot_file(new: NewFile) -> SnapshotFile:
    file = new.file
    return SnapshotFile(file.full_path, file.full_path, file.kind, file.file_name, file.ts_ms or 0, new.digest)


def uncut(cuts: dict[PieceKey, Piece], sources: set[str]) -> dict[PieceKey, Piece]:
    """Return the pieces, with those of some sources joined again."""
    whole = {key: piece for key, piece in cuts.items() if key[0] not in sources}
    for source in sources:
        own = [file for key, piece in sorted(cuts.items()) if key[0] == source for file in piece.own]
        whole[source, 0] = Piece(own, [], frozenset(file.family for file in own))
    return whole


def piece_tasks(cuts: dict[PieceKey, Piece], known: pl.DataFrame) -> list[PieceTask]:
    """Return a task for each piece, in order. ``known`` has the shape KNOWN."""
    by_source = {str(name): rows for (name,), rows in known.partition_by("source_name", as_dict=True).items()}
    return [
        PieceTask(source, piece, by_source.get(source) if piece.first else None) for (source, _), piece in cuts.items()
    ]


def read_piece(
    task: PieceTask, schema: pa.Schema, limits: IngestSettings
) -> Generator[pa.RecordBatch, None, list[Row] | None]:
    """Yield the changed offsets of a piece of a source's snapshots with the columns of ``schema``.

    Return the few other rows: snapshots, changed configurations, files, refusals. None for a piece that found no
    complete file before it: its source must then be read in one piece.
    """
    name, piece = task.source_name, task.piece
    broker = split_source(name)
    client = None if broker else name.removeprefix("client-")
    broker_name, broker_id = broker or (None, None)
    source = Source(name, broker_name, broker_id, client, limits=limits)
    if task.known is not None:
        _restore(source, task.known.iter_rows(named=True))
    beside: list[Row] = []
    with _prefetch(source, piece):
        if not catch_up(source, piece):
            return None
        # Streamed: a broker's day of changes must not be in memory as a whole.
        yield from change_batches(read_source(source, piece.own), source, schema, beside)
    names = {
        "source_name": name,
        "broker_name": source.broker_name,
        "broker_id": source.broker_id,
        "client_id": source.client_id,
    }
    return [{**row, **names} for row in beside]


@contextmanager
def _prefetch(source: Source, piece: Piece) -> Iterator[None]:
    """Let the source read the piece's files of a store ahead."""
    files = [file for file in [*piece.lead, *piece.own] if is_remote(file.full_path) and not file.is_polled]
    if not files:
        yield
        return
    paths = [f.full_path for f in sorted(files, key=lambda f: (f.ts_ms, f.family, f.is_bak))]
    with Prefetch(paths, piece.bytes, lambda path: read_whole(path, None, source.limits.snapshot_bytes)) as ahead:
        source.prefetch = ahead
        yield


def _restore(source: Source, known: Iterable[dict[str, Any]]) -> None:
    for row in known:
        family = row["family"]
        if family == ORPHAN_KEYS:
            source.strange_keys.add(row["topic"])
            continue
        entries = source.entries.setdefault(family, {})
        source.last_ts[family] = max(source.last_ts.get(family, 0), row["ts_ms"])
        if row["payload"] is not None:
            entries[row["topic"]] = row["payload"]
        elif row["offset"] is not None:
            broker = None if source.client_id is None else row["broker_name"]
            entries[(row["topic"], row["consumer_group"], broker, row["queue_id"])] = row["offset"]


def known_before(
    changes: pl.LazyFrame, snapshots: pl.LazyFrame, configs: dict[str, pl.LazyFrame], orphans: pl.LazyFrame
) -> pl.DataFrame:
    """Return the state (shape KNOWN) after rows of silver.offset_change and silver.snapshot.

    ``configs``: rows of the tables of topics and of groups, by the kind of their files. ``orphans``: source_name, topic
    (the key) and ts_ms of the reported invalid keys.
    """
    found = [_last_offsets(changes), _last_times(snapshots), orphans.with_columns(family=pl.lit(ORPHAN_KEYS))]
    parts = [rows.collect() for rows in found] + [_last_configs(rows, family) for family, rows in configs.items()]
    shaped = [part.select(_column(part, name, kind) for name, kind in KNOWN.items()) for part in parts]
    return pl.concat(shaped)


def _column(part: pl.DataFrame, name: str, kind: pl.DataType) -> pl.Expr:
    return pl.col(name).cast(kind) if name in part.columns else pl.lit(None, kind).alias(name)


def _last_offsets(changes: pl.LazyFrame) -> pl.LazyFrame:
    """Return the offsets after the changes."""
    group = pl.when(pl.col("consumer_group") == "").then(pl.lit("")).otherwise(pl.col("consumer_group") + ".")
    of_client = group + "offsets.json"
    family = pl.when(pl.col("client_id").is_not_null()).then(of_client).otherwise(pl.lit("consumer_offset"))
    key = ["source_name", "client_id", "topic", "consumer_group", "broker_name", "queue_id"]
    last = changes.group_by(key).agg(
        pl.col("new_offset").max_by("to_ts").alias("offset"),
        pl.col("to_ts").max().dt.epoch("ms").alias("ts_ms"),
    )
    return last.filter(pl.col("offset").is_not_null()).with_columns(family=family)


def _last_times(snapshots: pl.LazyFrame) -> pl.LazyFrame:
    """Return the time of each family's last snapshot, changed or not."""
    family = pl.col("file_name").str.strip_suffix(".bak").replace(SNAPSHOT_KINDS)
    last = snapshots.with_columns(family=family).group_by("source_name", "family")
    return last.agg(pl.col("ts").max().dt.epoch("ms").alias("ts_ms"))


def _last_configs(changes: pl.LazyFrame, family: str) -> pl.DataFrame:
    """Return the topics or groups after the changes."""
    key, columns = CONFIGS[family].key, CONFIGS[family].columns
    last = changes.sort("ts").group_by("source_name", *key).last().filter(pl.col("change") != "removed")
    topic = pl.concat_str(*key, separator=KEY_MARK).alias("topic")
    rows = last.select("source_name", topic, pl.col("ts").dt.epoch("ms").alias("ts_ms"), *columns)
    found = rows.collect()
    payloads = [payload(dict(zip(columns, row, strict=True))) for row in found.select(columns).iter_rows()]
    return found.with_columns(family=pl.lit(family), payload=pl.Series(payloads, dtype=pl.String))
