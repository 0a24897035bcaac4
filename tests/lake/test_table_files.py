"""A table of few files is read as the files that Delta Kernel lists, others as Delta reads them: the same rows."""

from __future__ import annotations

from pathlib import Path

import pytest
from chispa import assert_df_equality

from mqreplay.lake.table_files import FEW, few_files
from mqreplay.lake.warehouse import Warehouse

TABLE = "silver.everything"


def same_as_by_delta(warehouse) -> None:
    """Files know neither NOT NULL nor comments; all else is the same."""
    by_delta = warehouse.spark.read.format("delta").load(warehouse.location(TABLE))
    assert_df_equality(
        warehouse.read(TABLE).orderBy("id"), by_delta.orderBy("id"), ignore_nullable=True, ignore_metadata=True
    )


def test_rows_are_those_that_delta_gives(warehouse, rows) -> None:
    warehouse.replace(TABLE, rows({"id": 1}, {"id": 2}, {"id": 3}), "TRUE")
    warehouse.replace(TABLE, rows({"id": 2, "names": None, "ratio": None}), "id = 2")
    warehouse.replace(TABLE, rows({"id": 4, "settings": None}), "id = 4")
    found = few_files(warehouse.spark, warehouse.location(TABLE))
    assert found is not None
    assert 0 < len(found) < len(list(Path(warehouse.location(TABLE)).glob("*.parquet")))
    same_as_by_delta(warehouse)
    warehouse.spark.sql(f"OPTIMIZE delta.`{warehouse.location(TABLE)}`")
    assert len(few_files(warehouse.spark, warehouse.location(TABLE)) or ()) == 1
    same_as_by_delta(warehouse)


def test_emptied_table_has_its_columns(warehouse, rows) -> None:
    warehouse.replace(TABLE, rows({"id": 1}), "TRUE")
    warehouse.replace(TABLE, rows({"id": 1}).where("FALSE"), "TRUE")
    assert few_files(warehouse.spark, warehouse.location(TABLE)) == []
    same_as_by_delta(warehouse)


def test_column_that_came_later_is_null_in_older_files(warehouse, rows) -> None:
    without = ", ".join(c.ddl for c in warehouse.contracts[TABLE].columns if c.name != "content")
    place = warehouse.location(TABLE)
    warehouse.spark.sql(f"CREATE TABLE delta.`{place}` ({without}) USING delta")
    rows({"id": 1}).drop("content").write.format("delta").mode("append").save(place)
    warehouse.replace(TABLE, rows({"id": 2}), "id = 2")
    same_as_by_delta(warehouse)
    assert [row.content for row in warehouse.read(TABLE).orderBy("id").collect()] == [None, bytearray(b"\x00\xff")]


def test_many_files_are_deltas(warehouse, rows) -> None:
    numbers = [{"id": number} for number in range(1, FEW + 2)]
    warehouse.replace(TABLE, rows(*numbers).repartitionByRange(FEW + 1, "id"), "TRUE")
    assert few_files(warehouse.spark, warehouse.location(TABLE)) is None
    same_as_by_delta(warehouse)


def test_rows_marked_as_gone_are_deltas_to_read(warehouse, rows) -> None:
    warehouse.replace(TABLE, rows({"id": 1}, {"id": 2}), "TRUE")
    place = warehouse.location(TABLE)
    warehouse.spark.sql(f"ALTER TABLE delta.`{place}` SET TBLPROPERTIES (delta.enableDeletionVectors = true)")
    warehouse.spark.sql(f"DELETE FROM delta.`{place}` WHERE id = 1")
    assert few_files(warehouse.spark, place) is None
    assert [row.id for row in warehouse.read(TABLE).collect()] == [2]


@pytest.mark.parametrize("name", ["a b", "100%25", "night[1]", "{a,b}", "päckchen", "a:b", "${env:HOME}[1]"])
def test_folders_of_any_name(spark, contracts, rows, tmp_path: Path, name: str) -> None:
    warehouse = Warehouse(spark, str(tmp_path / name), contracts)
    warehouse.put(TABLE, [tuple(row) for row in rows({"id": 1}).collect()], "TRUE", nothing_there=True)
    warehouse.replace(TABLE, rows({"id": 2}), "id = 2")
    assert [row.id for row in warehouse.read(TABLE).orderBy("id").collect()] == [1, 2]


def test_a_broken_log_is_left_for_delta_to_complain_of(warehouse, rows) -> None:
    warehouse.replace(TABLE, rows({"id": 1}), "TRUE")
    for version in Path(warehouse.location(TABLE), "_delta_log").glob("*.json"):
        version.write_text("{")
    assert few_files(warehouse.spark, warehouse.location(TABLE)) is None
