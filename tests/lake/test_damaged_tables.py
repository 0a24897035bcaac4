"""A table that lost commits or files, or whose files changed, is refused in one line, or read without the damage."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from deltalake import DeltaTable

from everything_table import TABLE
from mqreplay.lake import delta_table, table_files
from mqreplay.lake.delta_table import UnreadableLog
from mqreplay.lake.files import files_of, joined, read_json, write_json
from mqreplay.lake.journal import JOURNAL, Journal
from mqreplay.lake.maintenance import compact, removable_files, remove_unused, small_files
from mqreplay.lake.row_filter import RowFilter
from mqreplay.lake.table_versions import VERSIONS_FILE, DamagedTable
from mqreplay.lake.warehouse import Warehouse
from mqreplay.words.errors import InputError

ALL = RowFilter("c")


@pytest.fixture
def table(warehouse, rows) -> Path:
    """The folder of a table with two commits of rows."""
    warehouse.replace_rows(TABLE, rows({"id": 1}), None)
    warehouse.replace_rows(TABLE, rows({"id": 2}), None)
    return Path(warehouse.location(TABLE))


@pytest.fixture
def read_again(warehouse, contracts) -> Callable[[], list[int]]:
    """read_again(): the ids that another process reads, which has listed no table yet."""

    def read() -> list[int]:
        forget_tables()
        return sorted(Warehouse(warehouse.root, contracts).read(TABLE).select("id").collect()["id"])

    return read


def forget_tables() -> None:
    """Forget what this process knows of tables, as another one does."""
    table_files._snapshot.cache_clear()
    delta_table._kept.clear()


def commits(table: Path) -> list[Path]:
    return sorted((table / "_delta_log").glob("0*.json"))


def data_file(table: Path) -> Path:
    return sorted(table.rglob("*.parquet"))[0]


def flip(path: Path, at: int) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)


def replace_by_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def interrupt(warehouse: Warehouse, more: list[tuple[object, ...]]) -> None:
    with suppress(KeyboardInterrupt), Journal(warehouse).transaction("test"):
        warehouse.replace_rows(TABLE, more, None)
        raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda table: commits(table)[-1].unlink(), "the last run left version 3, and it has version 2"),
        (lambda table: commits(table)[-1].write_bytes(b""), "its log lists other files"),
        (lambda table: commits(table)[-2].write_bytes(b""), "its log lists other files"),
        (
            lambda table: (commits(table)[-1].unlink(), commits(table)[-1].with_stem(f"{3:020d}").mkdir()),
            "its log lists",
        ),
        (lambda table: shutil.rmtree(table), "the last run left version 3, and it is missing"),
        (lambda table: shutil.rmtree(table / "_delta_log"), "and it is missing"),
        (lambda table: commits(table)[-1].write_text("{"), "its log cannot be read"),
        (lambda table: flip(data_file(table), 400), "has a wrong checksum"),
        (lambda table: data_file(table).write_bytes(data_file(table).read_bytes()[:200]), "has 200 bytes, not"),
        (lambda table: data_file(table).unlink(), r"cannot be read \(No such file or directory\)"),
        (lambda table: shutil.copy(*sorted(table.rglob("*.parquet"))), "has a wrong checksum|bytes, not"),
    ],
)
def test_a_damaged_table_is_refused_in_words(table, read_again, damage, words) -> None:
    assert read_again() == [1, 2]
    damage(table)
    with pytest.raises(DamagedTable, match=rf"^table {TABLE} is damaged: .*{words}.*; put {table} back"):
        read_again()


def test_a_changed_number_in_the_log_is_refused(table, read_again) -> None:
    last = commits(table)[-1]
    last.write_text(last.read_text().replace('numRecords\\": 1', 'numRecords\\": 7'))
    with pytest.raises(DamagedTable, match="lists other files"):
        read_again()


def test_another_table_in_its_place_is_refused(warehouse, table, rows, read_again) -> None:
    other = Warehouse(f"{warehouse.root}-other", warehouse.contracts)
    for number in (5, 6):
        other.replace_rows(TABLE, rows({"id": number}), None)
    shutil.rmtree(table)
    shutil.copytree(other.location(TABLE), table)
    with pytest.raises(DamagedTable):
        read_again()


def test_versions_of_other_programs_and_a_dropped_table_are_read(warehouse, table, rows, read_again) -> None:
    DeltaTable(str(table)).delete("id = 1")
    assert read_again() == [2]
    warehouse.drop(TABLE)
    assert read_again() == []
    warehouse.replace_rows(TABLE, rows({"id": 9}), None)
    assert read_again() == [9]


@pytest.mark.parametrize("content", ["", "{}", '{"tables": 1}', "[]", '{"tables": {"silver.everything": [0, "x"]}}'])
def test_a_damaged_list_of_versions_is_ignored_and_made_again(warehouse, table, rows, read_again, content) -> None:
    Path(warehouse.root, VERSIONS_FILE).write_text(content)
    assert read_again() == [1, 2]
    Warehouse(warehouse.root, warehouse.contracts).replace_rows(TABLE, rows({"id": 3, "cluster": "d"}), None)
    commits(table)[-1].unlink()
    with pytest.raises(DamagedTable):
        read_again()


@pytest.mark.parametrize("damage", [lambda path: path.write_bytes(b""), lambda path: flip(path, 200), Path.unlink])
def test_a_damaged_checkpoint_is_not_needed_and_mended(warehouse, table, rows, contracts, read_again, damage) -> None:
    remove_unused(warehouse, TABLE, 7)
    (checkpoint,) = (table / "_delta_log").glob("*.checkpoint.parquet")
    damage(checkpoint)
    assert read_again() == [1, 2]
    forget_tables()
    Warehouse(warehouse.root, contracts).replace_rows(TABLE, rows({"id": 3}), None)
    assert read_again() == [1, 2, 3]
    assert sorted(DeltaTable(str(table)).to_pyarrow_table(columns=["id"])["id"].to_pylist()) == [1, 2, 3]


def test_a_damaged_checkpoint_without_all_commits_is_refused(warehouse, table, read_again) -> None:
    remove_unused(warehouse, TABLE, 7)
    (checkpoint,) = (table / "_delta_log").glob("*.checkpoint.parquet")
    checkpoint.write_bytes(b"")
    commits(table)[0].unlink()
    with pytest.raises(DamagedTable, match="its log cannot be read"):
        read_again()


@pytest.mark.parametrize("damage", [lambda path: path.write_bytes(b""), Path.unlink])
def test_a_rollback_needs_no_checkpoint(warehouse, table, rows, contracts, read_again, damage) -> None:
    remove_unused(warehouse, TABLE, 7)
    interrupt(warehouse, rows({"id": 3}))
    (checkpoint,) = (table / "_delta_log").glob("*.checkpoint.parquet")
    damage(checkpoint)
    forget_tables()
    Journal(Warehouse(warehouse.root, contracts)).recover(print)
    assert read_again() == [1, 2]


def test_a_preview_of_maintenance_names_the_way_past_a_damaged_checkpoint(warehouse, table) -> None:
    remove_unused(warehouse, TABLE, 7)
    (checkpoint,) = (table / "_delta_log").glob("*.checkpoint.parquet")
    checkpoint.write_bytes(b"")
    with pytest.raises(UnreadableLog, match="run `mqreplay maintain`, which removes a damaged checkpoint"):
        removable_files(warehouse, TABLE, 7)


def test_a_damaged_file_is_not_compacted(warehouse, table, read_again) -> None:
    flip(data_file(table), 400)
    with pytest.raises(DamagedTable, match="has a wrong checksum"):
        compact(warehouse, TABLE, small_files(warehouse, TABLE))
    with pytest.raises(DamagedTable, match="has a wrong checksum"):
        read_again()


def test_a_rollback_notes_the_versions_that_it_leaves(warehouse, table, rows, contracts, read_again) -> None:
    interrupt(warehouse, rows({"id": 3}))
    Journal(Warehouse(warehouse.root, contracts)).recover(print)
    assert read_again() == [1, 2]
    commits(table)[-1].unlink()
    with pytest.raises(DamagedTable):
        read_again()


def test_a_changed_digit_in_a_journal_is_refused(warehouse, table, contracts, read_again) -> None:
    path = joined(warehouse.root, JOURNAL)
    write_json(path, {"name": "test", "versions": {TABLE: 3}})
    Path(path).write_text(Path(path).read_text().replace(f'"{TABLE}": 3', f'"{TABLE}": 0'))
    with pytest.raises(InputError, match="is damaged, so an interrupted run cannot be rolled back"):
        Journal(Warehouse(warehouse.root, contracts)).recover(print)
    Path(path).write_text(json.dumps({"name": "test", "versions": {TABLE: 0}}))  # without a checksum
    with pytest.raises(InputError, match="is damaged"):
        Journal(Warehouse(warehouse.root, contracts)).recover(print)
    assert read_again() == [1, 2]


def test_a_journal_of_an_older_version_has_no_checksum(warehouse, table, contracts, read_again) -> None:
    Path(warehouse.root, VERSIONS_FILE).unlink()
    Path(warehouse.root, JOURNAL).write_text(json.dumps({"name": "test", "versions": {TABLE: 2}}))
    Journal(Warehouse(warehouse.root, contracts)).recover(print)
    assert read_again() == [1]


def test_a_small_file_with_another_value_is_refused(tmp_path) -> None:
    path = tmp_path / "kept.json"
    write_json(str(path), {"kept": [1, 2.5, "é"], "state": "x"})
    assert read_json(str(path)) == {"kept": [1, 2.5, "é"], "state": "x"}
    path.write_text(path.read_text().replace("2.5", "2.6"))
    with pytest.raises(ValueError, match="wrong checksum"):
        read_json(str(path))


def test_a_folder_in_the_place_of_a_small_file_is_named(tmp_path) -> None:
    path = str(tmp_path / "kept.json")
    (tmp_path / "kept.json").mkdir()
    for use in (lambda: write_json(path, {}), lambda: files_of(path).remove(path)):
        with pytest.raises(InputError, match="is a folder, and mqreplay needs a file there"):
            use()
    assert [path.name for path in tmp_path.iterdir()] == ["kept.json"]
