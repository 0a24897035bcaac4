"""Decode JSONL files into rows of silver tables; count, for each file, its rows and its refused lines."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

import pyarrow as pa
import pyarrow.compute as pc

from mqreplay.decode.kinds import KINDS
from mqreplay.ingest.lines import LineReader, Refusals, Refused
from mqreplay.ingest.plain_lines import PlainLines, as_batch
from mqreplay.ingest.recording import RecordedFile
from mqreplay.ingest.repeats import Repeats
from mqreplay.settings import IngestSettings

BLOCK_LINES = 20_000  # lines decoded together
TASK_COST = 4_000_000  # cost of a task: it reads several small files, because each task has an overhead
ONE_BY_ONE = 10  # cost of a byte of lines that are decoded one by one; a byte of plain lines costs 1
RECORDS_PER_BATCH = 10_000  # keeps a batch of wide records in a few megabytes
Convert = Callable[[object], object]


@dataclass
class FileStats:
    """The result of one JSONL file: number of lines and rows, first and last instant (epoch microseconds), refusals.

    ``refused`` holds the first refused lines and, if there are more, a row about them; ``quarantined`` counts them all.
    ``reason`` says why the file was not read, or not to its end.
    """

    lines: int = 0
    rows: int = 0
    first_us: int | None = None
    last_us: int | None = None
    refused: list[Refused] = field(default_factory=list)
    quarantined: int = 0
    reason: str | None = None

    def saw(self, rows: int, first_us: int | None, last_us: int | None) -> None:
        """Add rows between two instants."""
        self.rows += rows
        if first_us is not None and last_us is not None:
            self.first_us = first_us if self.first_us is None else min(self.first_us, first_us)
            self.last_us = last_us if self.last_us is None else max(self.last_us, last_us)


@dataclass(frozen=True)
class LinesTask:
    """Files of one kind to decode, each with its digest."""

    kind: str
    files: tuple[tuple[RecordedFile, str], ...]

    @property
    def cost(self) -> int:
        """Return the cost of reading them; a byte of plain lines costs 1."""
        each = ONE_BY_ONE if KINDS[self.kind].plain is None else 1
        return each * sum(file.bytes for file, _ in self.files)


def lines_tasks(kind: str, files: Iterable[tuple[RecordedFile, str]]) -> list[LinesTask]:
    """Distribute files of a kind to tasks of about TASK_COST."""
    dealt: list[list[tuple[RecordedFile, str]]] = []
    waiting = 0
    for file in files:
        cost = LinesTask(kind, (file,)).cost
        if not dealt or waiting + cost > TASK_COST:
            dealt.append([])
            waiting = 0
        dealt[-1].append(file)
        waiting += cost
    return [LinesTask(kind, tuple(some)) for some in dealt]


def read_lines(
    task: LinesTask, schema: pa.Schema, limits: IngestSettings
) -> Generator[pa.RecordBatch, None, dict[str, FileStats]]:
    """Yield the rows of the task's files with the columns of ``schema``; return the counts of each file by its digest.

    A line that is in a file twice is two records. The first ``quarantine_rows`` (settings) refused lines of each file
    are in its counts.
    """
    kind = KINDS[task.kind]
    stats: dict[str, FileStats] = {}
    for file, digest in task.files:
        found = stats[digest] = FileStats()
        reader = LineReader(file.full_path, kind.decode, refused=Refusals(limits.quarantine_rows), root=file.root)
        for rows in decode_lines(reader, digest, task.kind, schema, found):
            ends = pc.min_max(rows.column(kind.time).cast(pa.int64()))
            found.saw(rows.num_rows, ends["min"].as_py(), ends["max"].as_py())
            yield rows
    return stats


def decode_lines(
    reader: LineReader, digest: str, kind: str, schema: pa.Schema, found: FileStats
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of one file with the columns of ``schema``; then ``found`` has the counts and refusals."""
    repeats = Repeats()
    plain = KINDS[kind].plain
    fast = None if plain is None else PlainLines(plain)
    for block in reader.blocks():
        for part, read in [(block, None)] if fast is None else fast.parts(block):
            if read is not None:
                reader.lines += len(read.lines)
                yield as_batch(read, digest, repeats, schema)
                continue
            numbered = part.numbered()
            while lines := list(islice(numbered, BLOCK_LINES)):
                yield from batches(_rows(reader.take(lines), digest, kind, repeats), schema)
    found.lines, found.reason = reader.lines, reader.reason
    found.refused, found.quarantined = reader.refused.listed(), reader.refused.total


def _rows(
    taken: Iterable[tuple[int, str, dict[str, object]]], digest: str, kind: str, repeats: Repeats
) -> Iterator[dict[str, object]]:
    renamed = KINDS[kind].renamed
    rows = list(taken)
    ids = repeats.named([record_id for _, record_id, _ in rows])
    for (_, _, row), record_id in zip(rows, ids, strict=True):
        for name, column in renamed.items():
            row[column] = row.pop(name)
        yield row | {"record_id": record_id, "source_digest": digest}


def batches(rows: Iterator[dict[str, object]], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield record batches of at most RECORDS_PER_BATCH rows; missing columns are null."""
    converters = [(f.name, f.type, _converter(f.type)) for f in schema]
    while chunk := list(islice(rows, RECORDS_PER_BATCH)):
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
