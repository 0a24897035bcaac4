"""A run's commits count together: after an interruption the next run finds the tables as they were before it."""

from __future__ import annotations

import dataclasses
import os
import shutil
import threading
from pathlib import Path

import pytest
from chispa import assert_df_equality

from mqreplay.errors import InputError
from mqreplay.lake.journal import JOURNAL, OLD_MARK, Journal, interrupted_run
from mqreplay.lake.lock import warehouse_lock
from mqreplay.lake.warehouse import Warehouse

TABLE = "silver.everything"
ALL = "cluster = 'c'"


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
        Journal(Warehouse(warehouse.spark, warehouse.root, contracts)).recover(said.append)
        return said

    return run


def check(warehouse, wanted) -> None:
    got = warehouse.read(TABLE)
    assert_df_equality(got.orderBy("cluster", "id"), wanted.orderBy("cluster", "id"), ignore_metadata=True)


def parquet(warehouse) -> set[str]:
    return {path.name for path in Path(warehouse.location(TABLE)).glob("*.parquet")}


def named(warehouse) -> set[str]:
    """The data files that any version of the table names."""
    history = warehouse.spark.read.text(f"{warehouse.location(TABLE)}/_delta_log/*.json")
    return {name for name in parquet(warehouse) if not history.where(history.value.contains(name)).isEmpty()}


def test_a_table_that_the_interrupted_run_made_is_gone(warehouse, rows, interrupt, recovered):
    interrupt(lambda journal: warehouse.replace(TABLE, rows({"id": 1}), ALL))
    assert "interrupted (test)" in recovered()[0]
    assert not Path(warehouse.location(TABLE)).exists()
    assert recovered() == []
    warehouse.drop(TABLE)
    warehouse.replace(TABLE, rows({"id": 2}), ALL)
    check(warehouse, rows({"id": 2}))


def test_a_table_that_was_there_is_as_it_was(warehouse, rows, interrupt, recovered):
    warehouse.replace(TABLE, rows({"id": 1}), ALL)

    def write(journal) -> None:
        warehouse.replace(TABLE, rows({"id": 2}), ALL)
        warehouse.replace(TABLE, rows({"id": 3, "cluster": "d"}), "cluster = 'd'", nothing_there=True)

    interrupt(write)
    recovered()
    check(warehouse, rows({"id": 1}))
    assert parquet(warehouse) == named(warehouse)
    assert not Path(warehouse.root, JOURNAL).exists()


def test_an_interruption_is_known_until_the_next_run(warehouse, rows, interrupt, recovered):
    assert interrupted_run(warehouse.root) is None
    interrupt(lambda journal: warehouse.replace(TABLE, rows({"id": 1}), ALL))
    assert interrupted_run(warehouse.root) == "test"
    with warehouse_lock(warehouse.root):
        assert interrupted_run(warehouse.root) is None, "a run is at work"
    recovered()
    assert interrupted_run(warehouse.root) is None


def test_what_was_saved_on_the_way_stays(warehouse, rows, interrupt, recovered):
    def write(journal) -> None:
        warehouse.replace(TABLE, rows({"id": 1}), ALL)
        journal.savepoint([TABLE])
        warehouse.replace(TABLE, rows({"id": 2}), ALL)

    interrupt(write)
    recovered()
    check(warehouse, rows({"id": 1}))


def test_files_that_were_committed_before_a_savepoint_stay(warehouse, rows):
    journal = Journal(warehouse)
    with journal.transaction("test"):
        warehouse.replace(TABLE, rows({"id": 1}), ALL)
        journal.savepoint([TABLE])
        warehouse.replace(TABLE, rows({"id": 2, "cluster": "d"}), "cluster = 'd'")
    check(warehouse, rows({"id": 1}, {"id": 2, "cluster": "d"}))


def test_a_folder_without_a_version_is_no_table(warehouse, rows, recovered):
    log = Path(warehouse.location(TABLE), "_delta_log")
    log.mkdir(parents=True)
    (log.parent / "part-0.parquet").write_bytes(b"PAR1")
    (log / f".{0:020d}.json.1.tmp").write_text("{}")
    assert not warehouse.exists(TABLE)
    check(warehouse, rows())
    warehouse.replace(TABLE, rows({"id": 1}), ALL)
    check(warehouse, rows({"id": 1}))


def test_files_of_failed_tasks_and_torn_commits_are_removed(warehouse, rows, interrupt, recovered):
    warehouse.replace(TABLE, rows({"id": 1}), ALL)
    place = Path(warehouse.location(TABLE))

    def leave(journal) -> None:
        (place / "part-dead.parquet").write_bytes(b"PAR1")
        (place / "_delta_log" / f".{1:020d}.json.1.tmp").write_text("{}")

    interrupt(leave)
    assert "part-dead.parquet" in parquet(warehouse), "another thread may still commit it"
    recovered()
    assert parquet(warehouse) == named(warehouse) != set()
    assert list((place / "_delta_log").glob(".*.tmp")) == []
    check(warehouse, rows({"id": 1}))


def test_what_a_run_wrote_and_did_not_commit_is_removed_at_its_end(warehouse, rows):
    with Journal(warehouse).transaction("test"):
        warehouse.replace(TABLE, rows({"id": 1}), ALL)
        (Path(warehouse.location(TABLE)) / "part-lost.parquet").write_bytes(b"PAR1")
        # Spark writes a file for no rows, too.
        warehouse.replace(TABLE, rows({"id": 1}).repartition(2).where("ratio > 1"), "cluster = 'd'")
    assert parquet(warehouse) == named(warehouse) != set()
    check(warehouse, rows({"id": 1}))


def test_a_rollback_that_is_interrupted_is_done_again(warehouse, rows, interrupt, recovered, monkeypatch):
    warehouse.replace(TABLE, rows({"id": 1}), ALL)
    interrupt(lambda journal: warehouse.replace(TABLE, rows({"id": 2}), ALL))
    with monkeypatch.context() as dying:
        dying.setattr("mqreplay.lake.journal.remove_all_orphans", lambda *args: (_ for _ in ()).throw(Interrupted))
        with pytest.raises(Interrupted):
            recovered()
    recovered()
    check(warehouse, rows({"id": 1}))


def test_a_thread_that_still_commits_has_its_files(warehouse, rows, interrupt):
    """An error ends the run while another thread commits: the version it makes must not name removed files."""
    written, go_on = threading.Event(), threading.Event()
    place = warehouse.landing(TABLE, {"cluster": "c"}, "at")

    def commit() -> None:
        warehouse.ensure(TABLE)
        written.set()
        go_on.wait(60)
        warehouse.replace(TABLE, rows({"id": 1}), ALL)

    thread = threading.Thread(target=commit)

    def land(journal) -> None:
        thread.start()
        written.wait(60)
        Path(place.folder, "part-other.parquet").write_bytes(b"PAR1")

    interrupt(land)
    assert Path(place.folder, "part-other.parquet").exists()
    go_on.set()
    thread.join()
    check(warehouse, rows({"id": 1}))


def test_what_others_put_there_is_never_removed(warehouse, rows, interrupt, recovered):
    others = [Path(warehouse.location(TABLE), name) for name in ("notes.txt", "part=1/mine.csv")]

    def put() -> None:
        for path in others:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("mine")

    interrupt(lambda journal: put())
    recovered()
    with pytest.raises(InputError, match=r"is where a table belongs, and holds notes\.txt; move it elsewhere"):
        warehouse.replace(TABLE, rows({"id": 1}), ALL)
    assert [path.read_text() for path in others] == ["mine", "mine"]
    for path in others:
        path.unlink()
    others[1].parent.rmdir()
    with Journal(warehouse).transaction("test"):
        warehouse.replace(TABLE, rows({"id": 1}), ALL)
        put()
    interrupt(lambda journal: warehouse.replace(TABLE, rows({"id": 2}), ALL))
    recovered()
    assert [path.read_text() for path in others] == ["mine", "mine"]
    check(warehouse, rows({"id": 1}))


@pytest.mark.parametrize("left", [0, 1, 100, -1])
def test_half_a_commit_under_its_final_name_is_none(warehouse, rows, interrupt, recovered, left):
    """Hadoop copies where it cannot rename; a kill then leaves a part of the version."""
    warehouse.replace(TABLE, rows({"id": 1}), ALL)
    log = Path(warehouse.location(TABLE), "_delta_log")
    whole = (log / f"{0:020d}.json").read_bytes().rstrip()

    def cut(journal) -> None:
        last = max(log.glob("*.json"))
        (log / f"{int(last.stem) + 1:020d}.json").write_bytes(whole[:left])

    interrupt(cut)
    recovered()
    check(warehouse, rows({"id": 1}))


def test_tables_removed_by_hand_to_begin_anew_stay_removed(warehouse, rows, interrupt, recovered):
    warehouse.replace(TABLE, rows({"id": 1}), ALL)
    interrupt(lambda journal: warehouse.replace(TABLE, rows({"id": 2}), ALL))
    shutil.rmtree(Path(warehouse.root, "silver"))
    recovered()
    assert not Path(warehouse.root, JOURNAL).exists()
    assert not warehouse.exists(TABLE)


def test_one_table_removed_by_hand_is_named(warehouse, rows, contracts, interrupt, recovered):
    other = dataclasses.replace(contracts[TABLE], name="silver.other")
    both = Warehouse(warehouse.spark, warehouse.root, {**contracts, other.name: other})
    for name in (TABLE, other.name):
        both.replace(name, rows({"id": 1}), ALL)
    with pytest.raises(Interrupted), Journal(both).transaction("test"):
        raise Interrupted
    shutil.rmtree(both.location(TABLE))
    with pytest.raises(InputError, match=f"table {TABLE} .* is gone"):
        Journal(Warehouse(warehouse.spark, warehouse.root, both.contracts)).recover(print)
    assert both.exists(other.name)


def test_the_version_before_the_run_is_kept_however_old_it_is(warehouse, rows, interrupt, recovered):
    """Delta deletes commits of more than 30 days ago with each tenth version."""
    warehouse.replace(TABLE, rows({"id": 1}), ALL)
    table = f"delta.`{warehouse.location(TABLE)}`"
    while warehouse.version(TABLE) % 10 != 9:
        warehouse.spark.sql(f"COMMENT ON TABLE {table} IS '{warehouse.version(TABLE)}'")
    for path in Path(warehouse.location(TABLE), "_delta_log").iterdir():
        os.utime(path, (0, 0))
    interrupt(lambda journal: warehouse.replace(TABLE, rows({"id": 99}), ALL))
    recovered()
    check(warehouse, rows({"id": 1}))


def test_a_journal_that_cannot_be_read_now_is_not_called_damaged(warehouse, recovered):
    Path(warehouse.root, JOURNAL).mkdir(parents=True)
    with pytest.raises(IsADirectoryError):
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
