"""A warehouse of one table, which has every type that contracts use."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from mqreplay.lake.contract import Contract, load_contracts

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from mqreplay.lake.warehouse import Warehouse

TABLE = "silver.everything"
BASE: dict[str, Any] = {
    "cluster": "c",
    "id": 1,
    "bytes": 2**40,
    "ratio": 0.5,
    "flag": True,
    "at": dt.datetime(2026, 1, 2, 3, 4, 5, 678000, tzinfo=dt.UTC),
    "day": dt.date(2026, 1, 2),
    "names": ["a", "b"],
    "queues": [("broker-a", 0), ("broker-b", 1)],
    "settings": {"k": "v"},
    "content": bytearray(b"\x00\xff"),
}


def row(**differs: Any) -> tuple[Any, ...]:
    """The base row, and what differs."""
    return tuple({**BASE, **differs}.values())


@pytest.fixture
def contracts() -> dict[str, Contract]:
    return load_contracts(str(Path(__file__).parent / "data"))


@pytest.fixture
def warehouse(spark: SparkSession, tmp_path: Path, contracts: dict[str, Contract]) -> Warehouse:
    from mqreplay.lake.warehouse import Warehouse

    return Warehouse(spark, str(tmp_path / "warehouse"), contracts)


@pytest.fixture
def rows(warehouse: Warehouse):
    """rows(dict(id=2), ...): a frame of base rows, each with what differs."""

    def frame(*differs: dict[str, Any]) -> DataFrame:
        return warehouse.frame(TABLE, [row(**each) for each in differs])

    return frame


@pytest.fixture
def files(warehouse: Warehouse):
    """files(): every file of the table, with its size and time of change."""

    def found() -> dict[str, tuple[int, int]]:
        root = Path(warehouse.location(TABLE))
        stats = {str(p.relative_to(root)): p.stat() for p in root.rglob("*") if p.is_file()}
        return {name: (stat.st_size, stat.st_mtime_ns) for name, stat in stats.items()}

    return found
