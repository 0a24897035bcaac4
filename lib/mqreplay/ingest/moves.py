"""What the snapshots of a source gave, as Arrow batches: offsets that moved by columns, the few other rows by rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import pyarrow as pa

from mqreplay.ingest.arrow import batches
from mqreplay.ingest.diffs import Moves, Row, Source

BATCH_ROWS = 50_000  # offsets moved; a batch is then a few megabytes
LISTS = ("topic", "consumer_group", "broker_name", "queue_id", "previous_offset", "new_offset")
PER_FILE = ("from_ts", "ts", "digest")


def as_batches(
    items: Iterable[Row | Moves], source: Source, recordings: Mapping[str, str], schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """Batches of ``schema`` as they fill up. ``recordings`` is path -> recording."""
    names = {"source_name": source.source_name, "broker_id": source.broker_id, "client_id": source.client_id}
    moves: list[Moves] = []
    rows: list[Row] = []
    waiting = 0
    for item in items:
        if isinstance(item, Moves):
            moves.append(item)
            waiting += len(item)
        else:
            rows.append(
                {"broker_name": source.broker_name, **item, **names, "recording": recordings.get(str(item.get("path")))}
            )
        if waiting >= BATCH_ROWS:
            yield _moved(moves, names, source.broker_name, schema)
            moves, waiting = [], 0
        if len(rows) >= BATCH_ROWS:
            yield from batches(iter(rows), schema)
            rows = []
    if waiting:
        yield _moved(moves, names, source.broker_name, schema)
    yield from batches(iter(rows), schema)


def _moved(
    moves: list[Moves], names: Mapping[str, object], broker_name: str | None, schema: pa.Schema
) -> pa.RecordBatch:
    """One batch of rows with out = change; columns that they do not have are null."""
    rows = sum(len(m) for m in moves)
    columns: dict[str, pa.Array] = {"out": _same("change", rows, schema)}
    for name, value in names.items():
        columns[name] = _same(value, rows, schema, name)
    for name in LISTS:
        kind = schema.field(name).type
        columns[name] = pa.array([v for m in moves for v in getattr(m, name)], type=kind)
    if broker_name is not None:
        columns["broker_name"] = _same(broker_name, rows, schema, "broker_name")
    for name in PER_FILE:
        kind = schema.field(name).type
        scale = 1000 if pa.types.is_timestamp(kind) else None
        values = [(getattr(m, name), len(m)) for m in moves]
        columns[name] = pa.array(
            [v if v is None or scale is None else v * scale for v, n in values for _ in range(n)], type=kind
        )
    arrays = [columns.get(f.name) if f.name in columns else pa.nulls(rows, f.type) for f in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _same(value: object, rows: int, schema: pa.Schema, name: str = "out") -> pa.Array:
    return pa.repeat(pa.scalar(value, type=schema.field(name).type), rows)
