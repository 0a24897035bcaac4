"""Snapshots -> what changed, one task a source, each carrying on from the last known entries of its source."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
from pyspark.accumulators import Accumulator
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from mqreplay.ingest.diffs import Row, Source
from mqreplay.ingest.entries import SnapshotFile
from mqreplay.ingest.moves import moved_batches
from mqreplay.ingest.recording import RecordedFile, split_source
from mqreplay.ingest.told import Told

# Text, not StructType: workers import this module, and only a driver can parse DDL.
FILES = (
    "source_name STRING, full_path STRING, recording STRING, path STRING, kind STRING, file_name STRING, ts_ms BIGINT"
)
STATE = (
    "source_name STRING, family STRING, topic STRING, consumer_group STRING, broker_name STRING, queue_id INT, "
    "offset BIGINT, payload STRING, ts_ms BIGINT"
)
CHANGE = (
    "source_name STRING, broker_name STRING, broker_id BIGINT, client_id STRING, topic STRING, consumer_group STRING, "
    "queue_id INT, previous_offset BIGINT, new_offset BIGINT, from_ts TIMESTAMP, ts TIMESTAMP, digest STRING"
)
TOPIC = (
    "read_queue_nums INT, write_queue_nums INT, perm INT, topic_sys_flag INT, `order` BOOLEAN, topic_filter_type STRING"
)
GROUP = (
    "consume_enable BOOLEAN, consume_from_min_enable BOOLEAN, consume_broadcast_enable BOOLEAN, retry_queue_nums INT, "
    "retry_max_times INT, group_broker_id BIGINT, which_broker_when_consume_slowly BIGINT, "
    "notify_consumer_ids_changed_enable BOOLEAN"
)


def read_snapshots(
    spark: SparkSession, files: list[RecordedFile], state: DataFrame | None, told: Accumulator[Told]
) -> DataFrame:
    """The offsets that moved, in the shape CHANGE; ``state`` (shape STATE) is what was known before the files, if any.

    ``told`` is given, by each source's name, the few other rows: snapshots, configs that changed, files, refusals.
    """
    listed = spark.createDataFrame(
        [(f.source_name, f.full_path, f.recording, f.path, f.kind, f.file_name, f.ts_ms) for f in files],
        FILES,
    )
    schema = to_arrow_schema(StructType.fromDDL(CHANGE), timestamp_utc=True)
    given = listed.select("source_name", F.struct(*listed.columns).alias("file"))
    if state is not None:
        known = state.select(F.struct(*StructType.fromDDL(STATE).fieldNames()).alias("known"), "source_name")
        given = given.unionByName(known, allowMissingColumns=True)
    sources = len({f.source_name for f in files})
    return given.repartition(sources, "source_name").groupBy("source_name").applyInArrow(_reader(schema, told), CHANGE)


def _reader(
    schema: pa.Schema, told: Accumulator[Told]
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def read(given: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = [row for batch in given for row in batch.to_pylist()]
        files = [row["file"] for row in rows if row["file"] is not None]
        if files:
            # As it goes: a broker's day of changes must not lie in memory whole.
            known = [row["known"] for row in rows if row.get("known") is not None]
            yield from _read_source(files, known, schema, told)

    return read


def _read_source(
    listed: list[dict[str, Any]], state: list[dict[str, Any]], schema: pa.Schema, told: Accumulator[Told]
) -> Iterator[pa.RecordBatch]:
    name = listed[0]["source_name"]
    broker = split_source(name)
    client = None if broker else name.removeprefix("client-")
    source = Source(name, *(broker or (None, None)), client)
    _restore(source, state)
    snapshot_files = [SnapshotFile(f["full_path"], f["path"], f["kind"], f["file_name"], f["ts_ms"]) for f in listed]
    recordings = {f["path"]: f["recording"] for f in listed}
    beside: list[Row] = []
    yield from moved_batches(source.read_all(snapshot_files), source, schema, beside)
    names = {
        "source_name": name,
        "broker_name": source.broker_name,
        "broker_id": source.broker_id,
        "client_id": source.client_id,
    }
    told.add({name: [{**row, **names, "recording": recordings.get(str(row.get("path")))} for row in beside]})


def _restore(source: Source, state: list[dict[str, Any]]) -> None:
    for row in state:
        family = row["family"]
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
    key = ["source_name", "topic", "consumer_group", "broker_name", "queue_id"]
    last = Window.partitionBy(*key).orderBy(F.col("to_ts").desc())
    group = F.when(F.col("consumer_group") == "", "").otherwise(F.concat("consumer_group", F.lit(".")))
    of_client = F.concat(group, F.lit("offsets.json"))
    family = F.when(F.col("client_id").isNotNull(), of_client).otherwise("consumer_offset")
    standing = (
        changes.withColumn("rank", F.row_number().over(last))
        .where((F.col("rank") == 1) & F.col("new_offset").isNotNull())
        .select(
            "source_name",
            family.alias("family"),
            "topic",
            "consumer_group",
            "broker_name",
            "queue_id",
            F.col("new_offset").alias("offset"),
            F.lit(None).cast("string").alias("payload"),
            F.unix_millis("to_ts").alias("ts_ms"),
        )
    )
    return standing.unionByName(_last_times(snapshots))


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
    last = Window.partitionBy("source_name", key).orderBy(F.col("ts").desc())
    return (
        changes.withColumn("rank", F.row_number().over(last))
        .where((F.col("rank") == 1) & (F.col("change") != "removed"))
        .select(
            "source_name",
            F.lit(family).alias("family"),
            F.col(key).alias("topic"),
            F.lit(None).cast("string").alias("consumer_group"),
            F.lit(None).cast("string").alias("broker_name"),
            F.lit(None).cast("int").alias("queue_id"),
            F.lit(None).cast("bigint").alias("offset"),
            F.to_json(F.struct(*StructType.fromDDL(struct).fieldNames())).alias("payload"),
            F.unix_millis("ts").alias("ts_ms"),
        )
    )
