"""Compaction, unused files and log entries of a table in a store."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator

import pytest

from made_warehouse import live_files
from mqreplay.lake.contract import load_contracts
from mqreplay.lake.files import files_of, joined
from mqreplay.lake.lock import warehouse_lock
from mqreplay.lake.maintenance import compact, removable_files, remove_unused, small_files
from mqreplay.lake.row_filter import RowFilter
from mqreplay.lake.storage import Storage, storage, use_storage
from mqreplay.lake.warehouse import Warehouse
from storage.hdfs_server import HdfsServer
from storage.s3_server import S3Server

TABLE, LAYERS = "bronze.retention", ("bronze", "silver", "gold")
DAY = dt.date(2026, 1, 2)


@pytest.fixture(params=["s3", "hdfs"])
def warehouse(request: pytest.FixtureRequest, s3_server: S3Server, hdfs_server: HdfsServer) -> Iterator[Warehouse]:
    """A table of three files in a store, under the lease."""
    before = storage()
    options = {name.lower(): value for name, value in s3_server.environment().items()}
    use_storage(Storage(tuple(sorted(options.items()))))
    root = f"s3://{s3_server.make_bucket()}/w" if request.param == "s3" else hdfs_server.make_folder()
    try:
        with warehouse_lock(root):
            made = Warehouse(root, load_contracts())
            for layer in LAYERS:
                made.replace_rows(TABLE, [("c", layer, DAY)], None)
            yield made
    finally:
        use_storage(before)


def layers(warehouse: Warehouse) -> list[str]:
    return sorted(warehouse.read(TABLE, RowFilter("c")).collect()["layer"])


@pytest.mark.long
def test_a_table_in_a_store_is_compacted_and_cleaned(warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    place = warehouse.location(TABLE)
    old = set(live_files(warehouse, TABLE))
    assert compact(warehouse, TABLE, small_files(warehouse, TABLE))
    assert len(live_files(warehouse, TABLE)) == 1
    assert layers(warehouse) == sorted(LAYERS)

    assert remove_unused(warehouse, TABLE, 7) == (0, 0, 0), "readers may still use the files of the last seven days"
    assert any(name.endswith(".checkpoint.parquet") for name in files_of(place).names(joined(place, "_delta_log")))
    files_of(place).write(joined(place, "notes.txt"), b"mine")
    assert set(removable_files(warehouse, TABLE, 0)) == old
    number, size, _ = remove_unused(warehouse, TABLE, 0)
    assert number == len(old) == 3
    assert size > 0
    assert set(files_of(place).names(place)) == {"_delta_log", "notes.txt", "cluster=c"}
    (left,) = live_files(warehouse, TABLE)
    assert [file.name for file in files_of(place).walk(place) if file.name.startswith("cluster=")] == [left]
    assert layers(warehouse) == sorted(LAYERS)
