"""JSONL kinds -> rows of their silver table, rows refused, and what each file gave: one union of all three."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from itertools import islice

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructField, StructType

from mqreplay.decode.kinds import KINDS
from mqreplay.ingest.arrow import batches
from mqreplay.ingest.lines import LineReader
from mqreplay.ingest.plain_lines import PlainLines, as_batch
from mqreplay.ingest.recording import RecordedFile
from mqreplay.lake.contract import Contract

# Text, not StructType: workers import this module, and only a driver can parse DDL.
FILES = "file_index INT, full_path STRING, recording STRING, path STRING, digest STRING"
BESIDE = (
    "out STRING, file_index INT, line_number BIGINT, recording STRING, path STRING, code STRING, reason STRING, "
    "advice STRING, content BINARY, lines BIGINT"
)
BLOCK_LINES = 20_000  # lines read at once: about 12 MB of pulls
LATER = ("cluster", "day")  # columns of a silver table that the decoder does not give
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
    spark: SparkSession, kind: str, files: list[tuple[RecordedFile, str]], contract: Contract
) -> DataFrame:
    """Decodes files of one kind, given with their digests, in their order.

    Gives the silver columns (but cluster and day) and those of BESIDE; ``out`` is row, refused, or file (one a file,
    with the count of its lines).
    """
    listed = [(i, f.full_path, f.recording, f.path, digest) for i, (f, digest) in enumerate(files)]
    silver = [f for f in contract.struct_type().fields if f.name not in LATER]
    schema = StructType([StructField(f.name, f.dataType, True) for f in silver] + StructType.fromDDL(BESIDE).fields)
    work = partial(_decode_batches, kind=kind, schema=to_arrow_schema(schema, timestamp_utc=True))
    spread = spark.createDataFrame(listed, FILES).repartition(len(listed), "file_index")
    return spread.mapInArrow(work, schema)


def _decode_batches(given: Iterator[pa.RecordBatch], *, kind: str, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    for batch in given:
        for file in batch.to_pylist():
            yield from _decode_file(file, kind, schema)


def _decode_file(file: dict[str, object], kind: str, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    reader = LineReader(str(file["full_path"]), KINDS[kind].decode)
    plain = KINDS[kind].plain
    if plain is None:
        yield from batches(_rows(reader, file, kind), schema)
    else:
        yield from _many_at_a_time(reader, PlainLines(plain), file, kind, schema)
    yield from batches(_beside(reader, file), schema)


def _many_at_a_time(
    reader: LineReader, fast: PlainLines, file: dict[str, object], kind: str, schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    numbered = reader.numbered()
    while chunk := list(islice(numbered, BLOCK_LINES)):
        lines = [line for _, line, _ in chunk]
        columns = fast.read(lines)
        if columns is None:
            yield from batches(_rows(reader, file, kind, reader.take(chunk)), schema)
            continue
        reader.lines += len(lines)
        yield as_batch(columns, [number for number, _, _ in chunk], lines, file, schema)


def _rows(
    reader: LineReader,
    file: dict[str, object],
    kind: str,
    taken: Iterable[tuple[int, str, dict[str, object]]] | None = None,
) -> Iterator[dict[str, object]]:
    renamed = RENAMED.get(kind, {})
    for number, record_id, row in reader if taken is None else taken:
        for name, column in renamed.items():
            row[column] = row.pop(name)
        row |= {
            "out": "row",
            "file_index": file["file_index"],
            "line_number": number,
            "record_id": record_id,
            "source_digest": file["digest"],
        }
        yield row


def _beside(reader: LineReader, file: dict[str, object]) -> Iterator[dict[str, object]]:
    """What was refused, and the count of lines."""
    place = {
        "file_index": file["file_index"],
        "recording": file["recording"],
        "path": file["path"],
        "source_digest": file["digest"],
    }
    for refused in reader.refused:
        yield place | {
            "out": "refused",
            "line_number": refused.line_number,
            "code": refused.code,
            "reason": refused.reason,
            "advice": refused.advice,
            "content": refused.content,
        }
    yield place | {"out": "file", "lines": reader.lines}


def first_of_each(decoded: DataFrame) -> DataFrame:
    """The rows of ``decoded`` with each record once: the first in the order of files and lines stands.

    A line that stands twice in one file is two records (a client may compute the same thing twice in a millisecond),
    and the second has a record_id of its own; a line that stands in two files is one.
    """
    rows = decoded.where(F.col("out") == "row")
    # Lines that stand twice are few: only their hashes are counted, and only they are put in order.
    hashed = rows.withColumn("_hash", F.xxhash64("record_id"))
    twice = F.broadcast(hashed.groupBy("_hash").count().where("count > 1").select("_hash"))
    once = hashed.join(twice, "_hash", "left_anti").drop("_hash")
    copies = hashed.join(twice, "_hash", "left_semi").drop("_hash")
    in_file = Window.partitionBy("record_id", "file_index").orderBy("line_number")
    among_files = Window.partitionBy("record_id", "nth").orderBy("file_index")
    nth = F.when(F.col("nth") > 1, F.concat("record_id", F.lit("-"), "nth")).otherwise(F.col("record_id"))
    firsts = (
        copies.withColumn("nth", F.row_number().over(in_file))
        .withColumn("copy", F.row_number().over(among_files))
        .where(F.col("copy") == 1)
        .withColumn("record_id", nth)
        .drop("copy", "nth")
    )
    return once.unionByName(firsts.select(*once.columns))
