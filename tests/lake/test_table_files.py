"""The files of a Delta table are found in folders of any name, and passed over by Delta's bounds."""

from __future__ import annotations

import datetime as dt
import shutil
from pathlib import Path

import polars as pl
import pytest
from deltalake import write_deltalake
from mqreplay.lake.delta_files import read_files, table_files

from mqreplay.lake.column_types import arrow_schema

SCHEMA = arrow_schema([("cluster", "STRING"), ("day", "DATE"), ("n", "BIGINT"), ("later", "STRING")])
DAYS = [dt.date(2026, 11, day) for day in (20, 21, 22)]
NAMES = ["plain", "a b", "100% %20 %2F %", "%41", "a\\b\\", "[a]{b,c}*?", "é東京 `${env:HOME}` #'\""]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Three files, one a day, without the column that came later."""
    for n, day in enumerate(DAYS):
        write_deltalake(tmp_path / "made", pl.DataFrame({"cluster": ["c"], "day": [day], "n": [n]}), mode="append")
    return tmp_path / "made"


@pytest.mark.parametrize("name", NAMES, ids=ascii)
def test_folders_of_any_name_are_read(table: Path, tmp_path: Path, name: str) -> None:
    location = shutil.move(table, tmp_path / name)
    files = table_files(str(location), SCHEMA, "c", None)
    rows = read_files(files, None, pl.lit(True)).sort("n")
    assert rows.rows() == [("c", day, n, None) for n, day in enumerate(DAYS)]


def test_files_of_other_days_and_clusters_are_passed_over(table: Path) -> None:
    found = table_files(str(table), SCHEMA, "c", (DAYS[1], DAYS[2]))
    assert (len(found.paths), found.rows) == (2, 2)
    assert table_files(str(table), SCHEMA, "other", None).paths == ()


def test_a_table_that_is_not_there_has_no_rows(tmp_path: Path) -> None:
    files = table_files(str(tmp_path / "none"), SCHEMA, "c", None)
    assert read_files(files, ["n"], pl.lit(True)).height == 0


def test_pieces_hold_each_file_once(table: Path) -> None:
    whole = table_files(str(table), SCHEMA, "c", None)
    pieces = whole.pieces(2)
    assert [path for piece in pieces for path in piece.paths] == list(whole.paths)
    assert [len(piece.paths) for piece in pieces] == [2, 1]
