"""Arrow batches of decoded records. Instants are epoch milliseconds. Runs on the workers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice

import pyarrow as pa

BATCH_ROWS = 10_000  # keeps a batch of wide records in a few megabytes

Convert = Callable[[object], object]


def batches(rows: Iterator[dict[str, object]], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield record batches of at most BATCH_ROWS rows; missing columns are null."""
    converters = [(f.name, f.type, _converter(f.type)) for f in schema]
    while chunk := list(islice(rows, BATCH_ROWS)):
        arrays = []
        for name, kind, convert in converters:
            values: Sequence[object] = [row.get(name) for row in chunk]
            if convert is not None:
                values = [None if v is None else convert(v) for v in values]
            arrays.append(pa.array(values, type=kind))
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def _converter(kind: pa.DataType) -> Convert | None:
    """Return a converter of decoded values to Arrow's input of this type; None if nothing is to convert."""
    if pa.types.is_timestamp(kind):
        return lambda ms: ms * 1000  # type: ignore[operator]
    if pa.types.is_map(kind):
        return lambda mapping: list(mapping.items())  # type: ignore[attr-defined]
    if pa.types.is_list(kind):
        inner = _converter(kind.value_type)
        return None if inner is None else lambda values: [inner(v) for v in values]  # type: ignore[attr-defined]
    if pa.types.is_struct(kind):
        return _struct_converter(kind)
    return None


def _struct_converter(kind: pa.StructType) -> Convert | None:
    """Return a converter of structs: tuples in field order, or mappings by field name."""
    fields = [kind.field(i) for i in range(kind.num_fields)]
    inner = [(f.name, _converter(f.type)) for f in fields]
    if all(convert is None for _, convert in inner):
        return None

    def convert(value: object) -> object:
        value_of = value.get if isinstance(value, dict) else dict(zip((n for n, _ in inner), value, strict=True)).get  # type: ignore[call-overload]
        return {n: (v if c is None or v is None else c(v)) for n, c in inner for v in (value_of(n),)}

    return convert
