"""Rows into Delta tables through delta-rs: workers write Parquet, one commit adds their files."""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable
from deltalake.transaction import AddAction

CODEC = "snappy"
UTC = pa.timestamp("us", tz="UTC")


@dataclass(frozen=True)
class Written:
    """A Parquet file of a table, not yet committed."""

    name: str
    bytes: int
    rows: int


def write_file(folder: Path, rows: pa.Table) -> Written:
    """Writes a file into a table's folder."""
    folder.mkdir(parents=True, exist_ok=True)
    name = f"part-{uuid.uuid4()}.{CODEC}.parquet"
    pq.write_table(rows, folder / name, compression=CODEC, write_statistics=False)
    return Written(name, (folder / name).stat().st_size, len(rows))


def write_frame(folder: Path, rows: pl.DataFrame) -> Written:
    """The same for polars, by its own writer."""
    folder.mkdir(parents=True, exist_ok=True)
    name = f"part-{uuid.uuid4()}.{CODEC}.parquet"
    rows.write_parquet(folder / name, compression=CODEC, statistics=False)
    return Written(name, (folder / name).stat().st_size, len(rows))


def commit(folder: Path, schema: pa.Schema, files: list[Written]) -> None:
    """One commit with all of the files; makes the table. Dictionary columns count as what they stand for."""
    folder.mkdir(parents=True, exist_ok=True)
    plain = pa.schema([pa.field(f.name, value_type(f.type)) for f in schema])
    table = DeltaTable.create(folder, plain)
    adds = [AddAction(f.name, f.bytes, {}, 0, True, json.dumps({"numRecords": f.rows})) for f in files if f.rows]
    table.create_write_transaction(adds, "append", plain)


def value_type(kind: pa.DataType) -> pa.DataType:
    """The type itself, or that of a dictionary's values."""
    if pa.types.is_dictionary(kind):
        return value_type(kind.value_type)
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return pa.string()
    return pa.list_(value_type(kind.value_type)) if pa.types.is_large_list(kind) or pa.types.is_list(kind) else kind


def coded(codes: np.ndarray, words: list[str] | list[str | None]) -> pa.DictionaryArray:
    """A column of few distinct words, by their place in ``words``; None is null."""
    listed = list(words)
    none = np.array([word is None for word in listed], bool)  # Parquet has no dictionary with a null in it
    mask = none[codes] if none.any() else None
    texts = pa.array(["" if word is None else word for word in listed], pa.string())
    return pa.DictionaryArray.from_arrays(pa.array(codes, pa.int32(), mask=mask), texts)


def constant(word: str, rows: int) -> pa.DictionaryArray:
    """A column of one word."""
    return coded(np.zeros(rows, np.int32), [word])


def instants(ms: np.ndarray) -> pa.Array:
    """Epoch ms as instants in UTC; those below 0 are null."""
    return pa.array(ms.astype(np.int64) * 1000, UTC, mask=ms < 0)


def days(ms: np.ndarray) -> pa.Array:
    """The day in UTC of each instant (epoch ms)."""
    return pa.array((ms // 86_400_000).astype(np.int32), pa.int32()).cast(pa.date32())


def hex_strings(digests: np.ndarray) -> pa.Array:
    """Rows of 16 bytes as strings of 32 hex digits."""
    rows = len(digests)
    text = HEX[digests].tobytes()
    offsets = np.arange(rows + 1, dtype=np.int32) * 32
    return pa.StringArray.from_buffers(rows, pa.py_buffer(offsets), pa.py_buffer(text))


HEX = np.array([int.from_bytes(b"%02x" % value, "little") for value in range(256)], np.uint16)
