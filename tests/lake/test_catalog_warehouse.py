"""Tables by names in a catalog: created by contracts, replaced in one commit each, restored, copied for DuckDB."""

from __future__ import annotations

import dataclasses
import datetime as dt
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from mqreplay.lake.catalog_warehouse import CatalogWarehouse
from mqreplay.lake.contract import Contract
from mqreplay.lake.journal import Journal
from mqreplay.lake.registration import CatalogNames
from mqreplay.lake.row_filter import Days, RowFilter
from mqreplay.lake.table_files import read_files
from mqreplay.lake.warehouse import Warehouse
from mqreplay.quality.tables import Tables
from mqreplay.words.errors import ContractError

TABLE, NAME = "silver.everything", "spark_catalog.by_silver.`everything`"
FIRST, SECOND = dt.date(2026, 1, 2), dt.date(2026, 1, 3)
CLUSTER = "it's \\ a c"
ALL = RowFilter(CLUSTER)


@pytest.fixture
def named(request, spark, tmp_path: Path, contracts: Mapping[str, Contract]) -> Iterator[CatalogWarehouse]:
    """An empty warehouse with names, by contracts with these partitions if a test gives them."""
    given = {TABLE: contracts[TABLE].partitioned_as(getattr(request, "param", contracts[TABLE].partitioned_by))}
    yield CatalogWarehouse(spark, str(tmp_path / "it's a w"), CatalogNames("spark_catalog", "by_"), given)
    spark.sql("DROP DATABASE IF EXISTS by_silver CASCADE")


@pytest.fixture
def rows(rows: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *differs: rows(*[{"cluster": CLUSTER, **each} for each in differs])


def again(named: CatalogWarehouse) -> CatalogWarehouse:
    """The same tables for another run, which has no copies of rows."""
    return CatalogWarehouse(named._session, named.root, named.names, named.contracts)


def ids(warehouse: Warehouse) -> list[tuple[Any, ...]]:
    return sorted(warehouse.read(TABLE).select("cluster", "id", "day").collect().rows())


def of(*days: dt.date) -> RowFilter:
    return RowFilter(CLUSTER, days=frozenset(days))


def test_a_table_is_made_by_its_contract(named: CatalogWarehouse, spark, rows, contracts) -> None:
    assert (named.exists(TABLE), named.version(TABLE), ids(named)) == (False, None, [])
    named.replace_rows(TABLE, rows({"id": 1}), ALL)
    assert (named.exists(TABLE), named.version(TABLE)) == (True, 1)
    detail = spark.sql(f"DESCRIBE DETAIL {NAME}").first()
    assert detail.location.endswith("/it's a w/silver/everything")
    assert detail.partitionColumns == list(contracts[TABLE].partitioned_by)
    assert detail.description == contracts[TABLE].description
    assert contracts[TABLE].properties.items() <= detail.properties.items()
    assert {f"delta.constraints.{check}" for check in contracts[TABLE].checks} <= detail.properties.keys()
    assert named._missing_fields(TABLE, named._fields(TABLE)) == []
    comments = {field.name: field.metadata["comment"] for field in spark.table(NAME).schema}
    assert comments == {column.name: column.comment for column in contracts[TABLE].columns}


def test_rows_of_every_type_are_those_of_a_warehouse_by_path(named: CatalogWarehouse, warehouse, rows) -> None:
    some = rows({"id": 1}, {"id": 2, "names": None, "settings": None, "at": None, "queues": [], "flag": None})
    for each in (named, warehouse):
        each.replace_rows(TABLE, some, None)
    found, expected = (each.read(TABLE).sort("id").collect() for each in (named, warehouse))
    assert found.schema == expected.schema
    assert found.equals(expected)
    assert named.read(TABLE).select(pl.len()).collect().item() == 2
    assert named.read(TABLE, RowFilter("another")).collect().is_empty()
    assert named.read(TABLE, RowFilter(CLUSTER, wanted=pl.col("id") == 2)).select("bytes").collect().height == 1
    assert named.read(TABLE).head(1).collect().height == 1


@pytest.mark.long
@pytest.mark.parametrize("named", [("cluster", "day"), ("cluster",)], indirect=True)
def test_days_are_replaced_in_one_commit(named: CatalogWarehouse, rows) -> None:
    named.replace_rows(TABLE, rows({"id": 1}, {"id": 2, "day": SECOND}, {"id": 3, "cluster": "z"}), None)
    before = named.version(TABLE)
    named.replace_rows(TABLE, rows({"id": 4}), of(FIRST))
    assert ids(named) == [(CLUSTER, 2, SECOND), (CLUSTER, 4, FIRST), ("z", 3, FIRST)]
    named.replace_rows(TABLE, [], RowFilter(CLUSTER, between=(SECOND, dt.date.max)))
    assert ids(named) == [(CLUSTER, 4, FIRST), ("z", 3, FIRST)]
    assert named.version(TABLE) == before + 2


@pytest.mark.long
@pytest.mark.parametrize("named", [("cluster", "day"), ("cluster",)], indirect=True)
def test_rows_are_replaced_with_the_other_rows_of_their_partitions(named: CatalogWarehouse, rows) -> None:
    named.replace_rows(TABLE, rows({"id": 1}, {"id": 2}, {"id": 3, "day": SECOND}, {"id": 4, "cluster": "z"}), None)
    before = named.version(TABLE)
    third = dt.date(2026, 1, 4)
    new = named.writer(TABLE).write_rows(
        named.read(TABLE, RowFilter(CLUSTER, wanted=pl.col("id") == 2)).with_columns(id=pl.lit(5), day=third).collect()
    )
    named.commit_files(TABLE, new, RowFilter(CLUSTER, wanted=pl.col("id").is_in([2, 4])))
    assert ids(named) == [(CLUSTER, 1, FIRST), (CLUSTER, 3, SECOND), (CLUSTER, 5, third), ("z", 4, FIRST)]
    assert named.version(TABLE) == before + 1
    here = [file.path for file in named.files(TABLE, ALL).files + named.files(TABLE, RowFilter("z")).files]
    assert sorted(here) == sorted(map(str, Path(named.written_folder(TABLE)).rglob("*.parquet")))
    assert ids(named) == ids(again(named))


def test_no_change_writes_nothing(named: CatalogWarehouse, rows) -> None:
    named.replace_rows(TABLE, rows({"id": 1}), None)
    before, state = named.version(TABLE), named.state()
    named.replace_rows(TABLE, [], RowFilter(CLUSTER, wanted=pl.col("id") == 7))
    named.replace_rows(TABLE, [], of(SECOND))
    named.replace_rows(TABLE, [], None)
    assert (named.version(TABLE), named.state()) == (before, state)
    named.replace_rows(TABLE, rows({"id": 2}), None)
    assert named.state() != state


def frame(spark, contracts: Mapping[str, Contract], rows: list[tuple[Any, ...]]) -> Any:
    """Rows as a DataFrame."""
    return spark.createDataFrame(rows, contracts[TABLE].ddl())


def test_a_dataframe_is_written_by_name(named: CatalogWarehouse, spark, rows, contracts) -> None:
    named.replace_rows(TABLE, rows({"id": 1}, {"id": 2, "day": SECOND}), None)
    before = named.version(TABLE)
    named.commit_frame(TABLE, frame(spark, contracts, rows({"id": 7})), of(FIRST))
    assert named.version(TABLE) == before + 1
    named.commit_frame(TABLE, frame(spark, contracts, rows({"id": 8})), RowFilter(CLUSTER, wanted=pl.col("id") == 2))
    assert ids(named) == [(CLUSTER, 7, FIRST), (CLUSTER, 8, FIRST)]
    assert sorted(row.id for row in named.spark_table(spark, TABLE).select("id").collect()) == [7, 8]


def test_a_table_that_does_not_exist_has_no_rows(named: CatalogWarehouse, warehouse, spark, contracts) -> None:
    for each in (named, warehouse):
        assert each.spark_table(spark, TABLE).columns == contracts[TABLE].arrow_schema.names
        assert each.spark_table(spark, TABLE).isEmpty()


def test_a_warehouse_by_path_takes_a_dataframe(warehouse: Warehouse, spark, rows, contracts) -> None:
    warehouse.replace_rows(TABLE, rows({"id": 1}, {"id": 2, "day": SECOND}), None)
    warehouse.commit_frame(TABLE, frame(spark, contracts, rows({"id": 3, "day": SECOND})), of(SECOND))
    assert ids(warehouse) == [(CLUSTER, 1, FIRST), (CLUSTER, 3, SECOND)]
    assert sorted(row.id for row in warehouse.spark_table(spark, TABLE).select("id").collect()) == [1, 3]


@pytest.mark.long
def test_an_interrupted_run_is_rolled_back(named: CatalogWarehouse, rows) -> None:
    def interrupt(change: Callable[[], None]) -> None:
        with suppress(KeyboardInterrupt), Journal(named).transaction("test"):
            change()
            raise KeyboardInterrupt
        lines: list[str] = []
        Journal(named).recover(lines.append)
        assert lines == ["the last run was interrupted (test); rolling it back"]

    interrupt(lambda: named.replace_rows(TABLE, rows({"id": 1}), None))
    assert ids(named) == []
    named.replace_rows(TABLE, rows({"id": 2}), None)
    interrupt(lambda: named.replace_rows(TABLE, rows({"id": 3}), ALL))
    assert ids(named) == [(CLUSTER, 2, FIRST)]
    named.replace_rows(TABLE, rows({"id": 4}), None)
    assert ids(named) == [(CLUSTER, 2, FIRST), (CLUSTER, 4, FIRST)]


@pytest.mark.long
def test_a_table_of_an_older_version_gets_its_columns_and_constraints(
    named: CatalogWarehouse, spark, rows, contracts
) -> None:
    contract = contracts[TABLE]
    older = dataclasses.replace(contract, columns=contract.columns[:-1], checks={})
    before = CatalogWarehouse(spark, named.root, CatalogNames("spark_catalog", "by_"), {TABLE: older})
    before.replace_rows(TABLE, [row[:-1] for row in rows({"id": 1})], None)
    named.replace_rows(TABLE, rows({"id": 2}), None)
    last = contract.columns[-1].name
    assert sorted(named.read(TABLE).select("id", pl.col(last).is_null()).collect().rows()) == [(1, True), (2, False)]
    assert named._missing_fields(TABLE, named._fields(TABLE)) == []
    other = dataclasses.replace(
        contract,
        columns=tuple(dataclasses.replace(c, type="INT") if c.name == "bytes" else c for c in contract.columns),
    )
    after = CatalogWarehouse(spark, named.root, CatalogNames("spark_catalog", "by_"), {TABLE: other})
    with pytest.raises(ContractError, match="has another type of bytes; use a new --warehouse"):
        after.replace_rows(TABLE, [], None)


def test_a_column_that_may_be_null_by_now_is_null_where_it_is(named: CatalogWarehouse, spark, rows, contracts) -> None:
    contract = contracts[TABLE]
    strict = dataclasses.replace(contract.columns[-1], nullable=False)
    named.contracts = {TABLE: dataclasses.replace(contract, columns=(*contract.columns[:-1], strict))}
    named._create(named.contracts[TABLE])
    assert named._needless_not_null(TABLE, named._fields(TABLE)) == []
    named.contracts = contracts
    assert named._needless_not_null(TABLE, named._fields(TABLE)) == [strict.name]
    named.replace_rows(TABLE, rows({"id": 1, strict.name: None}), ALL)
    assert named.read(TABLE).select(strict.name).collect().item() is None
    assert named._needless_not_null(TABLE, named._fields(TABLE)) == []


def test_a_name_of_another_thing_is_one_line(named: CatalogWarehouse, spark, rows) -> None:
    spark.sql("CREATE DATABASE by_silver")
    spark.sql("CREATE VIEW by_silver.everything AS SELECT 1 AS one")
    with pytest.raises(ContractError, match=r"table \S+`everything` cannot be used: ") as raised:
        named.replace_rows(TABLE, rows({"id": 1}), None)
    assert "\n" not in str(raised.value)


@pytest.mark.long
def test_files_of_days_are_copied_once(named: CatalogWarehouse, rows, contracts) -> None:
    named.replace_rows(TABLE, rows({"id": 1}, {"id": 2, "day": SECOND}, {"id": 3, "cluster": "z"}), None)
    both = named.files(TABLE, RowFilter(CLUSTER, between=(FIRST, SECOND)))
    assert sorted(file.day for file in both.files) == [FIRST, SECOND]
    assert sorted(read_files(both, ["id"], pl.lit(True))["id"]) == [1, 2]
    first = named.files(TABLE, RowFilter(CLUSTER, between=(dt.date.min, FIRST)))
    assert [file.day for file in first.files] == [FIRST]
    one = named.files(TABLE, RowFilter(CLUSTER, between=(SECOND, SECOND)))
    assert [file.path for file in one.files] == [file.path for file in both.files if file.day == SECOND]
    named.replace_rows(TABLE, rows({"id": 4}), of(FIRST))
    again = named.files(TABLE, RowFilter(CLUSTER, between=(FIRST, FIRST)))
    assert read_files(again, ["id"], pl.lit(True))["id"].to_list() == [4]
    assert named.day_counts(TABLE, CLUSTER) == {FIRST: 1, SECOND: 1}
    with Tables(named, CLUSTER) as tables:
        assert tables.run(tables.rows(TABLE, ["id"], Days(SECOND, SECOND))) == [(2,)]
        assert tables.count_outside(TABLE, [FIRST]) == 1


def test_size_of_a_table(named: CatalogWarehouse, rows) -> None:
    assert named.file_bytes(TABLE, ALL) == 0
    named.replace_rows(TABLE, rows({"id": 1}), None)
    assert named.file_bytes(TABLE, ALL) > 1000


@pytest.mark.long
def test_names_of_three_parts(named: CatalogWarehouse, spark, rows, contracts) -> None:
    """A second catalog, which is no session catalog for Spark; Delta's needs one that keeps the names for it."""
    spark.conf.set("spark.sql.catalog.unity", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
    catalogs = spark._jsparkSession.sessionState().catalogManager()
    catalogs.catalog("unity").setDelegateCatalog(catalogs.v2SessionCatalog())
    other = CatalogWarehouse(spark, named.root, CatalogNames("unity", "by_"), contracts)
    assert other.table_name(TABLE) == "unity.by_silver.`everything`"
    other.replace_rows(TABLE, rows({"id": 1}), None)
    before = other.version(TABLE)
    other.replace_rows(TABLE, rows({"id": 2}), ALL)
    assert ids(other) == [(CLUSTER, 2, FIRST)]
    other.restore(TABLE, before)
    assert ids(other) == [(CLUSTER, 1, FIRST)]
