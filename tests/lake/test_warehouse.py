"""Rows are replaced completely or not at all, other rows stay, and no change writes nothing."""

from __future__ import annotations

import dataclasses
import datetime as dt
from pathlib import Path

import polars as pl
import pytest

from everything_table import TABLE
from made_warehouse import live_files
from mqreplay.lake.contract import Column
from mqreplay.lake.journal import Journal
from mqreplay.lake.row_filter import RowFilter
from mqreplay.lake.table_files import snapshot
from mqreplay.lake.warehouse import Warehouse
from mqreplay.words.errors import ContractError

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
    others = [{"id": 3, "day": SECOND, "names": None}, {"id": 4, "day": THIRD}, {"id": 5, "cluster": "d", "day": FIRST}]
    given = [{"id": 1, "day": FIRST, "settings": None}, {"id": 2, "day": FIRST}, *others]
    warehouse.replace_rows(TABLE, rows(*given), None)
    warehouse.replace_rows(TABLE, rows({"id": 7, "day": FIRST}), RowFilter("c", frozenset([FIRST])))
    same_rows(*others[:2], {"id": 7, "day": FIRST}, others[2])
    warehouse.replace_rows(TABLE, [], RowFilter("c", wanted=pl.col("id") == 4))
    same_rows(others[0], {"id": 7, "day": FIRST}, others[2])
    warehouse.replace_rows(TABLE, [], RowFilter("c", between=(SECOND, THIRD)))
    same_rows({"id": 7, "day": FIRST}, others[2])


def test_a_row_without_a_day_or_cluster_is_refused(warehouse, rows) -> None:
    for name in ("day", "cluster"):
        with pytest.raises(ContractError, match=f"lack {name}"):
            warehouse.replace_rows(TABLE, rows({"id": 1}, {"id": 2, name: None}), None)
    assert not warehouse.exists(TABLE)


def test_replacing_whole_partitions_reads_no_file(warehouse, rows, same_rows) -> None:
    warehouse.replace_rows(TABLE, rows({"id": 1, "day": FIRST}, {"id": 2, "day": SECOND}), None)
    for path in live_files(warehouse, TABLE):
        if f"day={FIRST}" in path:
            Path(warehouse.location(TABLE), path).write_bytes(b"unreadable")
    warehouse.replace_rows(TABLE, rows({"id": 3, "day": FIRST}), RowFilter("c", frozenset([FIRST])))
    same_rows({"id": 2, "day": SECOND}, {"id": 3, "day": FIRST})


def test_replacing_rows_without_a_day_too_keeps_other_days(warehouse, rows, same_rows) -> None:
    warehouse.replace_rows(TABLE, rows({"id": 1, "day": FIRST}, {"id": 2, "day": SECOND}), None)
    warehouse.replace_rows(TABLE, [], RowFilter("c", frozenset([FIRST]), undated=True))
    same_rows({"id": 2, "day": SECOND})


def test_rows_are_read_by_what_is_asked_of_them(warehouse, rows) -> None:
    for number, day in enumerate((FIRST, SECOND, THIRD), 1):
        warehouse.replace_rows(
            TABLE, rows({"id": number, "day": day}, {"id": number, "day": day, "cluster": "d"}), None
        )

    def ids(asked: RowFilter) -> list[int]:
        return sorted(warehouse.read(TABLE, asked).select("id").collect()["id"])

    assert ids(ALL) == [1, 2, 3]
    assert ids(RowFilter("nobody")) == []
    assert ids(RowFilter("d", frozenset([SECOND, THIRD]))) == [2, 3]
    assert ids(RowFilter("d", frozenset())) == []
    assert ids(RowFilter("c", between=(dt.date.min, FIRST))) == [1]
    assert ids(RowFilter("c", wanted=pl.col("day") != FIRST)) == [2, 3]


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


def test_columns_that_are_added_have_comments(warehouse, rows) -> None:
    warehouse.replace_rows(TABLE, rows({"id": 1}), ALL)
    added = Column("new", "BIGINT", True, "New", "bytes", None)
    later(warehouse, *warehouse.contracts[TABLE].columns, added).replace_rows(TABLE, [], None)
    found = next(f for f in snapshot(warehouse.location(TABLE)).fields if f["name"] == "new")
    assert found["metadata"] == {"comment": "New (bytes)"}


def test_a_column_that_may_be_null_by_now_is_null_where_it_is(warehouse, rows) -> None:
    columns = warehouse.contracts[TABLE].columns
    strict = Column("count", "BIGINT", False, "Count", None, None)
    before = later(warehouse, *columns, strict)
    before.replace_rows(TABLE, [(*row, 7) for row in rows({"id": 1}, {"id": 3})], ALL)
    with pytest.raises(ContractError, match="lack count"):
        before.replace_rows(TABLE, [(*row, None) for row in rows({"id": 2})], of_id(2, 3))
    files = set(live_files(before, TABLE))
    after = later(warehouse, *columns, dataclasses.replace(strict, nullable=True))
    after.replace_rows(TABLE, [(*row, None) for row in rows({"id": 2})], None)
    assert set(after.read(TABLE).select("id", "count").collect().rows()) == {(1, 7), (2, None), (3, 7)}
    assert files < set(live_files(after, TABLE))
    assert next(f for f in snapshot(after.location(TABLE)).fields if f["name"] == "count")["nullable"]
    with pytest.raises(ContractError, match="another type of count"):
        before.replace_rows(TABLE, [], None)


def test_tables_whose_structs_differ_are_refused(warehouse, rows) -> None:
    warehouse.replace_rows(TABLE, rows({"id": 1}), ALL)
    columns = warehouse.contracts[TABLE].columns
    place = [column.name for column in columns].index("queues")
    queues = dataclasses.replace(columns[place], type="ARRAY<STRUCT<broker_name: STRING, ts: TIMESTAMP>>")
    after = later(warehouse, *columns[:place], queues, *columns[place + 1 :])
    with pytest.raises(ContractError, match="made by another version and has another type of queues"):
        after.replace_rows(TABLE, [], None)


def test_table_that_does_not_fit_says_what_to_do(warehouse, rows) -> None:
    warehouse.replace_rows(TABLE, rows({"id": 1}), ALL)
    columns = warehouse.contracts[TABLE].columns
    needed = Column("new", "BIGINT", False, "New", None, None)
    with pytest.raises(ContractError, match="lacks new; use a new --warehouse"):
        later(warehouse, *columns, needed).replace_rows(TABLE, [], None)
    other = dataclasses.replace(columns[2], type="STRING")
    with pytest.raises(ContractError, match="has another type of bytes; use a new --warehouse"):
        later(warehouse, *columns[:2], other, *columns[3:]).replace_rows(TABLE, [], None)


def test_a_version_is_restored_with_its_rows_and_columns(warehouse, rows, same_rows) -> None:
    warehouse.replace_rows(TABLE, rows({"id": 1}, {"id": 2}), ALL)
    added = Column("new", "BIGINT", True, "New", None, None)
    after = later(warehouse, *warehouse.contracts[TABLE].columns, added)
    after.replace_rows(TABLE, [], of_id(1))
    after.replace_rows(TABLE, [(*row, 7) for row in rows({"id": 3})], None)
    assert warehouse.version(TABLE) == 5
    warehouse.restore(TABLE, 2)
    same_rows({"id": 1}, {"id": 2})
    assert "new" not in {field["name"] for field in snapshot(warehouse.location(TABLE)).fields}
    warehouse.restore(TABLE, 4)
    assert after.read(TABLE).select("id", "new").collect().rows() == [(2, None)]
