"""Rows of Spark in a store: tasks write files, and the driver commits them under the warehouse's lock."""

from __future__ import annotations

import polars as pl
import pytest
from polars.testing import assert_frame_equal
from pyspark.sql import DataFrame, SparkSession

from mqreplay.engines import spark_tables
from mqreplay.engines.spark_tables import SparkTables
from mqreplay.lake.ipc_blobs import blob_of
from mqreplay.lake.lease import lease_lock
from mqreplay.lake.row_filter import RowFilter
from mqreplay.lake.table_writer import TableWriter, WrittenFile, as_table
from mqreplay.lake.warehouse import Warehouse
from mqreplay.settings import load_settings
from mqreplay.words.errors import StoreUnavailable
from storage.test_lease import LEASE_S, root
from tests_shared import SAMPLE, run

__all__ = ["root"]  # a fixture
TABLE = "silver.heartbeat"


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    """A local warehouse with the heartbeats of the sample, which have lists of structs."""
    place = str(tmp_path_factory.mktemp("local"))
    run("ingest", place, load_settings(), lambda text: None, recordings=[str(SAMPLE / "orders-4.9.7")])
    return Warehouse(place)


def blobs_of(spark: SparkSession, rows: pl.DataFrame, writer: TableWriter) -> DataFrame:
    """Return rows as two packed values, each of a partition."""
    half = len(rows) // 2
    parts = [as_table(each, writer.asked, TABLE) for each in (rows[:half], rows[half:])]
    return spark.createDataFrame([(bytearray(blob_of(each)),) for each in parts], "data BINARY").repartition(2)


def test_tasks_write_files_that_the_driver_commits(spark: SparkSession, root: str, local: Warehouse) -> None:
    remote, rows = Warehouse(root), local.read(TABLE).collect()
    (cluster,) = rows["cluster"].unique()
    writer = remote.writer(TABLE, {"cluster": cluster}, "ts")
    with lease_lock(root, LEASE_S):
        SparkTables(spark, remote).commit(TABLE, blobs_of(spark, rows, writer), writer, None)
        assert_frame_equal(remote.read(TABLE).collect(), rows, check_row_order=False)
        replaced = RowFilter(cluster, frozenset(rows["day"]))
        SparkTables(spark, remote).commit(TABLE, blobs_of(spark, rows[:5], writer), writer, replaced)
    assert_frame_equal(remote.read(TABLE).collect(), rows[:5], check_row_order=False)


def test_a_lock_that_is_lost_while_tasks_write_leaves_no_version(
    spark: SparkSession, root: str, local: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    remote, rows, write = Warehouse(root), local.read(TABLE).collect(), spark_tables._written
    writer = remote.writer(TABLE, {"cluster": rows["cluster"][0]}, "ts")
    with lease_lock(root, LEASE_S) as lease:
        SparkTables(spark, remote).commit(TABLE, blobs_of(spark, rows[:5], writer), writer, None)
        before = remote.version(TABLE)

        def slow(writer: TableWriter, blobs: DataFrame) -> list[WrittenFile]:
            files = write(writer, blobs)
            lease._lost = True
            return files

        monkeypatch.setattr(spark_tables, "_written", slow)
        with pytest.raises(StoreUnavailable, match="could not be renewed in time"):
            SparkTables(spark, remote).commit(TABLE, blobs_of(spark, rows, writer), writer, None)
        assert remote.version(TABLE) == before
        lease._lost = False
