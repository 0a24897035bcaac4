"""Passes on Spark have the results and the gold rows of passes on files: by path, by name, with few rows and many."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from chispa import assert_df_equality
from polars.testing import assert_frame_equal

from engines.toy_pass import COUNT_PASS, DAY, QUEUE_COLUMNS, Counted
from mqreplay.engines import spark_passes
from mqreplay.engines.local import LocalEngine
from mqreplay.engines.passes import PassRunner
from mqreplay.engines.rows import NamedRows, file_rows
from mqreplay.engines.shards import deal
from mqreplay.engines.spark import SparkEngine
from mqreplay.engines.spark_passes import SparkPassRunner
from mqreplay.engines.spark_tables import SparkTables, bucket
from mqreplay.lake.buckets import BUCKETS, buckets, key_of
from mqreplay.lake.catalog_warehouse import CatalogWarehouse
from mqreplay.lake.registration import CatalogNames
from mqreplay.lake.row_filter import Days, RowFilter
from mqreplay.lake.warehouse import Warehouse
from silver_rows import rows

DAYS = {table.name: Days(DAY - dt.timedelta(days=1), DAY) for table in COUNT_PASS.tables}
CLUSTER = "it's \\ a cluster"
INSTANT = dt.datetime.combine(DAY, dt.time(), dt.UTC)
LARGE = 1_500  # pulls of the largest queue


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    """Pulls of 200 queues, one of them with most rows, and of another cluster and day."""
    made = Warehouse(str(tmp_path / "warehouse"))
    base = {"client_id": "c", "consumer_group": "g", "request_ts": INSTANT, "day": DAY, "queue_offset": 0}
    queues = [{"broker_name": f"b{n % 7}", "topic": f"t{n % 11}", "queue_id": n} for n in range(200)]
    listed = [queue for n, queue in enumerate(queues) for _ in range(1 + n % 3)] + [queues[0]] * LARGE
    pulls = rows("silver.pull", base, listed)
    earlier = rows("silver.pull", base | {"day": DAY - dt.timedelta(days=9)}, queues[:3])
    for cluster, some in ((CLUSTER, pulls), (CLUSTER, earlier), ("other", pulls.head(50))):
        put(made, "silver.pull", some, cluster)
    stats = rows("silver.topic_stats", {"day": DAY, "ts": INSTANT, "topic": "t"}, [{}] * 4)
    put(made, "silver.topic_stats", stats, CLUSTER)
    return made


def put(warehouse: Warehouse, table: str, some: pl.DataFrame, cluster: str) -> None:
    """Append rows of a cluster."""
    warehouse.replace_rows(table, some.with_columns(cluster=pl.lit(cluster)), None)


def counted(runner: PassRunner, warehouse: Warehouse, most_rows: int) -> list[Counted]:
    """Run the pass over shards of about ``most_rows`` rows, and commit."""
    pulls = runner.source.read("silver.pull", Days(DAY, DAY), pl.lit(True))
    counts = np.bincount(buckets(pulls, key_of(QUEUE_COLUMNS)).to_numpy(), minlength=BUCKETS)
    found = list(runner.run(COUNT_PASS, deal(counts, most_rows), 10))
    runner.commit(RowFilter(CLUSTER, days=frozenset({DAY})))
    return found


def queues_of(found: list[Counted]) -> pl.DataFrame:
    """Return the queues of all tasks."""
    return pl.concat([each.queues for each in found])


def progress_of(warehouse: Warehouse) -> pl.DataFrame:
    """Return the rows of the gold table."""
    return warehouse.read("gold.queue_progress").collect()


def same(one: pl.DataFrame, other: pl.DataFrame) -> None:
    """Assert that the rows are equal in any order."""
    assert_frame_equal(one, other, check_row_order=False)


@pytest.fixture(params=["by name", *(pytest.param(rows, marks=pytest.mark.long) for rows in ("few rows", "many rows"))])
def on_spark(request: pytest.FixtureRequest, warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch) -> Warehouse:
    """The warehouse for Spark: the driver commits few rows, delta-spark all others, and those of tables by name."""
    if request.param != "few rows":
        monkeypatch.setattr(spark_passes, "FEW_ROWS", 0)
    return request.getfixturevalue("named") if request.param == "by name" else warehouse


@pytest.fixture
def named(spark: Any, warehouse: Warehouse, tmp_path: Path) -> Iterator[Warehouse]:
    """The silver tables of the warehouse in tables with names."""
    names = CatalogNames(None, "passes_")
    made = CatalogWarehouse(spark, str(tmp_path / "named"), names)
    for table in ("silver.pull", "silver.topic_stats"):
        made.replace_rows(table, warehouse.read(table).collect(), None)
    yield made
    for layer in ("bronze", "silver", "gold"):
        spark.sql(f"DROP DATABASE IF EXISTS {names.database(layer)} CASCADE")


def test_spark_counts_and_writes_what_files_do(
    spark: Any, on_spark: Warehouse, warehouse: Warehouse, tmp_path: Path
) -> None:
    with LocalEngine(tmp_path, processes=1) as engine:
        by_files = engine.pass_runner(warehouse, CLUSTER, DAY, DAYS)
        expected = counted(by_files, warehouse, 400)
    gold = progress_of(warehouse)
    assert len(gold) == 200
    on_spark.commit_files("gold.queue_progress", [], RowFilter(CLUSTER))
    put(on_spark, "gold.queue_progress", gold.drop("cluster").head(3), "other")
    tomorrow = gold.drop("cluster").head(2).with_columns(day=pl.lit(DAY + dt.timedelta(days=1)))
    put(on_spark, "gold.queue_progress", tomorrow, CLUSTER)
    runner = SparkPassRunner(SparkTables(spark, on_spark), CLUSTER, DAY, DAYS)
    for _ in range(2):  # the second commit replaces the rows of the first
        found = counted(runner, on_spark, 400)
        same(queues_of(found), queues_of(expected))
        now = progress_of(on_spark)
        same(now.filter(pl.col("day") == DAY, pl.col("cluster") == CLUSTER), gold)
        assert len(now) == 205
    assert len(found) == len(expected) > 2
    assert {each.tasks["stats"].item() for each in found} == {4}
    (columns,) = {tuple(each.columns["name"]) for each in [*found, *expected]}
    unread = {"cluster", "remark", "error"}
    assert list(columns) == [c.name for c in warehouse.contracts["silver.pull"].columns if c.name not in unread]


def test_a_large_queue_is_a_task_alone_and_starts_first(spark: Any, warehouse: Warehouse) -> None:
    runner = SparkPassRunner(SparkTables(spark, warehouse), CLUSTER, DAY, DAYS)
    found = counted(runner, warehouse, 100)
    largest = max(range(len(found)), key=lambda task: found[task].queues["pulls"].sum())
    assert largest == 0
    pulls = [each.queues["pulls"].sum() // 10 for each in found]
    assert pulls[0] <= LARGE + 20
    assert max(pulls[1:]) <= 2 * np.median(pulls[1:])


def test_rows_outside_of_the_shards_are_not_read(spark: Any, warehouse: Warehouse) -> None:
    runner = SparkPassRunner(SparkTables(spark, warehouse), CLUSTER, DAY, DAYS)
    shard, *_ = deal(np.ones(BUCKETS, np.int64), BUCKETS // 4)
    (found,) = runner.run(COUNT_PASS, [shard], 1)
    place = buckets(found.queues, key_of(QUEUE_COLUMNS))
    assert 0 < len(place) < 200
    assert place.is_between(shard.low, shard.high).all()


def test_a_pass_without_rows_has_a_result_and_empties_its_table(spark: Any, tmp_path: Path) -> None:
    empty = Warehouse(str(tmp_path / "empty"))
    runner = SparkPassRunner(SparkTables(spark, empty), CLUSTER, DAY, DAYS)
    (found,) = runner.run(COUNT_PASS, deal(np.zeros(BUCKETS, np.int64)), 1)
    runner.commit(None)
    assert found.queues.is_empty()
    assert progress_of(empty).is_empty()
    assert empty.exists("gold.queue_progress")


def test_an_engine_of_spark_makes_the_runner(spark: Any, warehouse: Warehouse) -> None:
    runner = SparkEngine(lambda small: spark).pass_runner(warehouse, CLUSTER, DAY, DAYS)
    assert isinstance(runner, SparkPassRunner)
    assert queues_of(counted(runner, warehouse, 10_000))["pulls"].max() == (LARGE + 1) * 10


def test_the_driver_reads_by_name_what_it_reads_from_files(warehouse: Warehouse, named: Warehouse) -> None:
    files = file_rows(warehouse, CLUSTER, DAYS)
    by_name = NamedRows(named, CLUSTER)
    wanted = pl.col("queue_id") > 100
    for columns in (None, ["queue_id", "topic"]):
        theirs, ours = (each.read("silver.pull", Days(DAY, DAY), wanted, None, columns) for each in (files, by_name))
        assert_frame_equal(theirs, ours, check_row_order=False)


def test_buckets_of_spark_are_those_of_files(spark: Any) -> None:
    key = key_of(("broker_name", "queue_topic|topic", "queue_id"))
    schema = "broker_name STRING, queue_topic STRING, topic STRING, queue_id INT"
    listed = [("b", None, "t", 1), ("b", "%RETRY%g", "t", -1), (None, None, None, None), ("é", "", "t", 7)]
    frame = pl.DataFrame(listed, ["broker_name", "queue_topic", "topic", "queue_id"], orient="row")
    expected = [(*row, number) for row, number in zip(listed, buckets(frame, key).to_list(), strict=True)]
    made = spark.createDataFrame(listed, schema).withColumn("bucket", bucket(key).cast("int"))
    assert_df_equality(made, spark.createDataFrame(expected, f"{schema}, bucket INT"), ignore_nullable=True)


def test_the_jobs_of_a_pass_are_described(spark: Any, warehouse: Warehouse) -> None:
    """Spark's UI and event log say what each job is about, and for which cluster and day."""
    runner = SparkPassRunner(SparkTables(spark, warehouse), CLUSTER, DAY, DAYS)
    list(runner.run(COUNT_PASS, deal(np.ones(BUCKETS, np.int64), BUCKETS), 10))
    jobs = spark.sparkContext._jsc.sc().statusStore().jobsList(None)
    told = [jobs.apply(number).description() for number in range(jobs.size())]
    assert f"count pulls of {CLUSTER}, {DAY}" in {text.get() for text in told if text.isDefined()}
    assert spark.sparkContext.getLocalProperty("spark.job.description") is None
