"""Tables that delta-rs commits: Spark, polars and delta-rs read and extend them, and mqreplay theirs."""

from __future__ import annotations

import datetime as dt
import os
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import DeltaError
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from everything_table import TABLE, ids, ids_of_spark, log_of, table_of
from made_warehouse import live_files
from mqreplay.lake.delta_table import COMMITTED_BY
from mqreplay.lake.duckdb_database import Database
from mqreplay.lake.row_filter import RowFilter
from mqreplay.lake.sql import literal
from mqreplay.lake.warehouse import Warehouse
from mqreplay.words.errors import ContractError, InputError

ALL = RowFilter("c")
Refused = (PySparkException, Py4JJavaError)
NAMES = ["a b", "night[1]", "{a,b}*?", "päckchen 東京", "a:b #`'\"", "${env:HOME}[1]", "env=prod"]
CLUSTERS = ["a/ b=%", "..", ".", " ", "a%2Fb", "a:b?*[]{}#&'\"`$\\", "\n\t", "null", "x" * 200]


def ids_of(rows: Any) -> list[int]:
    return sorted(row.id for row in rows)


def ids_of_delta_rs(warehouse: Warehouse) -> list[int]:
    return sorted(DeltaTable(warehouse.location(TABLE)).to_pyarrow_table(columns=["id"])["id"].to_pylist())


def detail(spark, warehouse: Warehouse) -> Any:
    return spark.sql(f"DESCRIBE DETAIL {table_of(warehouse)}").collect()[0]


def to_version(warehouse: Warehouse, rows, version: int) -> list[int]:
    """Append a row a version; return their ids. Versions 0 and 1 make the table."""
    for number in range(2, version + 1):
        warehouse.replace_rows(TABLE, rows({"id": number}), None)
        assert warehouse.version(TABLE) == number
    return list(range(2, version + 1))


def test_spark_knows_the_contract_and_reads_every_type(spark, warehouse, rows) -> None:
    nothing = dict.fromkeys(c.name for c in warehouse.contracts[TABLE].columns if c.nullable)
    day = {"day": dt.date(2026, 1, 2)}
    warehouse.replace_rows(TABLE, rows({"id": 1}), ALL)
    warehouse.replace_rows(TABLE, rows({"id": 2} | nothing), None)
    found = spark.sql(f"SELECT * FROM {table_of(warehouse)} ORDER BY id").collect()
    full, empty = (row.asDict(recursive=True) for row in found)
    (wanted,) = warehouse.read(TABLE).filter(id=1).collect().to_dicts()
    assert full == wanted | {"at": wanted["at"].replace(tzinfo=None), "content": bytearray(wanted["content"])}
    assert empty == {"cluster": "c", "id": 2} | day | nothing

    described = spark.sql(f"DESCRIBE TABLE {table_of(warehouse)}").collect()
    comments = {r.col_name: r.comment for r in described if not r.col_name.startswith("#")}
    assert comments["bytes"] == "It's a size (bytes)"
    found = detail(spark, warehouse)
    assert found.partitionColumns == ["cluster", "day"]
    assert found.description == "One row is a value of every type; it's quoted"
    assert found.properties["delta.constraints.id_positive"] == "id > 0"
    assert (found.minReaderVersion, found.minWriterVersion) == (1, 3)
    history = spark.sql(f"DESCRIBE HISTORY {table_of(warehouse)}").collect()
    assert [h.operation for h in history] == ["WRITE", "WRITE", "ADD CONSTRAINT", "CREATE TABLE"]
    assert [h.version for h in history] == [3, 2, 1, 0]
    said = f"{COMMITTED_BY}: 1 rows in 1 files added, 0 rows in 0 files removed"
    assert [h.userMetadata for h in history] == [said, said, COMMITTED_BY, COMMITTED_BY]
    warehouse.replace_rows(TABLE, rows({"id": 3}), ALL)
    last = spark.sql(f"DESCRIBE HISTORY {table_of(warehouse)} LIMIT 1").collect()[0]
    assert last.userMetadata == f"{COMMITTED_BY}: 1 rows in 1 files added, 2 rows in 2 files removed"


def test_a_table_is_what_the_ddl_of_its_contract_makes(spark, warehouse, contracts) -> None:
    warehouse.replace_rows(TABLE, [], None)
    by_ddl = Warehouse(f"{warehouse.root}-by-ddl", contracts)
    contract = contracts[TABLE]
    columns = ", ".join(
        f"`{c.name}` {c.type}{'' if c.nullable else ' NOT NULL'} COMMENT {literal(c.comment)}" for c in contract.columns
    )
    properties = ", ".join(f"{literal(k)} = {literal(v)}" for k, v in contract.properties.items())
    spark.sql(
        f"CREATE TABLE {table_of(by_ddl)} ({columns}) USING delta PARTITIONED BY ({', '.join(contract.partitioned_by)})"
        f" COMMENT {literal(contract.description)} TBLPROPERTIES ({properties})"
    )
    for name, condition in contract.checks.items():
        spark.sql(f"ALTER TABLE {table_of(by_ddl)} ADD CONSTRAINT {name} CHECK ({condition})")

    def described(one: Warehouse) -> tuple[Any, ...]:
        fields = DeltaTable(one.location(TABLE)).schema().to_json()
        found = detail(spark, one)
        protocol = found.minReaderVersion, found.minWriterVersion, sorted(found.tableFeatures)
        set_here = {
            key: value for key, value in found.properties.items() if key in contract.properties or "constraints" in key
        }
        return fields, found.description, found.partitionColumns, set_here, protocol

    assert described(warehouse) == described(by_ddl)


def test_spark_skips_files_by_a_range_of_instants(spark, warehouse, rows) -> None:
    """The log has bounds of instants, of both writers of a table: a range of them needs few files, and ZORDER works."""
    warehouse.replace_rows(TABLE, [], None)
    table = spark.read.format("delta").load(warehouse.location(TABLE))
    for hour in (1, 2, 3):
        warehouse.replace_rows(TABLE, rows({"id": hour, "at": rows({})[0][5].replace(hour=hour)}), None)
    by_spark = table.where("id = 3").selectExpr("* EXCEPT (at)", "at + INTERVAL 1 HOUR AS at")
    by_spark.write.format("delta").mode("append").save(warehouse.location(TABLE))
    of_hour = table.where("at >= TIMESTAMP'2026-01-02 04:00:00Z'")
    assert len(table.inputFiles()) == 4
    assert (len(of_hour.inputFiles()), of_hour.count()) == (1, 1)
    spark.sql(f"OPTIMIZE {table_of(warehouse)} ZORDER BY (at)")
    assert ids(warehouse) == [1, 2, 3, 3]


def test_spark_skips_files_of_other_partitions(spark, warehouse, rows) -> None:
    for day in (1, 2, 3):
        at = rows({})[0][5].replace(day=day)
        warehouse.replace_rows(TABLE, rows({"id": day, "at": at, "day": at.date()}), None)
    one = spark.read.format("delta").load(warehouse.location(TABLE)).where("day = DATE'2026-01-02'")
    assert len(one.inputFiles()) == 1
    assert [found.id for found in one.collect()] == [2]


@pytest.mark.long
def test_partitions_of_any_cluster_are_read_and_extended_by_all(spark, warehouse, rows, compact) -> None:
    """Each cluster has a row of mqreplay's and one of Spark's, which is then replaced."""
    location, schema = warehouse.location(TABLE), warehouse.contracts[TABLE].arrow_schema
    for cluster in CLUSTERS:
        warehouse.replace_rows(TABLE, rows({"id": 1, "cluster": cluster}), None)
        warehouse.replace_rows(TABLE, rows({"id": 2, "cluster": cluster}), RowFilter(cluster))
    frame = spark.read.format("delta").load(location)
    frame.withColumn("id", frame.id + 1).write.format("delta").mode("append").save(location)
    with Database() as database:
        for cluster in CLUSTERS:
            query = database.files(schema, warehouse.listed_files(TABLE, RowFilter(cluster)))
            found = database.run(f"SELECT cluster, id FROM ({query}) ORDER BY id")
            assert found == [(cluster, 2), (cluster, 3)]
            some = RowFilter(cluster, wanted=pl.col("id") > 2)
            warehouse.replace_rows(TABLE, rows({"id": 4, "cluster": cluster}), some)
    compact()
    assert len(live_files(warehouse, TABLE)) == len(CLUSTERS)
    wanted = sorted((cluster, number) for cluster in CLUSTERS for number in (2, 4))
    assert sorted((row.cluster, row.id) for row in frame.select("cluster", "id").collect()) == wanted
    assert sorted(pl.read_delta(location).select("cluster", "id").rows()) == wanted
    assert sorted(warehouse.read(TABLE).select("cluster", "id").collect().rows()) == wanted
    by_delta_rs = DeltaTable(location).to_pyarrow_table(columns=["cluster", "id"])
    assert sorted((row["cluster"], row["id"]) for row in by_delta_rs.to_pylist()) == wanted
    for cluster in CLUSTERS:
        assert ids_of(frame.where(frame.cluster == cluster).collect()) == [2, 4]
        assert sorted(warehouse.read(TABLE, RowFilter(cluster)).collect()["id"]) == [2, 4]


@pytest.mark.first_case
@pytest.mark.parametrize("cluster", ["a/ b=%ü", "東京"])
def test_partitions_of_a_cluster_that_is_not_ascii_are_read_by_all(spark, warehouse, rows, compact, cluster) -> None:
    location, mine = warehouse.location(TABLE), RowFilter(cluster)
    for number in (1, 2):
        warehouse.replace_rows(TABLE, rows({"id": number, "cluster": cluster}), None)
    warehouse.replace_rows(TABLE, rows({"id": 3, "cluster": cluster}), RowFilter(cluster, wanted=pl.col("id") > 1))
    compact()
    frame = spark.read.format("delta").load(location)
    assert ids_of(frame.where(frame.cluster == cluster).collect()) == [1, 3]
    assert ids_of_delta_rs(warehouse) == sorted(pl.read_delta(location).filter(cluster=cluster)["id"]) == [1, 3]
    frame.withColumn("id", frame.id + 6).write.format("delta").mode("append").save(location)
    assert ids(warehouse) == [1, 3, 7, 9]
    with pytest.raises(ContractError, match="delete them by the program that wrote them"):
        warehouse.replace_rows(TABLE, [], mine)  # delta-rs would write their names in another way than Spark
    compact()
    assert ids(warehouse) == ids_of_spark(spark, warehouse) == [1, 3, 7, 9]
    spark.sql(f"DELETE FROM {table_of(warehouse)} WHERE id > 6")
    warehouse.replace_rows(TABLE, rows({"id": 4, "cluster": cluster}), mine)
    assert ids(warehouse) == ids_of_spark(spark, warehouse) == [4]


@pytest.mark.parametrize("cluster", ["東京" * 30, "x" * 300, "__HIVE_DEFAULT_PARTITION__", ""], ids=ascii)
def test_a_cluster_that_no_folder_can_be_named_after_is_refused(warehouse, rows, cluster: str) -> None:
    with pytest.raises(InputError, match="give another --cluster"):
        warehouse.replace_rows(TABLE, rows({"cluster": cluster}), None)
    assert not warehouse.exists(TABLE)


def test_a_broken_check_is_refused_by_deltas_own_writers(spark, warehouse, rows, same_rows) -> None:
    warehouse.replace_rows(TABLE, rows({"id": 1}), None)
    wrong = DeltaTable(warehouse.location(TABLE)).to_pyarrow_table().set_column(1, "id", pa.array([0], pa.int32()))
    with pytest.raises(DeltaError, match="1 rows failed validation check"):
        write_deltalake(warehouse.location(TABLE), wrong, mode="append")
    with pytest.raises(Refused, match="id_positive"):
        spark.sql(f"INSERT INTO {table_of(warehouse)} (cluster, id, day) VALUES ('c', 0, DATE'2026-01-02')")
    same_rows({"id": 1})


@pytest.mark.parametrize("instants", ["TIMESTAMP_MICROS", "INT96"])
def test_what_spark_writes_is_read_replaced_and_restored(spark, warehouse, rows, same_rows, compact, instants) -> None:
    table = table_of(warehouse)
    warehouse.replace_rows(TABLE, rows({"id": 1}, {"id": 2}), ALL)
    as_it_was = spark.conf.get("spark.sql.parquet.outputTimestampType")
    spark.conf.set("spark.sql.parquet.outputTimestampType", instants)
    try:
        columns = ", ".join("id + 2" if c.name == "id" else c.name for c in warehouse.contracts[TABLE].columns)
        spark.sql(f"INSERT INTO {table} SELECT {columns} FROM {table}")
        with pytest.raises(Refused, match=r"(?i)not null|id_positive"):
            spark.sql(f"INSERT INTO {table} (cluster, id, day) VALUES ('c', NULL, DATE'2026-01-02')")
        with pytest.raises(Refused, match=r"(?i)not null"):
            spark.sql(f"INSERT INTO {table} (cluster, id, day) VALUES ('c', 5, NULL)")
        same_rows({"id": 1}, {"id": 2}, {"id": 3}, {"id": 4})
        compact()
    finally:
        spark.conf.set("spark.sql.parquet.outputTimestampType", as_it_was)
    same_rows({"id": 1}, {"id": 2}, {"id": 3}, {"id": 4})
    assert len(live_files(warehouse, TABLE)) == 1
    compacted = warehouse.version(TABLE)
    warehouse.replace_rows(TABLE, rows({"id": 5}), RowFilter("c", wanted=pl.col("id").is_in([2, 3, 5])))
    with pytest.raises(ContractError):
        warehouse.replace_rows(TABLE, rows({"id": 0}), None)
    same_rows({"id": 1}, {"id": 4}, {"id": 5})
    assert ids_of_spark(spark, warehouse) == ids_of_delta_rs(warehouse) == [1, 4, 5]
    warehouse.restore(TABLE, compacted)
    same_rows({"id": 1}, {"id": 2}, {"id": 3}, {"id": 4})
    warehouse.restore(TABLE, 2)
    assert ids_of_spark(spark, warehouse) == ids_of_delta_rs(warehouse) == ids(warehouse) == [1, 2]
    spark.sql(f"OPTIMIZE {table}")
    assert ids(warehouse) == [1, 2]


@pytest.mark.first_case
@pytest.mark.parametrize("log_is_kept", [True, False])
def test_checkpoints_are_read_by_spark_and_keep_partitions_and_checks(spark, warehouse, rows, log_is_kept) -> None:
    wanted = to_version(warehouse, rows, 51)
    log = log_of(warehouse)
    (checkpoint,) = log.glob("*.checkpoint.parquet")
    assert len(list(log.glob("*.json"))) == 52
    if not log_is_kept:
        for version in range(int(checkpoint.name[:20])):
            (log / f"{version:020}.json").unlink()
    assert ids_of_spark(spark, warehouse) == ids_of_delta_rs(warehouse) == ids(warehouse) == wanted
    found = detail(spark, warehouse)
    assert found.partitionColumns == ["cluster", "day"]
    assert found.properties["delta.constraints.id_positive"] == "id > 0"
    with pytest.raises(Refused, match="id_positive"):
        spark.sql(f"INSERT INTO {table_of(warehouse)} (cluster, id, day) VALUES ('c', 0, DATE'2026-01-02')")
    warehouse.replace_rows(TABLE, rows({"id": 99}), ALL)
    assert ids_of_spark(spark, warehouse) == ids(warehouse) == [99]


@pytest.mark.long
def test_spark_deletes_no_version_that_a_rollback_needs(spark, warehouse, rows, same_rows) -> None:
    to_version(warehouse, rows, 48)
    for path in log_of(warehouse).iterdir():
        os.utime(path, (0, 0))
    for number in range(2):  # Spark writes a checkpoint at version 50
        spark.sql(f"INSERT INTO {table_of(warehouse)} (cluster, id, day) VALUES ('d', {number + 1}, DATE'2026-01-02')")
    assert (log_of(warehouse) / f"{50:020}.checkpoint.parquet").exists()
    assert len(list(log_of(warehouse).glob("*.json"))) == 51
    warehouse.restore(TABLE, 3)
    same_rows({"id": 2}, {"id": 3})


@pytest.mark.parametrize("name", NAMES, ids=ascii)
def test_folders_of_any_name_hold_tables(contracts, rows, tmp_path: Path, name: str) -> None:
    warehouse = Warehouse(str(tmp_path / name), contracts)
    to_version(warehouse, rows, 3)
    warehouse.replace_rows(TABLE, rows({"id": 99}), ALL)
    assert ids(warehouse) == ids_of_delta_rs(warehouse) == [99]
    warehouse.restore(TABLE, 3)
    assert ids(warehouse) == [2, 3]
    warehouse.drop(TABLE)
    assert not Path(warehouse.location(TABLE)).exists()


def test_spark_reads_a_folder_whose_name_has_letters_of_urls(spark, contracts, rows, tmp_path: Path) -> None:
    warehouse = Warehouse(str(tmp_path / "a`b[1] ü"), contracts)
    warehouse.replace_rows(TABLE, rows({"id": 1}), None)
    assert ids_of_spark(spark, warehouse) == [1]


@pytest.mark.parametrize("name", ["100% %20 %25", "a\\b\\"])
def test_a_folder_that_delta_rs_cannot_open_is_refused_in_one_line(contracts, rows, tmp_path: Path, name: str) -> None:
    warehouse = Warehouse(str(tmp_path / name), contracts)
    with pytest.raises(InputError, match="use another folder"):
        warehouse.replace_rows(TABLE, rows({"id": 1}), None)
    assert not warehouse.exists(TABLE)


def test_a_table_without_partitions_is_refused_in_one_line(warehouse, rows) -> None:
    """Tables of 0.1 are clustered."""
    frame = warehouse.read(TABLE).drop("settings").collect()
    write_deltalake(warehouse.location(TABLE), frame)
    for use in (lambda: warehouse.read(TABLE), lambda: warehouse.replace_rows(TABLE, rows({"id": 1}), None)):
        with pytest.raises(ContractError, match=r"mqreplay nightly RECORDING\.\.\. --warehouse NEW") as error:
            use()
        assert "\n" not in str(error.value)


@pytest.mark.long
def test_rows_that_spark_marked_as_gone_are_never_read(spark, warehouse, rows, same_rows) -> None:
    warehouse.replace_rows(TABLE, rows({"id": 1}, {"id": 2}), None)
    table = table_of(warehouse)
    spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES (delta.enableDeletionVectors = true)")
    same_rows({"id": 1}, {"id": 2})
    spark.sql(f"DELETE FROM {table} WHERE id = 1")
    with pytest.raises(ContractError, match="REORG TABLE") as error:
        warehouse.read(TABLE)
    spark.sql("REORG TABLE" + str(error.value).rsplit("REORG TABLE", 1)[1].removesuffix(" in Spark SQL"))
    same_rows({"id": 2})
    warehouse.replace_rows(TABLE, rows({"id": 3}), None)
    assert ids_of_spark(spark, warehouse) == [2, 3]


def test_spark_replaces_a_day_of_a_table_by_cluster_alone(spark, tmp_path, contracts, rows) -> None:
    contract = contracts[TABLE].partitioned_as(("cluster",))
    warehouse, days = Warehouse(str(tmp_path / "by-cluster"), {TABLE: contract}), [dt.date(2026, 1, n) for n in (2, 3)]
    for number, day in enumerate(days, 1):
        warehouse.replace_rows(TABLE, rows({"id": number, "day": day}), None)
    before = warehouse.version(TABLE)
    new = spark.createDataFrame(rows({"id": 3, "day": days[0]}), contract.ddl())
    warehouse.commit_frame(TABLE, new, RowFilter("c", frozenset({days[0]})))
    assert warehouse.version(TABLE) == before + 1
    spark.sql(f"INSERT INTO {table_of(warehouse)} (cluster, id, day) VALUES ('c', 4, DATE'2026-01-04')")
    listed = [len(warehouse.listed_files(TABLE, RowFilter("c", frozenset({day})))) for day in days]
    assert (listed, ids(warehouse), ids_of_spark(spark, warehouse)) == ([1, 1], [2, 3, 4], [2, 3, 4])
