"""A warehouse of one table, which has every type that contracts use."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from everything_table import TABLE
from mqreplay.lake import maintenance
from mqreplay.lake.contract import Contract, load_contracts
from mqreplay.lake.warehouse import Warehouse

BASE: dict[str, Any] = {
    "cluster": "c",
    "id": 1,
    "bytes": 2**40,
    "ratio": 0.5,
    "flag": True,
    "at": dt.datetime(2026, 1, 2, 3, 4, 5, 678000, tzinfo=dt.UTC),
    "day": dt.date(2026, 1, 2),
    "names": ["a", "b"],
    "queues": [{"broker_name": "broker-a", "queue_id": 0}, {"broker_name": "broker-b", "queue_id": 1}],
    "settings": {"k": "v"},
    "content": b"\x00\xff",
}


@pytest.fixture
def contracts() -> Mapping[str, Contract]:
    return load_contracts(str(Path(__file__).parent / "data"))


@pytest.fixture
def warehouse(tmp_path: Path, contracts: Mapping[str, Contract]) -> Warehouse:
    return Warehouse(str(tmp_path / "warehouse"), contracts)


@pytest.fixture
def rows() -> Callable[..., list[tuple[Any, ...]]]:
    """rows(dict(id=2), ...): base rows, each with what differs."""
    return lambda *differs: [tuple({**BASE, **each}.values()) for each in differs]


@pytest.fixture
def same_rows(warehouse: Warehouse) -> Callable[..., None]:
    """same_rows(dict(id=2), ...): the table holds these rows and no others."""

    def check(*differs: dict[str, Any]) -> None:
        found = warehouse.read(TABLE).collect()
        assert found.columns == list(BASE)
        assert found.sort("cluster", "id").to_dicts() == [{**BASE, **each} for each in differs]

    return check


@pytest.fixture
def files(warehouse: Warehouse) -> Callable[[], dict[str, tuple[int, int]]]:
    """files(): every file of the table, with its size and time of change."""

    def found() -> dict[str, tuple[int, int]]:
        root = Path(warehouse.location(TABLE))
        stats = {str(p.relative_to(root)): p.stat() for p in root.rglob("*") if p.is_file()}
        return {name: (stat.st_size, stat.st_mtime_ns) for name, stat in stats.items()}

    return found


@pytest.fixture
def compact(warehouse: Warehouse) -> Callable[[], None]:
    """compact(): compacts the table as `mqreplay maintain` does."""

    def run() -> None:
        assert maintenance.compact(warehouse, TABLE, maintenance.small_files(warehouse, TABLE))

    return run
