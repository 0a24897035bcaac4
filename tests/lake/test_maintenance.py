"""Compaction, unused files and old log entries, without Spark."""

from __future__ import annotations

import datetime as dt
import json
import os
import time
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from deltalake import DeltaTable, Field

from everything_table import TABLE
from made_warehouse import live_files
from mqreplay.lake import maintenance
from mqreplay.lake.buckets import BUCKETS, key_of
from mqreplay.lake.contract import load_contracts
from mqreplay.lake.journal import Journal
from mqreplay.lake.maintenance import compact, removable_files, remove_unused, small_files
from mqreplay.lake.row_filter import RowFilter
from mqreplay.lake.table_files import Buckets, read_files
from mqreplay.lake.warehouse import Warehouse

ALL = RowFilter("c")
DAY = dt.date(2026, 1, 2)
NEXT = {"day": DAY + dt.timedelta(days=1), "at": dt.datetime(2026, 1, 3, 3, tzinfo=dt.UTC)}
DAYS_AGO = 40


def age(warehouse: Warehouse, days: int = DAYS_AGO) -> None:
    """Make all that is in the table's folder older."""
    then, ms = time.time() - days * 86_400, days * 86_400_000
    folder = Path(warehouse.location(TABLE))
    for path in [*folder.glob("_delta_log/*"), *folder.rglob("part-*.parquet")]:
        if path.suffix == ".json":
            actions = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
            for action in actions:
                for kind, name in (("commitInfo", "timestamp"), ("remove", "deletionTimestamp")):
                    if kind in action:
                        action[kind][name] -= ms
            path.write_text("".join(f"{json.dumps(action)}\n" for action in actions), encoding="utf-8")
        os.utime(path, (then, then))


def commits(warehouse: Warehouse) -> list[int]:
    return sorted(int(path.stem) for path in Path(warehouse.location(TABLE)).glob("_delta_log/*.json"))


def interrupted(warehouse: Warehouse, rows: list[tuple[Any, ...]]) -> None:
    """Replace all rows in a run that is then interrupted."""
    with Journal(warehouse).transaction("test"):
        warehouse.replace_rows(TABLE, rows, ALL)
        raise KeyboardInterrupt


def test_files_of_a_cluster_and_day_become_one(warehouse, rows, same_rows) -> None:
    for number in (1, 2, 3):
        warehouse.replace_rows(TABLE, rows({"id": number}), None)
    for number in (4, 5):
        warehouse.replace_rows(TABLE, rows({"id": number} | NEXT), None)
    warehouse.replace_rows(TABLE, rows({"id": 6, "cluster": "d"}), None)
    before = warehouse.version(TABLE)
    assert [(one.cluster, one.day, one.files) for one in small_files(warehouse, TABLE)] == [
        ("c", DAY, 3),
        ("c", NEXT["day"], 2),
    ]
    assert compact(warehouse, TABLE, small_files(warehouse, TABLE))
    assert len(live_files(warehouse, TABLE)) == 3
    assert warehouse.version(TABLE) == before + 1
    same_rows(*({"id": n} for n in (1, 2, 3)), *({"id": n} | NEXT for n in (4, 5)), {"id": 6, "cluster": "d"})
    assert small_files(warehouse, TABLE) == []
    warehouse.restore(TABLE, before)
    assert len(live_files(warehouse, TABLE)) == 6
    assert len(warehouse.read(TABLE, RowFilter("c", frozenset({DAY}))).collect()) == 3


def test_large_files_stay(warehouse, rows, monkeypatch) -> None:
    for number in (1, 2):
        warehouse.replace_rows(TABLE, rows({"id": number}), None)
    monkeypatch.setattr(maintenance, "DAY_BYTES", 400)
    assert small_files(warehouse, TABLE) == []


def test_columns_of_another_program_stay(warehouse, rows) -> None:
    for number in (1, 2):
        warehouse.replace_rows(TABLE, rows({"id": number}), None)
    DeltaTable(warehouse.location(TABLE)).alter.add_columns([Field("note", "string")])
    assert small_files(warehouse, TABLE) == []


def test_each_row_of_compacted_files_is_in_one_shard(tmp_path) -> None:
    contracts = load_contracts()
    warehouse, name = Warehouse(str(tmp_path), contracts), "silver.offset_change"
    ts = dt.datetime(2026, 1, 2, tzinfo=dt.UTC)
    given = {"cluster": "c", "day": DAY, "source_name": "b-0", "broker_name": "b", "topic": "t", "consumer_group": "g"}
    given |= {"broker_id": 0, "to_ts": ts, "new_offset": 1, "source_digest": "d"}
    columns = [column.name for column in contracts[name].columns]
    for queues in range(0, 60, 20):
        many = [given | {"queue_id": queue} for queue in range(queues, queues + 20)]
        warehouse.replace_rows(name, [tuple(row.get(column) for column in columns) for row in many], None)
    assert compact(warehouse, name, small_files(warehouse, name))
    assert len(live_files(warehouse, name)) == 1
    contract = contracts[name]
    files = warehouse.files(name, ALL)
    key = key_of(contract.shard_key)
    shards = [(0, BUCKETS // 2 - 1), (BUCKETS // 2, BUCKETS - 1)]
    found = [read_files(files, ["queue_id"], pl.lit(True), Buckets(*shard, key))["queue_id"] for shard in shards]
    assert all(len(queues) > 10 for queues in found)
    assert sorted(pl.concat(found)) == list(range(60))


def test_a_table_that_another_program_writes_is_left(warehouse, rows, same_rows, monkeypatch) -> None:
    for number in (1, 2):
        warehouse.replace_rows(TABLE, rows({"id": number}), None)
    found = small_files(warehouse, TABLE)
    replace, open_table = warehouse.replace_rows, maintenance.open_table

    def overtaken(place: str, version: int) -> DeltaTable:
        table = open_table(place, version)
        replace(TABLE, rows({"id": 3}), ALL)
        return table

    monkeypatch.setattr(maintenance, "open_table", overtaken)
    assert not compact(warehouse, TABLE, found)
    same_rows({"id": 3})


def test_files_that_recent_versions_use_are_kept(warehouse, rows, same_rows) -> None:
    for number in (1, 2):
        warehouse.replace_rows(TABLE, rows({"id": number}), ALL)
    age(warehouse)
    old = set(live_files(warehouse, TABLE))
    warehouse.replace_rows(TABLE, rows({"id": 3}), ALL)  # replaced today: a reader may still use the file of before
    folder = Path(warehouse.location(TABLE))
    (folder / "notes.txt").write_text("mine")
    (folder / "part-new.parquet").write_bytes(b"a file that another program is about to commit")
    os.utime(folder / "notes.txt", (0, 0))
    reader = DeltaTable(str(folder), version=3)
    unused = removable_files(warehouse, TABLE, 7)
    assert len(unused) == 1
    assert not old & set(unused)
    number, size, _ = remove_unused(warehouse, TABLE, 7)
    assert (number, size) == (1, sum(unused.values()))
    assert (folder / "notes.txt").exists()
    assert (folder / "part-new.parquet").exists()
    assert reader.to_pyarrow_table()["id"].to_pylist() == [2]
    same_rows({"id": 3})


def test_old_log_entries_go_and_an_interrupted_run_is_still_rolled_back(warehouse, rows, same_rows) -> None:
    for number in range(1, 14):
        warehouse.replace_rows(TABLE, rows({"id": number}, {"id": 100 + number} | NEXT), ALL)
    age(warehouse)
    assert commits(warehouse) == list(range(15))
    assert remove_unused(warehouse, TABLE, 7)[2] == 14
    assert commits(warehouse) == [14]
    same_rows({"id": 13}, {"id": 113} | NEXT)
    for number in (20, 21):
        # An interrupted run leaves its journal; the files that it removed were added before the log begins.
        with pytest.raises(KeyboardInterrupt):
            interrupted(warehouse, rows({"id": number}))
        Journal(warehouse).recover(lambda what: None)
        same_rows({"id": 13}, {"id": 113} | NEXT)
    assert pl.read_delta(warehouse.location(TABLE)).height == 2


def test_files_of_the_checkpoint_are_restored(warehouse, rows, same_rows) -> None:
    """The log begins with a checkpoint, which alone says how the files and the columns of the version came to be."""
    for number in range(11):
        warehouse.replace_rows(TABLE, rows({"id": number + 1}), None)
    age(warehouse)
    warehouse.replace_rows(TABLE, rows({"id": 12}), None)
    assert remove_unused(warehouse, TABLE, 7)[2] > 10
    warehouse.replace_rows(TABLE, [], ALL)
    same_rows()
    warehouse.restore(TABLE, 13)
    same_rows(*({"id": number + 1} for number in range(12)))
