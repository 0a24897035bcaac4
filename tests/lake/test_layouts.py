"""Tables partitioned by cluster and day, by cluster alone, and by an older contract: the same rows, few files read."""

from __future__ import annotations

import dataclasses
import datetime as dt
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from everything_table import TABLE
from made_warehouse import live_files
from mqreplay.lake import maintenance
from mqreplay.lake.contract import Contract
from mqreplay.lake.maintenance import compact, small_files
from mqreplay.lake.row_filter import RowFilter
from mqreplay.lake.staged_warehouse import StagedWarehouse
from mqreplay.lake.warehouse import Warehouse

NIGHTS = 12
DAYS = [dt.date(2026, 1, 2) + dt.timedelta(days=number) for number in range(NIGHTS)]
LAYOUTS = {"by day": ("cluster", "day"), "by cluster": ("cluster",)}
Made = Callable[..., Warehouse]


@pytest.fixture
def made(tmp_path: Path, contracts) -> Made:
    """made("by day"): the warehouse, by a contract with these partitions."""

    def make(layout: str) -> Warehouse:
        warehouse = Warehouse(str(tmp_path / "warehouse"))
        warehouse.contracts = {TABLE: contracts[TABLE].partitioned_as(LAYOUTS[layout])}
        return warehouse

    return make


@pytest.fixture(params=["by day", "by cluster", "made by day"])
def warehouse(request, made, rows) -> Warehouse:
    """A warehouse in which each of two clusters has a row a day, as nights arrive."""
    layout = request.param.removeprefix("made ")
    first = made(layout)
    for number, day in enumerate(DAYS, 1):
        for cluster in ("c", "d"):
            first.replace_rows(TABLE, rows({"id": number, "day": day, "cluster": cluster}), None)
    assert first.layout(TABLE).partitioned_by == LAYOUTS[layout]
    # The contract of a later version says nothing about a table that is there.
    return first if layout == request.param else made("by cluster")


def ids(warehouse: Warehouse, asked: RowFilter | None = None) -> list[int]:
    return sorted(warehouse.read(TABLE, asked).select("id").collect()["id"])


def of_days(*days: dt.date) -> RowFilter:
    return RowFilter("c", frozenset(days))


def packed(warehouse: Warehouse, monkeypatch) -> None:
    """Compact the table into files of about four nights of a cluster."""
    size = int(warehouse.snapshot(TABLE).files["size_bytes"].mean())
    monkeypatch.setattr(maintenance, "CLUSTER_BYTES", 5 * size)
    assert compact(warehouse, TABLE, small_files(warehouse, TABLE))


def test_a_day_opens_its_own_files(warehouse) -> None:
    assert len(warehouse.listed_files(TABLE)) == 2 * NIGHTS
    for number, day in enumerate(DAYS, 1):
        assert len(warehouse.listed_files(TABLE, of_days(day))) == 1
        assert ids(warehouse, of_days(day)) == [number]
    assert len(warehouse.listed_files(TABLE, RowFilter("c", between=(DAYS[2], DAYS[4])))) == 3
    assert warehouse.listed_files(TABLE, of_days(DAYS[0] - dt.timedelta(days=1))) == []
    assert warehouse.day_counts(TABLE, "c") == dict.fromkeys(DAYS, 1)


def test_a_day_is_replaced_without_its_file(warehouse, rows) -> None:
    for file in warehouse.listed_files(TABLE, of_days(DAYS[3])):
        Path(file.path).write_bytes(b"unreadable")
    warehouse.replace_rows(TABLE, rows({"id": 99, "day": DAYS[3]}), of_days(DAYS[3]))
    assert ids(warehouse, RowFilter("c")) == [1, 2, 3, *range(5, NIGHTS + 1), 99]
    assert len(live_files(warehouse, TABLE)) == 2 * NIGHTS


def test_packed_files_hold_days_that_follow_each_other(warehouse, rows, made, monkeypatch) -> None:
    before = warehouse.read(TABLE).collect().sort("cluster", "id")
    has_days = warehouse.layout(TABLE).partitioned_by == ("cluster", "day")
    packed(warehouse, monkeypatch)
    files = live_files(warehouse, TABLE)
    assert len(files) == 2 * NIGHTS if has_days else len(files) < NIGHTS
    assert warehouse.read(TABLE).collect().sort("cluster", "id").equals(before)
    assert warehouse.day_counts(TABLE, "c") == dict.fromkeys(DAYS, 1)
    for number, day in enumerate(DAYS, 1):
        assert len(warehouse.listed_files(TABLE, of_days(day))) == 1
        assert ids(warehouse, of_days(day)) == [number]
    # A replay of one day writes the file anew that holds it, and no other.
    warehouse.replace_rows(TABLE, rows({"id": 99, "day": DAYS[3]}), of_days(DAYS[3]))
    assert len(set(files) - set(live_files(warehouse, TABLE))) == 1
    assert ids(warehouse, RowFilter("c")) == [1, 2, 3, *range(5, NIGHTS + 1), 99]
    # Old days go as whole files where they can.
    warehouse.commit_files(TABLE, [], RowFilter("c", between=(dt.date.min, DAYS[8])))
    assert ids(warehouse, RowFilter("c")) == [10, 11, 12]
    assert ids(warehouse, RowFilter("d")) == list(range(1, NIGHTS + 1))


def test_commits_that_wait_see_days(warehouse, rows) -> None:
    layout = warehouse.contracts[TABLE].partitioned_by
    staged = StagedWarehouse(warehouse.root)
    staged.contracts = warehouse.contracts
    assert staged.layout(TABLE).partitioned_by == warehouse.layout(TABLE).partitioned_by, layout
    staged.replace_rows(TABLE, rows({"id": 99, "day": DAYS[3]}), of_days(DAYS[3]))
    assert ids(staged, of_days(DAYS[3])) == [99]
    assert len(staged.listed_files(TABLE, of_days(DAYS[3]))) == 1
    [change] = staged.staged.values()
    warehouse.exchange_files(TABLE, change.added, change.removed)
    assert ids(warehouse, RowFilter("c")) == [1, 2, 3, *range(5, NIGHTS + 1), 99]


def test_rows_that_may_lack_a_day_are_in_no_bounds(contracts, tmp_path, rows) -> None:
    contract: Contract = contracts[TABLE].partitioned_as(("cluster",))
    columns = tuple(dataclasses.replace(each, nullable=each.name not in contract.key) for each in contract.columns)
    warehouse = Warehouse(str(tmp_path), {TABLE: dataclasses.replace(contract, columns=columns)})
    for differs in ({"id": 1, "day": None}, {"id": 2}, {"id": 3, "day": DAYS[1]}):
        warehouse.replace_rows(TABLE, rows(differs), None)
    assert len(warehouse.listed_files(TABLE, of_days(DAYS[0]))) == 2
    warehouse.replace_rows(TABLE, [], RowFilter("c", frozenset({DAYS[1]}), undated=True))
    assert ids(warehouse) == [2]


def test_bounds_of_days_change_no_digest_of_a_noted_table(warehouse) -> None:
    found = warehouse.snapshot(TABLE)
    bare = found.files.with_columns(first_day=pl.lit(None, pl.Date), last_day=pl.lit(None, pl.Date))
    assert dataclasses.replace(found, files=bare).digest == found.digest
