"""What it takes to read pulls: `python tools/bench/lines.py RECORDING` gives CPU seconds for each million of lines.

From files of pull_log to Arrow batches as ingest does it, and its steps apart: to inflate a stream (ingest does it
twice: once for the checksums), to parse the lines, to prove that they were read as the decoder would, to name each by
its SHA-256. Beside them what other libraries and the decoder take. One thread; medians of --runs in turns.
"""

from __future__ import annotations

import os

os.environ["POLARS_MAX_THREADS"] = "1"  # as Spark's workers have it; polars asks once, when it is imported

import argparse
import io
import statistics
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.json as pj
from isal import isal_zlib

from mqreplay.decode.kinds import KINDS
from mqreplay.ingest.lines import BLOCK, LineReader, Refusals, record_id
from mqreplay.ingest.plain_lines import PlainLines, is_proven
from mqreplay.ingest.records import FileStats, decode_lines

PULLS = KINDS["pull_log"]
ARROW = {"string": pa.string(), "boolean": pa.bool_()}  # others: whole numbers
DECODED = 20_000  # lines that are decoded one by one


def as_ingest(path: Path) -> int:
    """Read a file into batches of numbers and texts, and return the rows."""
    kinds = {"string": pa.string(), "boolean": pa.bool_(), "int": pa.int32(), "bigint": pa.int64()}
    columns = {name: kinds.get(kind, pa.timestamp("us", "UTC")) for name, kind in PULLS.columns.items()}
    schema = pa.schema([*columns.items(), ("record_id", pa.string()), ("source_digest", pa.string())])
    reader = LineReader(str(path), PULLS.decode, refused=Refusals(0))
    return sum(batch.num_rows for batch in decode_lines(reader, "d", PULLS.stem, schema, FileStats()))


def inflated(packed: bytes, library: Any) -> None:
    """Inflate a stream of one member as ingest does, a megabyte at a time."""
    stream, member = io.BytesIO(packed), library.decompressobj(31)
    data = b""
    while not member.eof:
        member.decompress(data or stream.read(1 << 16), 1 << 20)
        data = member.unconsumed_tail


def by_arrow(text: bytes) -> None:
    """Parse lines by pyarrow.json, a thousand or so at a time."""
    schema = pa.schema([(name, ARROW.get(kind, pa.int64())) for name, kind in PULLS.columns.items()])
    pj.read_json(
        io.BytesIO(text),
        read_options=pj.ReadOptions(use_threads=False, block_size=1 << 20),
        parse_options=pj.ParseOptions(explicit_schema=schema, unexpected_field_behavior="infer"),
    )


def main() -> None:
    """Print a table."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("recording", type=Path)
    arguments.add_argument("--files", type=int, default=6, help="at most so many of its files of pulls")
    arguments.add_argument("--runs", type=int, default=3)
    given = arguments.parse_args()
    paths = sorted(given.recording.glob("pull_log*.gz"))[: given.files]
    packed = [path.read_bytes() for path in paths]
    blocks = [block.text for path in paths for block in LineReader(str(path), PULLS.decode).blocks(BLOCK)]
    lines = [line for text in blocks for line in text.split(b"\n")]
    fast = PlainLines(PULLS.plain) if PULLS.plain is not None else None
    assert fast is not None
    fast.read(lines[:1000])
    frames = [pl.read_ndjson(text, schema=fast.schema) for text in blocks]
    assert all(is_proven(text, frame) for text, frame in zip(blocks, frames, strict=True))
    few = lines[:DECODED]
    steps: dict[str, tuple[int, Callable[[], object]]] = {
        "file to Arrow batches, as ingest does it": (len(lines), lambda: [as_ingest(path) for path in paths]),
        "  inflate, ISA-L": (len(lines), lambda: [inflated(one, isal_zlib) for one in packed]),
        "  parse, polars": (len(lines), lambda: [pl.read_ndjson(text, schema=fast.schema) for text in blocks]),
        "  prove": (len(lines), lambda: [is_proven(*one) for one in zip(blocks, frames, strict=True)]),
        "  SHA-256": (len(lines), lambda: [record_id(line) for line in lines]),
        "inflate, zlib": (len(lines), lambda: [inflated(one, zlib) for one in packed]),
        "parse, pyarrow": (len(lines), lambda: [by_arrow(text) for text in blocks]),
        "parse, the decoder": (len(few), lambda: [PULLS.decode(line) for line in few]),
    }
    taken: dict[str, list[float]] = {name: [] for name in steps}
    for _ in range(given.runs):
        for name, (count, step) in steps.items():
            began = time.process_time()
            step()
            taken[name].append((time.process_time() - began) / count * 1e6)
    print(f"{len(lines):,} pulls of {len(paths)} files; CPU seconds a million, medians of {given.runs}")
    for name, seconds in taken.items():
        print(f"{name:45} {statistics.median(seconds):6.2f}")


if __name__ == "__main__":
    main()
