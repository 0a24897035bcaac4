"""Snapshots -> what changed, a task for each piece of a source, carrying on from what was known before it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
from pyspark.accumulators import Accumulator
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from mqreplay.ingest.diffs import Row, Source
from mqreplay.ingest.entries import SnapshotFile
from mqreplay.ingest.moves import moved_batches
from mqreplay.ingest.pieces import Piece, catch_up, pieces
from mqreplay.ingest.recording import RecordedFile, split_source
from mqreplay.ingest.told import Told
from mqreplay.lake.commit import LANDED
from mqreplay.lake.landing import Landing, land
from mqreplay.settings import IngestSettings

# Text, not StructType: workers import this module, and only a driver can parse DDL.
_FILE = "STRUCT<full_path: STRING, path: STRING, kind: STRING, file_name: STRING, ts_ms: BIGINT>"
PIECES = f"source_name STRING, piece INT, own ARRAY<{_FILE}>, lead ARRAY<{_FILE}>, first ARRAY<STRING>"
LEAST_PIECE = 64_000_000  # bytes of snapshots: each piece decodes some files whole, those before its first among them
STATE = (
    "source_name STRING, family STRING, topic STRING, consumer_group STRING, broker_name STRING, queue_id INT, "
    "offset BIGINT, payload STRING, ts_ms BIGINT"
)
PieceKey = tuple[str, int]
ORPHAN_KEYS = "orphan_keys"  # in the place of a family: the topic is a key that names nothing, and was reported
TOPIC = (
    "read_queue_nums INT, write_queue_nums INT, perm INT, topic_sys_flag INT, `order` BOOLEAN, topic_filter_type STRING"
)
GROUP = (
    "consume_enable BOOLEAN, consume_from_min_enable BOOLEAN, consume_broadcast_enable BOOLEAN, retry_queue_nums INT, "
    "retry_max_times INT, group_broker_id BIGINT, which_broker_when_consume_slowly BIGINT, "
    "notify_consumer_ids_changed_enable BOOLEAN"
)


def piece_bytes(files: list[RecordedFile], tasks: int) -> int:
    """How large a piece of these files is to be, for about so many tasks."""
    return max(sum(file.bytes for file in files) // tasks, LEAST_PIECE)


def cut(files: list[RecordedFile], most_bytes: int) -> dict[PieceKey, Piece]:
    """The files of each source in pieces that are read apart."""
    by_source: dict[str, list[RecordedFile]] = {}
    for file in files:
        by_source.setdefault(str(file.source_name), []).append(file)
    made = {}
    for source, some in sorted(by_source.items()):
        # Two recordings may hold the same path: the whole one tells them apart.
        listed = [SnapshotFile(f.full_path, f.full_path, f.kind, f.file_name, f.ts_ms or 0) for f in some]
        for number, piece in enumerate(pieces(listed, {f.full_path: f.bytes for f in some}, most_bytes)):
            made[source, number] = piece
    return made


def uncut(cuts: dict[PieceKey, Piece], sources: set[str]) -> dict[PieceKey, Piece]:
    """The same, with the pieces of some sources put together again."""
    whole = {key: piece for key, piece in cuts.items() if key[0] not in sources}
    for source in sources:
        own = [file for key, piece in sorted(cuts.items()) if key[0] == source for file in piece.own]
        whole[source, 0] = Piece(own, [], frozenset(file.family for file in own))
    return whole


def read_snapshots(
    spark: SparkSession,
    cuts: dict[PieceKey, Piece],
    state: DataFrame | None,
    landing: Landing,
    told: Accumulator[Told],
    limits: IngestSettings,
) -> DataFrame:
    """The offsets that moved go to the landing, and what is told of its files is given (shape LANDED).

    ``state`` (shape STATE) is what was known before the files, if any. ``told`` is given, by each piece's key, the few
    other rows: snapshots, configs that changed, files, refusals. It is given None for a piece that could not catch up:
    its source must then be read in one.
    """
    rows = [
        (*key, list(map(_as_row, piece.own)), list(map(_as_row, piece.lead)), sorted(piece.first))
        for key, piece in cuts.items()
    ]
    listed = spark.createDataFrame(rows, PIECES)
    given = listed.select("source_name", "piece", F.struct("own", "lead", "first").alias("given"))
    if state is not None:
        keys = F.broadcast(listed.where(F.size("first") > 0).select("source_name", "piece"))
        known = F.struct(*StructType.fromDDL(STATE).fieldNames()).alias("known")
        given = given.unionByName(
            state.join(keys, "source_name").select("source_name", "piece", known), allowMissingColumns=True
        )
    grouped = given.repartition(len(cuts), "source_name", "piece").groupBy("source_name", "piece")
    return grouped.applyInArrow(_reader(landing, told, limits), LANDED)


def _as_row(file: SnapshotFile) -> tuple[object, ...]:
    return file.full_path, file.path, file.kind, file.file_name, file.ts_ms


def _reader(
    landing: Landing, told: Accumulator[Told], limits: IngestSettings
) -> Callable[[tuple[pa.Scalar, ...], Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def read(key: tuple[pa.Scalar, ...], given: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        name, number = (part.as_py() for part in key)
        rows = [row for batch in given for row in batch.to_pylist()]
        known = [row["known"] for row in rows if row.get("known") is not None]
        (asked,) = [row["given"] for row in rows if row["given"] is not None]
        own, lead = ([SnapshotFile(**file) for file in asked[part]] for part in ("own", "lead"))
        broker = split_source(name)
        client = None if broker else name.removeprefix("client-")
        source = Source(name, *(broker or (None, None)), client, limits=limits)
        _restore(source, known)
        if not catch_up(source, Piece(own, lead, frozenset(asked["first"]))):
            told.add({(name, number): None})
            return
        beside: list[Row] = []
        # As it goes: a broker's day of changes must not lie in memory whole.
        yield from land(moved_batches(source.read_all(own), source, landing.asked, beside), landing)
        names = {
            "source_name": name,
            "broker_name": source.broker_name,
            "broker_id": source.broker_id,
            "client_id": source.client_id,
        }
        told.add({(name, number): [{**row, **names} for row in beside]})

    return read


def _restore(source: Source, state: list[dict[str, Any]]) -> None:
    for row in state:
        family = row["family"]
        if family == ORPHAN_KEYS:
            source.strange_keys.add(row["topic"])
            continue
        entries = source.entries.setdefault(family, {})
        source.last_ts[family] = max(source.last_ts.get(family, 0), row["ts_ms"])
        if row["payload"] is not None:
            # Spark writes JSON without blanks and in its own order; the worker compares its own writing.
            entries[row["topic"]] = json.dumps(json.loads(row["payload"]), sort_keys=True)
        elif row["offset"] is not None:
            broker = None if source.client_id is None else row["broker_name"]
            entries[(row["topic"], row["consumer_group"], broker, row["queue_id"])] = row["offset"]


def last_offsets(changes: DataFrame, snapshots: DataFrame) -> DataFrame:
    """Shape STATE: the offsets standing after ``changes``, and the time of each family's last snapshot."""
    key = ["source_name", "client_id", "topic", "consumer_group", "broker_name", "queue_id"]
    group = F.when(F.col("consumer_group") == "", "").otherwise(F.concat("consumer_group", F.lit(".")))
    of_client = F.concat(group, F.lit("offsets.json"))
    family = F.when(F.col("client_id").isNotNull(), of_client).otherwise("consumer_offset")
    standing = (
        changes.groupBy(*key)
        .agg(F.max_by("new_offset", "to_ts").alias("offset"), F.max("to_ts").alias("to_ts"))
        .where(F.col("offset").isNotNull())
        .select(
            "source_name",
            family.alias("family"),
            "topic",
            "consumer_group",
            "broker_name",
            "queue_id",
            "offset",
            F.lit(None).cast("string").alias("payload"),
            F.unix_millis("to_ts").alias("ts_ms"),
        )
    )
    return standing.unionByName(_last_times(snapshots))


def reported_keys(keys: DataFrame) -> DataFrame:
    """Shape STATE: the keys (source_name, topic, ts_ms) that were reported as naming nothing."""
    nothing = {"consumer_group": "string", "broker_name": "string", "queue_id": "int", "offset": "bigint"}
    return keys.select(
        "source_name",
        F.lit(ORPHAN_KEYS).alias("family"),
        "topic",
        *[F.lit(None).cast(t).alias(n) for n, t in nothing.items()],
        F.lit(None).cast("string").alias("payload"),
        "ts_ms",
    )


def _last_times(snapshots: DataFrame) -> DataFrame:
    """Shape STATE with a time and no entry: the last snapshot of each family, changed or not."""
    name = F.regexp_replace("file_name", r"\.bak$", "")
    family = (
        F.when(name == "consumerOffset.json", "consumer_offset")
        .when(name == "topics.json", "topics")
        .when(name == "subscriptionGroup.json", "subscription_groups")
        .otherwise(name)
    )
    nothing = {"topic": "string", "consumer_group": "string", "broker_name": "string", "queue_id": "int"}
    return (
        snapshots.groupBy("source_name", family.alias("family"))
        .agg(F.unix_millis(F.max("ts")).alias("ts_ms"))
        .select(
            "source_name",
            "family",
            *[F.lit(None).cast(t).alias(n) for n, t in nothing.items()],
            F.lit(None).cast("bigint").alias("offset"),
            F.lit(None).cast("string").alias("payload"),
            "ts_ms",
        )
    )


def last_configs(changes: DataFrame, family: str, key: str, struct: str) -> DataFrame:
    """Shape STATE: the topics or groups standing after ``changes`` (silver.topic_config or subscription_group)."""
    fields = StructType.fromDDL(struct).fieldNames()
    newest = F.max_by(F.struct("change", *fields), "ts").alias("newest")
    return (
        changes.groupBy("source_name", key)
        .agg(newest, F.max("ts").alias("ts"))
        .where(F.col("newest.change") != "removed")
        .select(
            "source_name",
            F.lit(family).alias("family"),
            F.col(key).alias("topic"),
            F.lit(None).cast("string").alias("consumer_group"),
            F.lit(None).cast("string").alias("broker_name"),
            F.lit(None).cast("int").alias("queue_id"),
            F.lit(None).cast("bigint").alias("offset"),
            F.to_json(F.struct(*[F.col(f"newest.{name}").alias(name) for name in fields])).alias("payload"),
            F.unix_millis("ts").alias("ts_ms"),
        )
    )
