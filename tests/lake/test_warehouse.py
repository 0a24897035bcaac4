"""Rows are replaced completely or not at all, other rows stay, and no change writes nothing."""

from __future__ import annotations

import dataclasses
import datetime as dt

import polars as pl
import pytest
from deltalake import DeltaTable
from mqreplay.lake.delta_files import snapshot
from mqreplay.lake.delta_log import commit, metadata

from made_warehouse import live_files
from mqreplay.errors import ContractError
from mqreplay.lake.contract import KEPT_LOG, Column
from mqreplay.lake.journal import Journal
from mqreplay.lake.row_filter import RowFilter
from mqreplay.lake.warehouse import Warehouse

TABLE = "silver.everything"
ALL = RowFilter("c")
FIRST, SECOND, THIRD = (dt.date(2026, 1, day) for day in (1, 2, 3))


def of_id(*ids: int) -> RowFilter:
    return RowFilter("c", wanted=pl.col("id").is_in(ids))


@pytest.mark.parametrize("wrong", [0, None], ids=["check fails", "null where none may be"])
def test_replacing_is_all_or_nothing(warehouse, rows, same_rows, wrong) -> None:
    warehouse.replace_rows(TABLE, rows({"id": 1}, {"id": 2}), ALL)
    with pytest.raises(ContractError, match=r"lack id|break CHECK"):
        warehouse.replace_rows(TABLE, rows({"id": 3}, {"id": wrong}), ALL)
    same_rows({"id": 1}, {"id": 2})


def test_row_that_is_none_of_the_replaced_is_refused(warehouse, rows, same_rows) -> None:
    warehouse.replace_rows(TABLE, rows({"id": 1}), ALL)
    for replaced, differs in ((ALL, {"cluster": "other"}), (of_id(1), {}), (RowFilter("c", frozenset([FIRST])), {})):
        with pytest.raises(ContractError, match="not among those that they replace"):
            warehouse.replace_rows(TABLE, rows({"id": 2} | differs), replaced)
    same_rows({"id": 1})


def test_replacing_again_gives_the_same_and_leaves_the_rest(warehouse, rows, same_rows) -> None:
    warehouse.replace_rows(TABLE, rows({"id": 9, "cluster": "other"}), RowFilter("other"))
    for _ in range(2):
        warehouse.replace_rows(TABLE, rows({"id": 1}, {"id": 2}), ALL)
    same_rows({"id": 1}, {"id": 2}, {"id": 9, "cluster": "other"})
    warehouse.replace_rows(TABLE, [], ALL)
    same_rows({"id": 9, "cluster": "other"})


def test_rows_of_a_file_that_are_not_replaced_stay(warehouse, rows, same_rows) -> None:
    others = [{"id": 3, "day": SECOND, "names": None}, {"id": 4, "day": None}, {"id": 5, "cluster": "d", "day": FIRST}]
    given = [{"id": 1, "day": FIRST, "settings": None}, {"id": 2, "day": FIRST}, *others]
    warehouse.replace_rows(TABLE, rows(*given), None)
    warehouse.replace_rows(TABLE, rows({"id": 7, "day": FIRST}), RowFilter("c", frozenset([FIRST, THIRD])))
    same_rows(*others[:2], {"id": 7, "day": FIRST}, others[2])
    warehouse.replace_rows(TABLE, [], RowFilter("c", wanted=pl.col("day").is_null()))
    same_rows(others[0], {"id": 7, "day": FIRST}, others[2])
    warehouse.replace_rows(TABLE, [], RowFilter("c", between=(SECOND, THIRD)))
    same_rows({"id": 7, "day": FIRST}, others[2])


def test_rows_without_a_day_stay_when_the_day_of_all_others_is_replaced(warehouse, rows, same_rows) -> None:
    warehouse.replace_rows(TABLE, rows({"id": 1, "day": FIRST}, {"id": 2, "day": None}), None)
    warehouse.replace_rows(TABLE, [], RowFilter("c", frozenset([FIRST])))
    same_rows({"id": 2, "day": None})


def test_rows_are_read_by_what_is_asked_of_them(warehouse, rows) -> None:
    for number, day in enumerate((FIRST, SECOND, None), 1):
        warehouse.replace_rows(
            TABLE, rows({"id": number, "day": day}, {"id": number, "day": day, "cluster": "d"}), None
        )

    def ids(asked: Rows) -> list[int]:
        return sorted(warehouse.read(TABLE, asked).select("id").collect()["id"])

    assert ids(ALL) == [1, 2, 3]
    assert ids(RowFilter("nobody")) == []
    assert ids(RowFilter("d", frozenset([SECOND, THIRD]))) == [2]
    assert ids(RowFilter("d", frozenset())) == []
    assert ids(RowFilter("c", between=(dt.date.min, FIRST))) == [1]
    assert ids(RowFilter("c", wanted=pl.col("day") != FIRST)) == [2]


def test_files_of_other_days_and_clusters_are_not_written_anew(warehouse, rows) -> None:
    for number, day in enumerate((FIRST, SECOND, THIRD), 1):
        warehouse.replace_rows(TABLE, rows({"id": number, "day": day}), None)
    before = set(live_files(warehouse, TABLE))
    warehouse.replace_rows(TABLE, [], RowFilter("c", frozenset([SECOND])))
    assert len(before - set(live_files(warehouse, TABLE))) == 1
    assert set(live_files(warehouse, TABLE)) < before


@pytest.mark.parametrize("replaced", [ALL, None], ids=["replace", "append"])
def test_nothing_over_nothing_changes_no_file(warehouse, rows, files, replaced) -> None:
    warehouse.replace_rows(TABLE, rows({"id": 9, "cluster": "other"}), RowFilter("other"))
    before = files()
    with Journal(warehouse).transaction("test"):
        warehouse.replace_rows(TABLE, [], replaced)
    assert files() == before


def test_nothing_into_a_new_table_leaves_only_its_log(warehouse, files, same_rows) -> None:
    with Journal(warehouse).transaction("test"):
        warehouse.replace_rows(TABLE, [], ALL)
    assert [name for name in files() if name.endswith(".parquet")] == []
    assert warehouse.exists(TABLE)
    same_rows()


def test_columns_of_a_frame_are_cast_and_ordered(warehouse, rows, same_rows) -> None:
    warehouse.replace_rows(TABLE, rows({"id": 1}), ALL)
    mixed = warehouse.read(TABLE).collect().with_columns(pl.col("id").cast(pl.String), more=pl.lit(1))
    warehouse.replace_rows(TABLE, mixed.select(reversed(mixed.columns)), ALL)
    same_rows({"id": 1})


def test_missing_column_is_named(warehouse) -> None:
    with pytest.raises(ContractError, match=r"rows for silver\.everything lack bytes, ratio"):
        warehouse.replace_rows(TABLE, warehouse.read(TABLE).drop("bytes", "ratio").collect(), ALL)
    assert not warehouse.exists(TABLE)


def test_table_never_made_reads_empty(warehouse, same_rows) -> None:
    same_rows()
    assert warehouse.read(TABLE, ALL).collect().is_empty()
    assert not warehouse.exists(TABLE)


def later(warehouse, *columns: Column) -> Warehouse:
    """The same folder under a contract of other columns."""
    contract = dataclasses.replace(warehouse.contracts[TABLE], columns=columns)
    return Warehouse(warehouse.root, {TABLE: contract})


def test_column_of_a_later_version_is_added(warehouse, rows) -> None:
    warehouse.replace_rows(TABLE, rows({"id": 1}, {"id": 3}), ALL)
    added = Column("new", "BIGINT", True, "New", None, None)
    after = later(warehouse, *warehouse.contracts[TABLE].columns, added)
    after.replace_rows(TABLE, [(*row, 7) for row in rows({"id": 2})], of_id(2, 3))
    assert set(after.read(TABLE).select("id", "new").collect().rows()) == {(1, None), (2, 7)}


def test_fields_of_structs_in_an_array_may_differ_in_a_later_version(warehouse, rows) -> None:
    warehouse.replace_rows(TABLE, rows({"id": 1}, {"id": 3}), ALL)
    columns = warehouse.contracts[TABLE].columns
    place = [column.name for column in columns].index("queues")
    queues = dataclasses.replace(columns[place], type="ARRAY<STRUCT<broker_name: STRING, ts: TIMESTAMP>>")
    after = later(warehouse, *columns[:place], queues, *columns[place + 1 :])
    item = {"broker_name": "b", "ts": dt.datetime(2026, 1, 1, tzinfo=dt.UTC)}
    after.replace_rows(TABLE, rows({"id": 2, "queues": [item]}), of_id(2, 3))  # the file of 1 and 3 is written anew
    after.replace_rows(TABLE, rows({"id": 4, "queues": None}), None)
    kept = [{"broker_name": name, "ts": None} for name in ("broker-a", "broker-b")]
    expected = {1: kept, 2: [item], 4: None}
    assert dict(after.read(TABLE).select("id", "queues").collect().rows()) == expected
    table = DeltaTable(warehouse.location(TABLE)).to_pyarrow_table()
    assert dict(zip(table["id"].to_pylist(), table["queues"].to_pylist(), strict=True)) == expected
    other = dataclasses.replace(queues, type="ARRAY<STRUCT<broker_name: BIGINT, ts: TIMESTAMP>>")
    with pytest.raises(ContractError, match="made by another version: queues is array<struct<broker_name:string"):
        later(warehouse, *columns[:place], other, *columns[place + 1 :]).replace_rows(TABLE, [], None)


def test_column_that_a_later_version_does_not_require_may_be_null(warehouse, rows) -> None:
    *before, size = warehouse.contracts[TABLE].columns[:3]
    assert (size.name, size.nullable) == ("bytes", True)
    others = warehouse.contracts[TABLE].columns[3:]
    strict = later(warehouse, *before, dataclasses.replace(size, nullable=False), *others)
    strict.replace_rows(TABLE, rows({"id": 1, "bytes": 5}), ALL)
    warehouse.replace_rows(TABLE, rows({"id": 2, "bytes": None}), of_id(2))
    assert set(warehouse.read(TABLE).select("id", "bytes").collect().rows()) == {(1, 5), (2, None)}
    assert all(field["nullable"] for field in snapshot(warehouse.location(TABLE)).fields if field["name"] == "bytes")


def test_table_that_does_not_fit_says_what_to_do(warehouse, rows) -> None:
    warehouse.replace_rows(TABLE, rows({"id": 1}), ALL)
    columns = warehouse.contracts[TABLE].columns
    needed = Column("new", "BIGINT", False, "New", None, None)
    with pytest.raises(ContractError, match="lacks new; use a new --warehouse"):
        later(warehouse, *columns, needed).replace_rows(TABLE, [], None)
    other = dataclasses.replace(columns[2], type="STRING")
    with pytest.raises(ContractError, match="bytes is bigint, should be string; use a new --warehouse"):
        later(warehouse, *columns[:2], other, *columns[3:]).replace_rows(TABLE, [], None)


def test_table_of_a_version_that_did_not_keep_its_log_keeps_it_from_now_on(warehouse, rows) -> None:
    warehouse.replace_rows(TABLE, rows({"id": 1}), ALL)
    place, contract = warehouse.location(TABLE), warehouse.contracts[TABLE]
    made = snapshot(place)
    others = {key: value for key, value in made.configuration.items() if key not in KEPT_LOG}
    commit(place, 1, [metadata(contract, made.fields, made.table_id, others)], overwrites=True)
    warehouse.replace_rows(TABLE, [], None)
    assert snapshot(place).configuration == made.configuration


def test_a_version_is_restored_with_its_rows_and_columns(warehouse, rows, same_rows) -> None:
    warehouse.replace_rows(TABLE, rows({"id": 1}, {"id": 2}), ALL)
    added = Column("new", "BIGINT", True, "New", None, None)
    after = later(warehouse, *warehouse.contracts[TABLE].columns, added)
    after.replace_rows(TABLE, [], of_id(1))
    after.replace_rows(TABLE, [(*row, 7) for row in rows({"id": 3})], None)
    warehouse.restore(TABLE, 0)
    same_rows({"id": 1}, {"id": 2})
    assert "new" not in {field["name"] for field in snapshot(warehouse.location(TABLE)).fields}
    warehouse.restore(TABLE, 1)
    same_rows({"id": 2})
