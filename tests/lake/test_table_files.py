"""The files of a Delta table are read in folders of any name, and skipped by their partitions."""

from __future__ import annotations

import datetime as dt
import shutil
from pathlib import Path

import polars as pl
import pytest
from deltalake import write_deltalake

from mqreplay.lake.contract import arrow_schema
from mqreplay.lake.row_filter import RowFilter
from mqreplay.lake.table_files import TableFiles, files_in, read_files, snapshot

SCHEMA = arrow_schema([("cluster", "STRING"), ("day", "DATE"), ("n", "BIGINT"), ("later", "STRING")])
DAYS = [dt.date(2026, 11, day) for day in (20, 21, 22)]
NAMES = ["plain", "a b", "env=prod", "cluster=d", "[a]{b,c}*?", "é東京 `${env:HOME}` #'\""]
MINE = RowFilter("c")


def table_files(location: str, rows: RowFilter) -> TableFiles:
    return TableFiles(tuple(files_in(location, snapshot(location).of(rows))), SCHEMA)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Three files, one a day, without the column that came later."""
    for n, day in enumerate(DAYS):
        rows = pl.DataFrame({"cluster": ["c"], "day": [day], "n": [n]})
        write_deltalake(tmp_path / "made", rows, mode="append", partition_by=["cluster", "day"])
    return tmp_path / "made"


@pytest.mark.parametrize("name", NAMES, ids=ascii)
def test_folders_of_any_name_are_read(table: Path, tmp_path: Path, name: str) -> None:
    location = shutil.move(table, tmp_path / name)
    files = table_files(str(location), MINE)
    rows = read_files(files, None, pl.lit(True)).sort("n")
    assert rows.rows() == [("c", day, n, None) for n, day in enumerate(DAYS)]


def test_files_of_other_days_and_clusters_are_skipped(table: Path) -> None:
    found = table_files(str(table), RowFilter("c", between=(DAYS[1], DAYS[2])))
    assert (len(found.files), found.rows) == (2, 2)
    assert [file.day for file in found.files] == DAYS[1:]
    assert table_files(str(table), RowFilter("c", frozenset(DAYS[:1]))).rows == 1
    assert table_files(str(table), RowFilter("other")).files == ()


def test_a_table_without_files_has_no_rows() -> None:
    assert read_files(TableFiles((), SCHEMA), ["n"], pl.lit(True)).height == 0


def test_pieces_hold_each_file_once(table: Path) -> None:
    whole = table_files(str(table), MINE)
    pieces = whole.pieces(2)
    assert [file for piece in pieces for file in piece.files] == list(whole.files)
    assert [len(piece.files) for piece in pieces] == [2, 1]
