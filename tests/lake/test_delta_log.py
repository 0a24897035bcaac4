"""Commits without Java follow Delta's protocol: Spark and delta-rs read and extend them, and mqreplay theirs."""

from __future__ import annotations

import errno
import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from deltalake import DeltaTable
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from mqreplay.errors import ContractError
from mqreplay.lake import files
from mqreplay.lake.delta_log import CommitConflict, commit
from mqreplay.lake.files import LocalFiles
from mqreplay.lake.journal import Journal
from mqreplay.lake.orphans import remove_torn_log_files
from mqreplay.lake.rows import Rows
from mqreplay.lake.sql import quoted
from mqreplay.lake.warehouse import Warehouse

TABLE = "silver.everything"
ALL = Rows("c")
Refused = (PySparkException, Py4JJavaError)
NAMES = ["a b", "100% %20 %25", "a\\b\\", "night[1]", "{a,b}*?", "päckchen 東京", "a:b #`'\"", "${env:HOME}[1]"]


def log_of(warehouse: Warehouse) -> Path:
    return Path(warehouse.location(TABLE), "_delta_log")


def ids(warehouse: Warehouse) -> list[int]:
    return sorted(warehouse.read(TABLE).select("id").collect()["id"])


def ids_of_spark(spark, warehouse: Warehouse) -> list[int]:
    return sorted(row.id for row in spark.sql(f"SELECT id FROM {table_of(warehouse)}").collect())


def ids_of_delta_rs(warehouse: Warehouse) -> list[int]:
    return sorted(DeltaTable(warehouse.location(TABLE)).to_pyarrow_table(columns=["id"])["id"].to_pylist())


def table_of(warehouse: Warehouse) -> str:
    return "delta.`" + warehouse.location(TABLE).replace("`", "``") + "`"


def detail(spark, warehouse: Warehouse) -> Any:
    return spark.sql(f"DESCRIBE DETAIL {table_of(warehouse)}").collect()[0]


def to_version(warehouse: Warehouse, rows, version: int) -> list[int]:
    """Append a row a version; return their ids."""
    for number in range(version + 1):
        assert (warehouse.version(TABLE) or 0) <= number
        warehouse.put(TABLE, rows({"id": number + 1}), None)
    return list(range(1, version + 2))


def test_spark_knows_the_contract_and_reads_every_type(spark, warehouse, rows) -> None:
    nothing = dict.fromkeys(c.name for c in warehouse.contracts[TABLE].columns if c.nullable)
    warehouse.put(TABLE, rows({"id": 1}), ALL)
    warehouse.put(TABLE, rows({"id": 2} | nothing), None)
    found = spark.sql(f"SELECT * FROM {table_of(warehouse)} ORDER BY id").collect()
    full, empty = (row.asDict(recursive=True) for row in found)
    (wanted,) = warehouse.read(TABLE).filter(id=1).collect().to_dicts()
    assert full == wanted | {"at": wanted["at"].replace(tzinfo=None), "content": bytearray(wanted["content"])}
    assert empty == {"cluster": "c", "id": 2} | nothing

    described = spark.sql(f"DESCRIBE TABLE {table_of(warehouse)}").collect()
    comments = {r.col_name: r.comment for r in described if not r.col_name.startswith("#")}
    assert comments["bytes"] == "It's a size (bytes)"
    said = detail(spark, warehouse)
    assert said.clusteringColumns == ["cluster", "day"]
    assert said.description == "One row is a value of every type; it's quoted"
    assert said.properties["delta.constraints.id_positive"] == "id > 0"
    assert said.minReaderVersion == 1
    history = spark.sql(f"DESCRIBE HISTORY {table_of(warehouse)}").collect()
    assert [(h.operation, h.isBlindAppend) for h in history] == [("WRITE", True), ("WRITE", False)]


def made(warehouse: Warehouse) -> dict[str, object]:
    """What the table's first commit says of the table, but for its id and when it was."""
    lines = (log_of(warehouse) / f"{0:020}.json").read_text(encoding="utf-8").splitlines()
    actions = {kind: action for line in lines for kind, action in json.loads(line).items()}
    table = {name: value for name, value in actions["metaData"].items() if name not in ("id", "createdTime")}
    table["schemaString"] = json.loads(table["schemaString"])
    clustered = json.loads(actions["domainMetadata"]["configuration"])
    features = sorted(actions["protocol"].pop("writerFeatures"))
    return {"table": table, "clustered": clustered, "features": features, "protocol": actions["protocol"]}


def test_a_table_is_what_the_ddl_of_its_contract_makes(spark, warehouse, contracts) -> None:
    warehouse.put(TABLE, [], None)
    by_ddl = Warehouse(f"{warehouse.root}-by-ddl", contracts)
    contract = contracts[TABLE]
    columns = ", ".join(
        f"`{c.name}` {c.type}{'' if c.nullable else ' NOT NULL'} COMMENT {quoted(c.comment)}" for c in contract.columns
    )
    properties = ", ".join(f"{quoted(k)} = {quoted(v)}" for k, v in contract.properties.items())
    spark.sql(
        f"CREATE TABLE {table_of(by_ddl)} ({columns}) USING delta CLUSTER BY ({', '.join(contract.clustered_by)}) "
        f"COMMENT {quoted(contract.description)} TBLPROPERTIES ({properties})"
    )
    assert made(warehouse) == made(by_ddl)


def test_spark_skips_files_by_the_bounds_of_a_landing(spark, warehouse, rows) -> None:
    for day in (1, 2, 3):
        at = rows({})[0][5].replace(day=day)
        warehouse.put(TABLE, rows({"id": day, "at": at, "day": at.date()}), None)
    one = spark.read.format("delta").load(warehouse.location(TABLE)).where("day = DATE'2026-01-02'")
    assert len(one.inputFiles()) == 1
    assert [found.id for found in one.collect()] == [2]


@pytest.mark.parametrize("instants", ["TIMESTAMP_MICROS", "INT96"])
def test_what_spark_writes_is_read_replaced_and_restored(spark, warehouse, rows, same_rows, compact, instants) -> None:
    table = table_of(warehouse)
    warehouse.put(TABLE, rows({"id": 1}, {"id": 2}), ALL)
    as_it_was = spark.conf.get("spark.sql.parquet.outputTimestampType")
    spark.conf.set("spark.sql.parquet.outputTimestampType", instants)
    try:
        columns = ", ".join("id + 2" if c.name == "id" else c.name for c in warehouse.contracts[TABLE].columns)
        spark.sql(f"INSERT INTO {table} SELECT {columns} FROM {table}")
        with pytest.raises(Refused, match="id_positive"):
            spark.sql(f"INSERT INTO {table} (cluster, id) VALUES ('c', 0)")
        with pytest.raises(Refused, match=r"(?i)not null|id_positive"):
            spark.sql(f"INSERT INTO {table} (cluster, id) VALUES ('c', NULL)")
        same_rows({"id": 1}, {"id": 2}, {"id": 3}, {"id": 4})
        compact()
    finally:
        spark.conf.set("spark.sql.parquet.outputTimestampType", as_it_was)
    same_rows({"id": 1}, {"id": 2}, {"id": 3}, {"id": 4})
    assert len(warehouse.live_files(TABLE)) == 1
    compacted = warehouse.version(TABLE)
    warehouse.put(TABLE, rows({"id": 5}), Rows("c", wanted=pl.col("id").is_in([2, 3, 5])))
    with pytest.raises(ContractError):
        warehouse.put(TABLE, rows({"id": 0}), None)
    same_rows({"id": 1}, {"id": 4}, {"id": 5})
    assert ids_of_spark(spark, warehouse) == ids_of_delta_rs(warehouse) == [1, 4, 5]
    warehouse.restore(TABLE, compacted)
    same_rows({"id": 1}, {"id": 2}, {"id": 3}, {"id": 4})
    warehouse.restore(TABLE, 0)
    assert ids_of_spark(spark, warehouse) == ids_of_delta_rs(warehouse) == ids(warehouse) == [1, 2]
    spark.sql(f"OPTIMIZE {table} FULL")
    assert detail(spark, warehouse).clusteringColumns == ["cluster", "day"]


@pytest.mark.parametrize("log_is_kept", [True, False])
def test_checkpoints_are_read_by_spark_and_keep_the_clustering(spark, warehouse, rows, log_is_kept) -> None:
    wanted = to_version(warehouse, rows, 11)
    log = log_of(warehouse)
    assert [path.name for path in log.glob("*.checkpoint*")] == [f"{10:020}.checkpoint.parquet"]
    assert len(list(log.glob("*.json"))) == 12
    if not log_is_kept:
        for version in range(10):
            (log / f"{version:020}.json").unlink()
    assert ids_of_spark(spark, warehouse) == ids_of_delta_rs(warehouse) == ids(warehouse) == wanted
    said = detail(spark, warehouse)
    assert said.clusteringColumns == ["cluster", "day"]
    assert said.properties["delta.constraints.id_positive"] == "id > 0"
    with pytest.raises(Refused, match="id_positive"):
        spark.sql(f"INSERT INTO {table_of(warehouse)} (cluster, id) VALUES ('c', 0)")
    warehouse.put(TABLE, rows({"id": 99}), ALL)
    assert ids_of_spark(spark, warehouse) == ids(warehouse) == [99]


def test_spark_deletes_no_version_that_a_rollback_needs(spark, warehouse, rows, same_rows) -> None:
    to_version(warehouse, rows, 8)
    for path in log_of(warehouse).iterdir():
        os.utime(path, (0, 0))
    for number in range(2):  # Spark writes a checkpoint at version 10
        spark.sql(f"INSERT INTO {table_of(warehouse)} (cluster, id) VALUES ('d', {number + 1})")
    assert (log_of(warehouse) / f"{10:020}.checkpoint.parquet").exists()
    assert len(list(log_of(warehouse).glob("*.json"))) == 11
    warehouse.restore(TABLE, 1)
    same_rows({"id": 1}, {"id": 2})


def test_both_commits_of_writers_who_race_for_a_version_count(warehouse, rows, monkeypatch) -> None:
    warehouse.put(TABLE, rows({"id": 1}), None)
    conflicts: list[str] = []
    both = threading.Barrier(2, timeout=60)
    write_first = files.os.link

    def link(source: Any, target: Any) -> None:
        if not conflicts and Path(target).name == f"{1:020}.json":
            both.wait()
        try:
            write_first(source, target)
        except FileExistsError:
            conflicts.append(Path(target).name)
            raise

    monkeypatch.setattr("mqreplay.lake.files.os.link", link)
    work = [
        threading.Thread(target=warehouse.put, args=(TABLE, rows({"id": 2}), None)),
        threading.Thread(target=warehouse.put, args=(TABLE, rows({"id": 3}), Rows("c", wanted=pl.col("id") > 1))),
    ]
    for thread in work:
        thread.start()
    for thread in work:
        thread.join()
    assert conflicts == [f"{1:020}.json"]
    assert warehouse.version(TABLE) == 2
    # The one that replaces comes first or last.
    assert ids(warehouse) in ([1, 2, 3], [1, 3])


def test_writers_who_make_the_table_at_once_make_one(warehouse, rows, monkeypatch) -> None:
    version = Warehouse.version
    blind: Iterator[bool] = iter([True])

    def stale(self: Warehouse, name: str) -> int | None:
        """Nothing is there when first asked: another writer makes it after that."""
        if next(blind, False):
            other = Warehouse(self.root, self.contracts)
            other.put(TABLE, rows({"id": 1}), None)
            return None
        return version(self, name)

    monkeypatch.setattr(Warehouse, "version", stale)
    warehouse.take(TABLE, [], None)
    assert ids(warehouse) == [1]


def test_a_writer_who_always_comes_too_late_says_so(warehouse, rows, monkeypatch) -> None:
    warehouse.put(TABLE, rows({"id": 1}), None)

    def late(*_: Any, **__: Any) -> None:
        raise CommitConflict

    monkeypatch.setattr("mqreplay.lake.warehouse.commit", late)
    with pytest.raises(ContractError, match="is constantly written by other programs"):
        warehouse.put(TABLE, rows({"id": 2}), None)
    monkeypatch.undo()
    assert ids(warehouse) == [1]


@pytest.mark.parametrize("name", NAMES, ids=ascii)
def test_folders_of_any_name_hold_tables(contracts, rows, tmp_path: Path, name: str) -> None:
    warehouse = Warehouse(str(tmp_path / name), contracts)
    to_version(warehouse, rows, 10)
    warehouse.put(TABLE, rows({"id": 99}), ALL)
    assert ids(warehouse) == [99]
    warehouse.restore(TABLE, 1)
    assert ids(warehouse) == [1, 2]
    warehouse.drop(TABLE)
    assert not Path(warehouse.location(TABLE)).exists()


def test_spark_reads_a_folder_whose_name_has_letters_of_urls(spark, contracts, rows, tmp_path: Path) -> None:
    warehouse = Warehouse(str(tmp_path / "100%25 a`b[1]"), contracts)
    warehouse.put(TABLE, rows({"id": 1}), None)
    assert ids_of_spark(spark, warehouse) == [1]


def no_links(source: Any, target: Any) -> None:
    raise OSError(errno.EPERM, os.strerror(errno.EPERM))


def test_a_file_system_without_hard_links_will_do(warehouse, rows, monkeypatch) -> None:
    monkeypatch.setattr("mqreplay.lake.files.os.link", no_links)
    warehouse.put(TABLE, rows({"id": 1}), None)
    warehouse.put(TABLE, rows({"id": 2}), None)
    before = (log_of(warehouse) / f"{1:020}.json").read_bytes()
    with pytest.raises(CommitConflict):
        commit(warehouse.location(TABLE), 1, [], overwrites=False)
    assert (log_of(warehouse) / f"{1:020}.json").read_bytes() == before
    assert ids(warehouse) == [1, 2]
    assert list(log_of(warehouse).glob(".*")) == []


class Killed(BaseException):
    """As a process that is killed: it removes nothing."""


@pytest.mark.parametrize("first", [True, False], ids=["the first version", "a later version"])
def test_a_kill_before_a_version_has_its_name_leaves_none(warehouse, rows, same_rows, monkeypatch, first) -> None:
    if not first:
        warehouse.put(TABLE, rows({"id": 1}), None)

    def killed(*_: Any) -> None:
        raise Killed

    def write() -> None:
        with Journal(warehouse).transaction("test"):
            warehouse.put(TABLE, rows({"id": 2}), ALL)

    with monkeypatch.context() as dying:
        dying.setattr("mqreplay.lake.files.os.link", killed)
        dying.setattr(LocalFiles, "remove", lambda *_: None)
        with pytest.raises(Killed):
            write()
    assert warehouse.version(TABLE) == (None if first else 0)
    assert len(list(log_of(warehouse).glob(".*.tmp"))) == 1
    if not first:
        same_rows({"id": 1})
        remove_torn_log_files(warehouse.location(TABLE), 0)
        assert list(log_of(warehouse).glob(".*.tmp")) == []
    Journal(warehouse).recover(lambda _: None)
    assert Path(warehouse.location(TABLE)).exists() != first
    warehouse.put(TABLE, rows({"id": 3}), ALL)
    same_rows({"id": 3})


def test_a_log_that_is_broken_is_not_read_as_empty(warehouse, rows) -> None:
    warehouse.put(TABLE, rows({"id": 1}), ALL)
    for version in log_of(warehouse).glob("*.json"):
        version.write_text("{")
    with pytest.raises(Exception, match=r"(?i)json|delta|parse"):
        warehouse.read(TABLE)


def test_rows_that_spark_marked_as_gone_are_never_read(spark, warehouse, rows, same_rows) -> None:
    warehouse.put(TABLE, rows({"id": 1}, {"id": 2}), None)
    table = table_of(warehouse)
    spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES (delta.enableDeletionVectors = true)")
    same_rows({"id": 1}, {"id": 2})
    spark.sql(f"DELETE FROM {table} WHERE id = 1")
    with pytest.raises(ContractError, match="REORG TABLE") as error:
        warehouse.read(TABLE)
    spark.sql("REORG TABLE" + str(error.value).rsplit("REORG TABLE", 1)[1].removesuffix(" in Spark SQL"))
    same_rows({"id": 2})
    warehouse.put(TABLE, rows({"id": 3}), None)
    assert ids_of_spark(spark, warehouse) == [2, 3]
