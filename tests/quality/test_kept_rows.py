"""Rows of days that are not validated are counted by Delta's log where it can tell, else by a query."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pytest

from made_warehouse import CLUSTER, live_files, made_warehouse
from mqreplay.lake.row_filter import RowFilter
from mqreplay.quality.evidence import silver_rows
from mqreplay.quality.tables import Tables
from quality_rows import filled

DAYS = [dt.date(2026, 11, day) for day in (19, 20, 21)]
PULLS = "silver.pull"


@pytest.mark.parametrize(("but", "rows"), [([], 6), (DAYS[2:], 4), (DAYS[:1], 4), (DAYS[1:2], 4), (DAYS, 0)])
def test_rows_of_other_days_are_counted(tmp_path: Path, but: list[dt.date], rows: int) -> None:
    mixed = [{"day": day, "record_id": str(day)} for day in DAYS] + [{"cluster": "d", "day": DAYS[0]}]
    warehouse = made_warehouse(tmp_path, {PULLS: mixed})
    contract = warehouse.contracts[PULLS]
    for day in DAYS:
        one = filled(contract, {"cluster": CLUSTER, "day": day, "record_id": f"{day} alone"})
        warehouse.replace_rows(PULLS, [one], None)
    with Tables(warehouse, CLUSTER) as tables:
        assert silver_rows(tables, but)[PULLS] == rows


def test_files_of_other_days_are_not_opened(tmp_path: Path) -> None:
    warehouse = made_warehouse(tmp_path, {PULLS: [{"day": DAYS[0]}]})
    old = live_files(warehouse, PULLS)
    contract = warehouse.contracts[PULLS]
    warehouse.replace_rows(PULLS, [filled(contract, {"cluster": CLUSTER, "day": DAYS[2]})], None)
    for name in old:
        Path(warehouse.location(PULLS), name).write_bytes(b"unreadable")
    with Tables(warehouse, CLUSTER) as tables:
        assert silver_rows(tables, DAYS[2:])[PULLS] == 1
    assert warehouse.read(PULLS, RowFilter(CLUSTER, between=(DAYS[1], dt.date.max))).collect().height == 1
