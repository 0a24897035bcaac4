"""Changed offsets of a source's snapshots as Arrow batches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mqreplay.ingest.diffs import Source
from mqreplay.ingest.entries import Keys, Moves
from mqreplay.ingest.snapshot_rows import Row

BATCH_ROWS = 50_000  # changed offsets per batch of a few megabytes
OFFSET_KEY = ("topic", "consumer_group", "broker_name", "queue_id")  # in the order of OffsetKey
MOVE_FIELDS = {"from_ts": "from_ts", "to_ts": "ts", "source_digest": "digest"}  # column: field of Moves


def change_batches(
    items: Iterable[Row | Moves], source: Source, schema: pa.Schema, beside: list[Row]
) -> Iterator[pa.RecordBatch]:
    """Yield batches of changed offsets; append every other row unchanged to ``beside``.

    ``schema`` may have any of the columns source_name, broker_name, broker_id, client_id, topic, consumer_group,
    queue_id, previous_offset, new_offset, from_ts, to_ts, source_digest. Others are null.
    """
    columns = _Columns(source)
    waiting: list[Moves] = []
    rows = 0
    for item in items:
        if not isinstance(item, Moves):
            beside.append(item)
            continue
        if len(item):
            waiting.append(item)
            rows += len(item)
        if rows >= BATCH_ROWS:
            yield from _cut(columns.batch(waiting, schema))
            waiting, rows = [], 0
    if waiting:
        yield columns.batch(waiting, schema)


def _cut(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Split a large batch: a first snapshot has every entry of a broker."""
    pieces = max(1, batch.num_rows // BATCH_ROWS)
    size = -(-batch.num_rows // pieces)
    for start in range(0, batch.num_rows, size):
        yield batch.slice(start, size)


class _Columns:
    """A builder of columns of one source's changes."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._keys: Keys = source.keys
        self._of_keys: dict[tuple[str, pa.DataType], pa.Array] = {}

    def batch(self, moves: list[Moves], schema: pa.Schema) -> pa.RecordBatch:
        """Return one batch of several changes."""
        lengths = [len(m) for m in moves]
        entry = np.concatenate([m.entry for m in moves])
        arrays = [self._column(f.name, f.type, moves, lengths, entry) for f in schema]
        return pa.RecordBatch.from_arrays(arrays, schema=schema)

    def _column(
        self, name: str, kind: pa.DataType, moves: list[Moves], lengths: list[int], entry: NDArray[np.int32]
    ) -> pa.Array:
        source = self._source
        same: dict[str, object] = {
            "source_name": source.source_name,
            "broker_id": source.broker_id,
            "client_id": source.client_id,
        }
        if name == "broker_name" and source.broker_name is not None:
            same[name] = source.broker_name
        if name in same:
            return pa.repeat(pa.scalar(same[name], type=kind), len(entry))
        if name in OFFSET_KEY:
            return self._of_key(name, kind).take(pa.array(entry))
        if name == "previous_offset":
            return _offsets(moves, kind, lambda m: m.previous, lambda m: m.came)
        if name == "new_offset":
            return _offsets(moves, kind, lambda m: m.new, lambda m: m.gone)
        if name in MOVE_FIELDS:
            values = [getattr(m, MOVE_FIELDS[name]) for m in moves]
            if pa.types.is_timestamp(kind):
                values = [None if v is None else v * 1000 for v in values]
            return pa.array(values, type=kind).take(pa.array(np.repeat(np.arange(len(moves)), lengths)))
        return pa.nulls(len(entry), kind)

    def _of_key(self, name: str, kind: pa.DataType) -> pa.Array:
        """Return one part of every key; rebuilt only after new keys."""
        known = self._of_keys.get((name, kind))
        if known is None or len(known) < len(self._keys):
            part = OFFSET_KEY.index(name)
            known = pa.array([key[part] for key in self._keys.keys], type=kind)
            self._of_keys[name, kind] = known
        return known


def _offsets(
    moves: list[Moves],
    kind: pa.DataType,
    values: Callable[[Moves], NDArray[np.int64]],
    nulls: Callable[[Moves], NDArray[np.bool_] | None],
) -> pa.Array:
    mask = None
    if any(nulls(m) is not None for m in moves):
        masks = [(nulls(m), len(m)) for m in moves]
        mask = np.concatenate([np.zeros(n, np.bool_) if one is None else one for one, n in masks])
    return pa.array(np.concatenate([values(m) for m in moves]), type=kind, mask=mask)
