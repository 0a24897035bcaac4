"""Commits of delta-rs that others overtake, and commits that a kill broke off."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from deltalake import DeltaTable

from everything_table import TABLE, ids, ids_of_spark, log_of, table_of
from mqreplay.lake import warehouse as module
from mqreplay.lake.delta_table import CommitConflict, keep_open, open_table
from mqreplay.lake.journal import Journal
from mqreplay.lake.row_filter import RowFilter
from mqreplay.lake.table_log import log_changed, remove_torn_log_files
from mqreplay.lake.warehouse import Warehouse
from mqreplay.words.errors import ContractError

ALL = RowFilter("c")


@pytest.fixture
def overtaken(warehouse, contracts, monkeypatch) -> Callable[[Callable[[Warehouse], None]], list[str]]:
    """overtaken(write): another writer commits just before the next commit; returns the conflicts, as they come."""

    def prepare(write: Callable[[Warehouse], None]) -> list[str]:
        commit, conflicts, others = module.commit_files, [], [write]

        def late(*arguments: Any) -> None:
            if others:
                others.pop()(Warehouse(warehouse.root, contracts))
            try:
                commit(*arguments)
            except CommitConflict as error:
                conflicts.append(str(error))
                raise

        monkeypatch.setattr(module, "commit_files", late)
        return conflicts

    return prepare


def test_rows_that_others_append_meanwhile_count_too(warehouse, rows, overtaken) -> None:
    warehouse.replace_rows(TABLE, rows({"id": 1}), None)
    overtaken(lambda other: other.replace_rows(TABLE, rows({"id": 2}), None))
    warehouse.replace_rows(TABLE, rows({"id": 3}), None)
    assert ids(warehouse) == [1, 2, 3]


def test_a_replacement_that_another_overtakes_is_done_again(warehouse, rows, overtaken) -> None:
    warehouse.replace_rows(TABLE, rows({"id": 1}, {"id": 5}), None)
    some = RowFilter("c", wanted=pl.col("id").is_in([1, 2, 3]))
    conflicts = overtaken(lambda other: other.replace_rows(TABLE, rows({"id": 2}), some))
    warehouse.replace_rows(TABLE, rows({"id": 3}), some)
    assert ids(warehouse) == [3, 5]
    assert len(conflicts) == 1


@pytest.mark.long
def test_rows_that_spark_writes_meanwhile_are_kept(spark, warehouse, rows, overtaken) -> None:
    warehouse.replace_rows(TABLE, rows({"id": 1}), None)
    rest = "day, at) VALUES ('c', 7, DATE'2026-01-02', TIMESTAMP'2026-01-02 00:00:00')"
    overtaken(lambda other: spark.sql(f"INSERT INTO {table_of(other)} (cluster, id, {rest}"))
    warehouse.replace_rows(TABLE, rows({"id": 3}), None)
    assert ids(warehouse) == ids_of_spark(spark, warehouse) == [1, 3, 7]


def test_threads_that_write_one_table_lose_no_row(warehouse, contracts, rows) -> None:
    warehouse.replace_rows(TABLE, [], None)
    begin = threading.Barrier(4, timeout=60)

    def write(first: int) -> None:
        own = Warehouse(warehouse.root, contracts)
        begin.wait()
        for number in range(first, first + 5):
            own.replace_rows(TABLE, rows({"id": number}), None)

    threads = [threading.Thread(target=write, args=(first,)) for first in (1, 6, 11, 16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert ids(warehouse) == list(range(1, 21))


def test_writers_who_make_the_table_at_once_make_one(warehouse, contracts, rows, monkeypatch) -> None:
    create = module.create_table

    def late(*arguments: Any) -> DeltaTable:
        if not (log_of(warehouse) / f"{0:020}.json").exists():
            monkeypatch.setattr(module, "create_table", create)
            Warehouse(warehouse.root, contracts).replace_rows(TABLE, rows({"id": 1}), None)
        return create(*arguments)

    monkeypatch.setattr(module, "create_table", late)
    warehouse.replace_rows(TABLE, rows({"id": 2}), None)
    assert ids(warehouse) == [1, 2]


def test_a_writer_who_always_comes_too_late_says_so(warehouse, rows, monkeypatch) -> None:
    warehouse.replace_rows(TABLE, rows({"id": 1}), None)

    def late(*_: Any, **__: Any) -> None:
        raise CommitConflict

    monkeypatch.setattr(module, "commit_files", late)
    with pytest.raises(ContractError, match="is constantly written by other programs"):
        warehouse.replace_rows(TABLE, rows({"id": 2}), None)
    monkeypatch.undo()
    assert ids(warehouse) == [1]


@pytest.mark.parametrize("versions", [0, 1, 2], ids=["no version", "no constraint", "no rows"])
def test_a_kill_while_the_table_is_made_leaves_none_after_recovery(warehouse, rows, same_rows, versions: int) -> None:

    def make() -> None:
        with Journal(warehouse).transaction("test"):
            warehouse.replace_rows(TABLE, rows({"id": 2}), ALL)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        make()
    for path in log_of(warehouse).glob("*.json"):
        if int(path.stem) >= versions:
            path.unlink()
    log_changed(warehouse.location(TABLE))
    (log_of(warehouse) / f"{versions:020}.json#1").write_text("{")  # as delta-rs writes before it renames
    assert warehouse.version(TABLE) == (versions - 1 if versions else None)
    Journal(warehouse).recover(lambda _: None)
    assert not Path(warehouse.location(TABLE)).exists()
    warehouse.replace_rows(TABLE, rows({"id": 3}), ALL)
    same_rows({"id": 3})
    assert DeltaTable(warehouse.location(TABLE)).metadata().configuration["delta.constraints.id_positive"] == "id > 0"


def test_files_of_a_commit_without_its_final_name_are_removed(warehouse, rows, same_rows) -> None:
    warehouse.replace_rows(TABLE, rows({"id": 1}), None)
    left = [log_of(warehouse) / name for name in (f"{3:020}.json#1", f".{3:020}.json.1.tmp")]
    for path in left:
        path.write_text("{")
    same_rows({"id": 1})
    remove_torn_log_files(warehouse.location(TABLE), 2)
    assert not any(path.exists() for path in left)
    warehouse.replace_rows(TABLE, rows({"id": 2}), None)
    same_rows({"id": 1}, {"id": 2})


def test_a_log_that_is_broken_is_not_read_as_empty(warehouse, rows) -> None:
    warehouse.replace_rows(TABLE, rows({"id": 1}), ALL)
    for version in log_of(warehouse).glob("*.json"):
        version.write_text("{")
    with pytest.raises(Exception, match=r"(?i)json|delta|parse"):
        warehouse.read(TABLE)


def test_a_table_that_is_kept_open_has_the_commits_of_other_programs(warehouse, rows) -> None:
    warehouse.replace_rows(TABLE, rows({"id": 1}, {"id": 2}), None)
    assert ids(warehouse) == [1, 2]
    DeltaTable(warehouse.location(TABLE)).delete("id = 1")
    assert ids(warehouse) == [2]
    warehouse.replace_rows(TABLE, rows({"id": 3}), None)
    assert ids(warehouse) == [2, 3]


def test_a_table_that_is_kept_open_is_not_taken_for_another_one_in_its_place(warehouse, rows) -> None:
    other = Warehouse(f"{warehouse.root}-other", warehouse.contracts)
    for each, number in ((warehouse, 1), (other, 7), (other, 8)):
        each.replace_rows(TABLE, rows({"id": number}), None)
    place = warehouse.location(TABLE)
    keep_open(place, open_table(place))
    shutil.rmtree(place)
    shutil.copytree(other.location(TABLE), place)
    assert sorted(open_table(place).to_pyarrow_table()["id"].to_pylist()) == [7, 8]
