"""Tables are made as their contract says, rows are replaced whole or not at all, and nothing is written for nothing."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from chispa import assert_df_equality
from pyspark.errors import PySparkException
from pyspark.sql import functions as F

from mqreplay.errors import ContractError
from mqreplay.lake.contract import Column
from mqreplay.lake.journal import Journal
from mqreplay.lake.warehouse import Warehouse

TABLE = "silver.everything"
ALL = "cluster = 'c'"


def same_rows(warehouse, expected) -> None:
    """The table holds these rows, under this schema; the metadata of its columns are their comments."""
    # Ordered by the key here: chispa would sort by every column, and a map has no order.
    got, wanted = (frame.orderBy("cluster", "id") for frame in (warehouse.read(TABLE), expected))
    assert_df_equality(got, wanted, ignore_metadata=True)


def test_created_table_is_the_contract(warehouse) -> None:
    assert warehouse.ensure(TABLE)
    assert not warehouse.ensure(TABLE)
    contract, place = warehouse.contracts[TABLE], warehouse.location(TABLE)
    described = warehouse.spark.sql(f"DESCRIBE TABLE delta.`{place}`").collect()
    comments = {r.col_name: r.comment for r in described if not r.col_name.startswith("#")}
    assert comments["bytes"] == "It's a size (bytes)"
    assert [f.name for f in warehouse.read(TABLE).schema] == [c.name for c in contract.columns]
    detail = warehouse.spark.sql(f"DESCRIBE DETAIL delta.`{place}`").collect()[0]
    assert detail.clusteringColumns == ["cluster", "day"]
    assert detail.description == "One row is a value of every type; it's quoted"
    assert detail.properties["delta.constraints.id_positive"] == "id > 0"
    assert detail.minReaderVersion == 1


@pytest.mark.parametrize("wrong", ["0", "if(id = 4, null, id)"], ids=["check fails", "null where none may be"])
def test_replacing_is_all_or_nothing(warehouse, rows, wrong) -> None:
    warehouse.replace(TABLE, rows({"id": 1}, {"id": 2}), ALL)
    with pytest.raises(PySparkException):
        warehouse.replace(TABLE, rows({"id": 3}, {"id": 4}).withColumn("id", F.expr(wrong)), ALL)
    same_rows(warehouse, rows({"id": 1}, {"id": 2}))


def test_row_outside_of_the_predicate_is_refused(warehouse, rows) -> None:
    warehouse.replace(TABLE, rows({"id": 1}), ALL)
    with pytest.raises(PySparkException):
        warehouse.replace(TABLE, rows({"id": 2, "cluster": "other"}), ALL)
    same_rows(warehouse, rows({"id": 1}))


def test_replacing_again_gives_the_same_and_leaves_the_rest(warehouse, rows) -> None:
    warehouse.replace(TABLE, rows({"id": 9, "cluster": "other"}), "cluster = 'other'")
    for _ in range(2):
        warehouse.replace(TABLE, rows({"id": 1}, {"id": 2}), ALL)
    same_rows(warehouse, rows({"id": 1}, {"id": 2}, {"id": 9, "cluster": "other"}))
    warehouse.replace(TABLE, rows(), ALL)
    same_rows(warehouse, rows({"id": 9, "cluster": "other"}))


@pytest.mark.parametrize("nothing_there", [False, True])
def test_nothing_over_nothing_changes_no_file(warehouse, rows, files, nothing_there) -> None:
    warehouse.replace(TABLE, rows({"id": 9, "cluster": "other"}), "cluster = 'other'")
    before = files()
    # Through a filter and two partitions: no plan can tell beforehand that it is empty.
    none = rows({"id": 1}, {"id": 2}).repartition(2).where("ratio > 1")
    with Journal(warehouse).transaction("test"):
        warehouse.replace(TABLE, none, ALL, nothing_there=nothing_there)
    assert files() == before


def test_nothing_into_a_new_table_leaves_only_its_log(warehouse, rows, files) -> None:
    with Journal(warehouse).transaction("test"):
        warehouse.replace(TABLE, rows(), ALL)
    assert [name for name in files() if name.endswith(".parquet")] == []
    same_rows(warehouse, rows())


def test_columns_are_cast_and_ordered(warehouse, rows) -> None:
    columns = [c.name for c in warehouse.contracts[TABLE].columns]
    mixed = rows({"id": 1}).withColumn("id", F.col("id").cast("string")).withColumn("more", F.lit(1))
    warehouse.replace(TABLE, mixed.select("more", *reversed(columns)), ALL)
    same_rows(warehouse, rows({"id": 1}))


def test_missing_column_is_named(warehouse, rows) -> None:
    with pytest.raises(ContractError, match=r"silver\.everything lack bytes, ratio"):
        warehouse.replace(TABLE, rows({"id": 1}).drop("bytes", "ratio"), ALL)
    assert not warehouse.exists(TABLE)


def test_table_never_made_reads_empty(warehouse, rows) -> None:
    same_rows(warehouse, rows())
    assert not warehouse.exists(TABLE)


def later(warehouse, *columns: Column) -> Warehouse:
    """The same folder under a contract of other columns."""
    contract = dataclasses.replace(warehouse.contracts[TABLE], columns=columns)
    return Warehouse(warehouse.spark, warehouse.root, {TABLE: contract})


def test_column_of_a_later_version_is_added(warehouse, rows) -> None:
    warehouse.replace(TABLE, rows({"id": 1}), ALL)
    added = Column("new", "BIGINT", True, "New", None, None)
    after = later(warehouse, *warehouse.contracts[TABLE].columns, added)
    after.replace(TABLE, rows({"id": 2}).withColumn("new", F.lit(7)), "id = 2")
    assert {(r.id, r.new) for r in after.read(TABLE).collect()} == {(1, None), (2, 7)}


def test_column_that_a_later_version_does_not_require_may_be_null(warehouse, rows) -> None:
    *before, size = warehouse.contracts[TABLE].columns[:3]
    assert (size.name, size.nullable) == ("bytes", True)
    others = warehouse.contracts[TABLE].columns[3:]
    strict = later(warehouse, *before, dataclasses.replace(size, nullable=False), *others)
    strict.replace(TABLE, rows({"id": 1, "bytes": 5}), ALL)
    warehouse.replace(TABLE, rows({"id": 2, "bytes": None}), "id = 2")
    assert {(row.id, row.bytes) for row in warehouse.read(TABLE).collect()} == {(1, 5), (2, None)}


def test_table_that_does_not_fit_says_what_to_do(warehouse, rows) -> None:
    warehouse.replace(TABLE, rows({"id": 1}), ALL)
    columns = warehouse.contracts[TABLE].columns
    needed = Column("new", "BIGINT", False, "New", None, None)
    with pytest.raises(ContractError, match="lacks new; use a new --warehouse"):
        later(warehouse, *columns, needed).ensure(TABLE)
    other = dataclasses.replace(columns[2], type="STRING")
    with pytest.raises(ContractError, match="bytes is bigint, should be string; use a new --warehouse"):
        later(warehouse, *columns[:2], other, *columns[3:]).ensure(TABLE)


def test_maintenance_keeps_the_rows(warehouse, rows) -> None:
    for number in (1, 2, 3):
        warehouse.replace(TABLE, rows({"id": number}), f"id = {number}")
    warehouse.maintain()
    same_rows(warehouse, rows({"id": 1}, {"id": 2}, {"id": 3}))
    assert Path(warehouse.location(TABLE), "_delta_log").is_dir()
