"""Tables are readable without Spark: by delta-rs, polars and DuckDB, every type, after replacing and compacting."""

from __future__ import annotations

import datetime as dt

import duckdb
import polars
import pytest
from deltalake import DeltaTable

from everything_table import TABLE
from made_warehouse import live_files
from mqreplay.lake.row_filter import RowFilter

AT = dt.datetime(2026, 1, 2, 3, 4, 5, 678000, tzinfo=dt.UTC)
FULL = {
    "cluster": "c",
    "id": 2,
    "bytes": 2**40,
    "ratio": 0.5,
    "flag": True,
    "at": AT,
    "day": dt.date(2026, 1, 2),
    "names": ["a", "b"],
    "queues": [{"broker_name": "broker-a", "queue_id": 0}, {"broker_name": "broker-b", "queue_id": 1}],
    "content": b"\x00\xff",
}
NEEDED = {"cluster": "c", "id": 3, "day": dt.date(2026, 1, 2)}
NULLS = dict.fromkeys(FULL) | NEEDED


@pytest.fixture(params=["as written", "compacted"])
def place(warehouse, rows, compact, request) -> str:
    """A table that was written, partly replaced, and compacted or not; its rows are FULL and NULLS."""
    nothing = dict.fromkeys([*NULLS, "settings"]) | NEEDED
    few = RowFilter("c", wanted=polars.col("id") < 3)
    warehouse.replace_rows(TABLE, rows({"id": 1}, {"id": 2}), few)
    warehouse.replace_rows(TABLE, rows({"id": 2}), few)
    warehouse.replace_rows(TABLE, rows(nothing), None)
    warehouse.replace_rows(TABLE, rows({"id": 4}), None)
    if request.param == "compacted":
        compact()
        assert len(live_files(warehouse, TABLE)) == 1
    warehouse.replace_rows(TABLE, [], RowFilter("c", wanted=polars.col("id") == 4))
    return warehouse.location(TABLE)


def test_mqreplay(place: str, warehouse) -> None:
    found = {row["id"]: row for row in warehouse.read(TABLE).collect().to_dicts()}
    assert found[2].pop("settings") == {"k": "v"}
    assert found[3].pop("settings") is None
    assert found == {2: FULL, 3: NULLS}


def test_delta_rs(place: str) -> None:
    found = {row["id"]: row for row in DeltaTable(place).to_pyarrow_table().to_pylist()}
    assert found[2].pop("settings") == [("k", "v")]
    assert found[3].pop("settings") is None
    assert found == {2: FULL, 3: NULLS}


def test_polars(place: str) -> None:
    found = {row["id"]: row for row in polars.read_delta(place).to_dicts()}
    assert found[2].pop("settings") == {"k": "v"}
    assert found[3].pop("settings") is None
    assert found == {2: FULL, 3: NULLS}


def test_duckdb(place: str) -> None:
    table = DeltaTable(place).to_pyarrow_dataset()
    connection = duckdb.connect()
    connection.sql("SET TimeZone = 'UTC'")
    connection.register("everything", table)
    columns = ", ".join([*(f'"{name}"' for name in FULL), "settings['k']"])
    found = {row[1]: row for row in connection.sql(f"SELECT {columns} FROM everything").fetchall()}
    assert found == {2: (*FULL.values(), "v"), 3: (*[NULLS[name] for name in FULL], None)}
