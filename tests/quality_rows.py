"""Rows for the tests of quality: some columns of a row, and valid values in all others."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from deltalake import write_deltalake

from mqreplay.lake.contract import Contract, arrow_schema
from mqreplay.lake.table_files import Snapshot, read_snapshot
from mqreplay.lake.warehouse import Warehouse

if TYPE_CHECKING:
    from mqreplay.quality.result import ValidationRow

START = dt.datetime(2026, 11, 21, 3, 0, tzinfo=dt.UTC)
Row = dict[str, Any]
Judge = Callable[..., "dict[str, ValidationRow]"]


def at(minutes: float) -> dt.datetime:
    """An instant of the test night."""
    return START + dt.timedelta(minutes=minutes)


def epoch_ms(instant: dt.datetime) -> int:
    """As epoch milliseconds."""
    return int(instant.timestamp() * 1000)


def filled(contract: Contract, row: Row) -> tuple[Any, ...]:
    """A whole row of the contract's table."""
    fitting = {
        "STRING": "x",
        "INT": 1,
        "BIGINT": 1,
        "DOUBLE": 1.0,
        "BOOLEAN": True,
        "TIMESTAMP": START,
        "DATE": START.date(),
        "BINARY": b"",
    }
    # Of the others an empty list is one, of items or of a map's entries.
    unsaid = {c.name: None if c.nullable else fitting.get(c.type.upper(), []) for c in contract.columns}
    unknown = row.keys() - unsaid.keys()
    assert not unknown, f"{contract.name} has no {unknown}"
    return tuple((unsaid | row).values())


@dataclass(frozen=True)
class Folder:
    """A warehouse of tables that a test writes, so that they may break what they like: no CHECK stops it."""

    root: Path
    contracts: Mapping[str, Contract]
    files = Warehouse.files
    listed_files = Warehouse.listed_files
    day_counts = Warehouse.day_counts
    is_here = Warehouse.is_here
    spark_rows = Warehouse.spark_rows

    def location(self, name: str) -> str:
        """Return the folder of a table."""
        return str(self.root / name.replace(".", "/"))

    def exists(self, name: str) -> bool:
        """Return whether the table was written."""
        return Path(self.location(name)).is_dir()

    def snapshot(self, name: str) -> Snapshot:
        """Return the files of the table's newest version."""
        return read_snapshot(self.location(name))

    def write(self, name: str, rows: Iterable[Row]) -> None:
        """Make the table hold these rows and no others."""
        contract = self.contracts[name]
        schema = arrow_schema((c.name, c.type) for c in contract.columns)
        columns = list(zip(*(filled(contract, row) for row in rows), strict=True)) or [()] * len(schema)
        table = pa.table([pa.array(list(c), f.type) for c, f in zip(columns, schema, strict=True)], schema=schema)
        write_deltalake(self.location(name), table, mode="overwrite", partition_by=list(contract.partitioned_by))


def change(minute: int, previous: int | None, new: int | None, **differs: Any) -> Row:
    """A row of silver.offset_change that ends at ``minute``."""
    queue = {"source_name": "broker-a-0", "broker_name": "broker-a", "topic": "t", "consumer_group": "g"}
    times = {"from_ts": at(minute - 1), "to_ts": at(minute)}
    return queue | {"queue_id": 0, "previous_offset": previous, "new_offset": new} | times | differs
