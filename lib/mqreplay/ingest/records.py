"""JSONL kinds -> rows of their silver table; what was refused, and what each file gave, is told beside (told.py)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from itertools import islice

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.accumulators import Accumulator
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StringType, StructField, StructType

from mqreplay.decode.kinds import KINDS
from mqreplay.ingest.arrow import batches
from mqreplay.ingest.lines import LineReader, Refusals
from mqreplay.ingest.plain_lines import PlainLines, as_batch
from mqreplay.ingest.recording import RecordedFile
from mqreplay.ingest.repeats import Repeats
from mqreplay.ingest.told import FileTold, Told
from mqreplay.lake.commit import LANDED
from mqreplay.lake.contract import Contract
from mqreplay.lake.landing import Landing, land
from mqreplay.settings import IngestSettings

# Text, not StructType: workers import this module, and only a driver can parse DDL.
FILES = "kind STRING, files ARRAY<STRUCT<full_path: STRING, digest: STRING, root: STRING>>"
LANDED_OF_KIND = StructType([StructField("kind", StringType()), *LANDED.fields])
DEFAULT_LIMITS = IngestSettings()
BLOCK_LINES = 20_000  # lines decoded at once
TASK_BYTES = 4_000_000  # recorded bytes a task reads: of small files several, for each task costs a moment
# Where the recording's word for a field would mislead in a table, by kind: recorded name -> column.
RENAMED = {
    "heartbeats": {
        "consumers": "consumer_data_set",
        "consumer_group": "unregistered_consumer_group",
        "producer_group": "unregistered_producer_group",
    },
    "broker_runtime": {"full": "full_table", "boot_timestamp": "boot_ts", "table": "runtime"},
}


def time_column(contract: Contract) -> str:
    """The column that says when a record happened: request_ts for pulls, else ts."""
    return "request_ts" if any(c.name == "request_ts" for c in contract.columns) else "ts"


def decode_files(
    spark: SparkSession,
    files: Mapping[str, list[tuple[RecordedFile, str]]],
    landings: Mapping[str, Landing],
    told: Accumulator[Told],
    *,
    limits: IngestSettings = DEFAULT_LIMITS,
) -> DataFrame:
    """The rows of files, given by kind and with their digests, go to their kind's landing; gives LANDED_OF_KIND.

    A line that stands twice in a file is two records. ``told`` is given a FileTold by each file's kind and digest, with
    so many refused lines as ``limits`` says.
    """
    work = partial(_land_tasks, landings=dict(landings), told=told, limits=limits)
    tasks = [
        (kind, [(f.full_path, digest, f.root) for f, digest in some])
        for kind, listed in files.items()
        for some in _tasks(listed)
    ]
    dealt = spark.createDataFrame(tasks, FILES).coalesce(1).repartition(len(tasks))
    return dealt.mapInArrow(work, LANDED_OF_KIND)


def _tasks(files: list[tuple[RecordedFile, str]]) -> list[list[tuple[RecordedFile, str]]]:
    tasks: list[list[tuple[RecordedFile, str]]] = []
    waiting = 0
    for file, digest in files:
        if not tasks or waiting + file.bytes > TASK_BYTES:
            tasks.append([])
            waiting = 0
        tasks[-1].append((file, digest))
        waiting += file.bytes
    return tasks


def _land_tasks(
    given: Iterator[pa.RecordBatch], *, landings: Mapping[str, Landing], told: Accumulator[Told], limits: IngestSettings
) -> Iterator[pa.RecordBatch]:
    for batch in given:
        for task in batch.to_pylist():
            kind = task["kind"]
            for landed in land(_decode_task(task["files"], kind, landings[kind], told, limits), landings[kind]):
                yield landed.add_column(0, "kind", pa.array([kind] * landed.num_rows))


def _decode_task(
    files: list[dict[str, str]], kind: str, landing: Landing, told: Accumulator[Told], limits: IngestSettings
) -> Iterator[pa.RecordBatch]:
    for file in files:
        found = FileTold()
        reader = LineReader(
            file["full_path"], KINDS[kind].decode, refused=Refusals(limits.quarantine_rows), root=file["root"]
        )
        for rows in decode_lines(reader, file["digest"], kind, landing.asked, found):
            ends = pc.min_max(rows.column(landing.day_of).cast(pa.int64()))
            found.saw(rows.num_rows, ends["min"].as_py(), ends["max"].as_py())
            yield rows
        told.add({(kind, file["digest"]): found})


def decode_lines(
    reader: LineReader, digest: str, kind: str, schema: pa.Schema, found: FileTold
) -> Iterator[pa.RecordBatch]:
    """The rows of one file in the shape of ``schema``; afterwards ``found`` has the counts, and what was refused."""
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
    renamed = RENAMED.get(kind, {})
    rows = list(taken)
    ids = repeats.named([record_id for _, record_id, _ in rows])
    for (_, _, row), record_id in zip(rows, ids, strict=True):
        for name, column in renamed.items():
            row[column] = row.pop(name)
        yield row | {"record_id": record_id, "source_digest": digest}
