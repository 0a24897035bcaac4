"""A run's commits count together: after an interruption the next run finds the tables as they were before it."""

from __future__ import annotations

import dataclasses
import os
import shutil
import threading
from pathlib import Path

import pytest

from everything_table import TABLE
from mqreplay.lake.journal import JOURNAL, OLD_MARK, Journal, interrupted_run
from mqreplay.lake.lock import warehouse_lock
from mqreplay.lake.maintenance import remove_unused
from mqreplay.lake.row_filter import RowFilter
from mqreplay.lake.warehouse import Warehouse
from mqreplay.words.errors import InputError

ALL = RowFilter("c")


class Interrupted(BaseException):
    """As KeyboardInterrupt, which is no Exception either."""


@pytest.fixture
def interrupt(warehouse):
    """interrupt(block): runs block(journal) in a transaction that then ends as by Ctrl-C."""

    def transaction(block) -> None:
        journal = Journal(warehouse)
        with journal.transaction("test"):
            block(journal)
            raise Interrupted

    def run(block) -> None:
        with pytest.raises(Interrupted):
            transaction(block)

    return run


@pytest.fixture
def recovered(warehouse, contracts):
    """recovered(): what the next run says, which is another process and so knows nothing of this one's tables."""

    def run() -> list[str]:
        said: list[str] = []
        Journal(Warehouse(warehouse.root, contracts)).recover(said.append)
        return said

    return run


def parquet(warehouse) -> list[Path]:
    return sorted(Path(warehouse.location(TABLE)).rglob("part-*.parquet"))


def test_a_table_that_the_interrupted_run_made_is_gone(warehouse, rows, interrupt, recovered, same_rows):
    interrupt(lambda journal: warehouse.replace_rows(TABLE, rows({"id": 1}), ALL))
    assert "interrupted (test)" in recovered()[0]
    assert not Path(warehouse.location(TABLE)).exists()
    assert recovered() == []
    warehouse.drop(TABLE)
    warehouse.replace_rows(TABLE, rows({"id": 2}), ALL)
    same_rows({"id": 2})


def test_a_table_that_was_there_is_as_it_was(warehouse, rows, interrupt, recovered, same_rows):
    warehouse.replace_rows(TABLE, rows({"id": 1}), ALL)

    def write(journal) -> None:
        warehouse.replace_rows(TABLE, rows({"id": 2}), ALL)
        warehouse.replace_rows(TABLE, rows({"id": 3, "cluster": "d"}), None)

    interrupt(write)
    recovered()
    same_rows({"id": 1})
    assert not Path(warehouse.root, JOURNAL).exists()


def test_an_error_cancels_the_tasks_that_still_work(warehouse):
    cancelled: list[str] = []
    journal = Journal(warehouse, lambda: cancelled.append("tasks"))
    with journal.transaction("test"):
        pass
    assert cancelled == []
    with pytest.raises(Interrupted), journal.transaction("test"):
        raise Interrupted
    assert cancelled == ["tasks"]


def test_an_interruption_is_known_until_the_next_run(warehouse, rows, interrupt, recovered):
    assert interrupted_run(warehouse.root) is None
    interrupt(lambda journal: warehouse.replace_rows(TABLE, rows({"id": 1}), ALL))
    assert interrupted_run(warehouse.root) == "test"
    with warehouse_lock(warehouse.root):
        assert interrupted_run(warehouse.root) is None, "a run is at work"
    recovered()
    assert interrupted_run(warehouse.root) is None


def test_what_was_saved_on_the_way_stays(warehouse, rows, interrupt, recovered, same_rows):
    def write(journal) -> None:
        warehouse.replace_rows(TABLE, rows({"id": 1}), ALL)
        journal.savepoint([TABLE])
        warehouse.replace_rows(TABLE, rows({"id": 2}), ALL)

    interrupt(write)
    recovered()
    same_rows({"id": 1})


def test_files_that_were_committed_before_a_savepoint_stay(warehouse, rows, same_rows):
    journal = Journal(warehouse)
    with journal.transaction("test"):
        warehouse.replace_rows(TABLE, rows({"id": 1}), ALL)
        journal.savepoint([TABLE])
        warehouse.replace_rows(TABLE, rows({"id": 2, "cluster": "d"}), RowFilter("d"))
    same_rows({"id": 1}, {"id": 2, "cluster": "d"})


def test_a_folder_without_a_version_is_no_table(warehouse, rows, recovered, same_rows):
    log = Path(warehouse.location(TABLE), "_delta_log")
    log.mkdir(parents=True)
    (log.parent / "part-0.parquet").write_bytes(b"PAR1")
    (log / f"{0:020d}.json#1").write_text("{}")
    assert not warehouse.exists(TABLE)
    same_rows()
    warehouse.replace_rows(TABLE, rows({"id": 1}), ALL)
    same_rows({"id": 1})


def test_torn_commits_are_removed_and_files_of_failed_tasks_by_maintenance(
    warehouse, rows, interrupt, recovered, same_rows
):
    warehouse.replace_rows(TABLE, rows({"id": 1}), ALL)
    place = Path(warehouse.location(TABLE))
    (used,) = parquet(warehouse)
    left = used.with_name("part-dead.parquet")

    def leave(journal) -> None:
        left.write_bytes(b"PAR1")
        (place / "_delta_log" / f".{3:020d}.json.1.tmp").write_text("{}")
        (place / "_delta_log" / f"{3:020d}.json#7").write_text("{}")

    interrupt(leave)
    recovered()
    assert len(list((place / "_delta_log").iterdir())) == 3
    same_rows({"id": 1})
    os.utime(left, (0, 0))
    assert left.exists(), "only maintenance removes files"
    assert remove_unused(warehouse, TABLE, 7)[0] == 1
    assert parquet(warehouse) == [used]
    same_rows({"id": 1})


def test_a_rollback_that_is_interrupted_is_done_again(warehouse, rows, interrupt, recovered, monkeypatch, same_rows):
    warehouse.replace_rows(TABLE, rows({"id": 1}), ALL)
    interrupt(lambda journal: warehouse.replace_rows(TABLE, rows({"id": 2}), ALL))
    with monkeypatch.context() as dying:
        dying.setattr("mqreplay.lake.warehouse.restore_table", lambda *args: (_ for _ in ()).throw(Interrupted))
        with pytest.raises(Interrupted):
            recovered()
    recovered()
    same_rows({"id": 1})


def test_a_thread_that_still_commits_has_its_files(warehouse, rows, interrupt, recovered, same_rows):
    """An error ends the run while another thread commits: the next run rolls back what it commits."""
    warehouse.replace_rows(TABLE, rows({"id": 9}), ALL)
    written, go_on = threading.Event(), threading.Event()

    def commit() -> None:
        warehouse.replace_rows(TABLE, rows({"id": 2}), ALL)
        written.set()
        go_on.wait(60)
        warehouse.replace_rows(TABLE, rows({"id": 1}), ALL)

    thread = threading.Thread(target=commit)

    def run(journal) -> None:
        thread.start()
        written.wait(60)

    interrupt(run)
    go_on.set()
    thread.join()
    same_rows({"id": 1})
    recovered()
    same_rows({"id": 9})


def test_files_of_others_are_kept(warehouse, rows, interrupt, recovered, same_rows):
    others = [Path(warehouse.location(TABLE), name) for name in ("notes.txt", "_mine/part.csv")]

    def put() -> None:
        for path in others:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("mine")

    with Journal(warehouse).transaction("test"):
        warehouse.replace_rows(TABLE, rows({"id": 1}), ALL)
        put()
    interrupt(lambda journal: warehouse.replace_rows(TABLE, rows({"id": 2}), ALL))
    recovered()
    assert [path.read_text() for path in others] == ["mine", "mine"]
    same_rows({"id": 1})


@pytest.mark.parametrize("left", [0, 1, 100, -1])
def test_half_a_commit_under_its_final_name_is_none(warehouse, rows, interrupt, recovered, left, same_rows):
    """Hadoop copies where it cannot rename; a kill then leaves a part of the version."""
    warehouse.replace_rows(TABLE, rows({"id": 1}), ALL)
    log = Path(warehouse.location(TABLE), "_delta_log")
    whole = (log / f"{0:020d}.json").read_bytes().rstrip()

    def cut(journal) -> None:
        last = max(log.glob("*.json"))
        (log / f"{int(last.stem) + 1:020d}.json").write_bytes(whole[:left])

    interrupt(cut)
    recovered()
    same_rows({"id": 1})


def test_tables_removed_by_hand_to_begin_anew_stay_removed(warehouse, rows, interrupt, recovered):
    warehouse.replace_rows(TABLE, rows({"id": 1}), ALL)
    interrupt(lambda journal: warehouse.replace_rows(TABLE, rows({"id": 2}), ALL))
    shutil.rmtree(Path(warehouse.root, "silver"))
    recovered()
    assert not Path(warehouse.root, JOURNAL).exists()
    assert not warehouse.exists(TABLE)


def test_one_table_removed_by_hand_is_named(warehouse, rows, contracts, interrupt, recovered):
    other = dataclasses.replace(contracts[TABLE], name="silver.other")
    both = Warehouse(warehouse.root, {**contracts, other.name: other})
    for name in (TABLE, other.name):
        both.replace_rows(name, rows({"id": 1}), ALL)
    with pytest.raises(Interrupted), Journal(both).transaction("test"):
        raise Interrupted
    shutil.rmtree(both.location(TABLE))
    with pytest.raises(InputError, match=f"table {TABLE} .* is missing"):
        Journal(Warehouse(warehouse.root, both.contracts)).recover(print)
    assert both.exists(other.name)


def test_the_version_before_the_run_is_kept_however_old_it_is(warehouse, rows, interrupt, recovered, same_rows):
    """Delta's writers delete commits of more than 30 days ago with each checkpoint."""
    warehouse.replace_rows(TABLE, rows({"id": 1}), ALL)
    while warehouse.version(TABLE) % 50 != 49:
        warehouse.replace_rows(TABLE, rows({"id": 1}), ALL)
    for path in Path(warehouse.location(TABLE), "_delta_log").iterdir():
        os.utime(path, (0, 0))
    interrupt(lambda journal: warehouse.replace_rows(TABLE, rows({"id": 99}), ALL))
    recovered()
    same_rows({"id": 1})


def test_a_journal_that_cannot_be_read_now_is_not_called_damaged(warehouse, recovered):
    Path(warehouse.root).mkdir(parents=True)
    Path(warehouse.root, JOURNAL).symlink_to(JOURNAL)
    with pytest.raises(OSError, match="symbolic links"):
        recovered()


def test_a_mark_of_the_version_before_is_refused_in_words(warehouse, recovered):
    Path(warehouse.root).mkdir(parents=True)
    Path(warehouse.root, OLD_MARK).write_text('["ingest c /recording"]')
    with pytest.raises(InputError, match=r"left unfinished by mqreplay 0\.1\.0"):
        recovered()


def test_a_damaged_journal_is_refused_in_words(warehouse, recovered):
    Path(warehouse.root).mkdir(parents=True)
    for text in ("", "{}", "[]", '{"versions": 1}', "\x00"):
        Path(warehouse.root, JOURNAL).write_text(text)
        with pytest.raises(InputError, match="is damaged"):
            recovered()
    Path(warehouse.root, JOURNAL).unlink()
    Path(warehouse.root, JOURNAL).mkdir()
    with pytest.raises(InputError, match="is damaged"):
        recovered()
