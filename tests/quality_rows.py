"""Rows for the tests of quality: what a test says of a row, and something fitting in every other column."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mqreplay.lake.contract import Contract
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
    fitting = {"STRING": "x", "INT": 1, "BIGINT": 1, "DOUBLE": 1.0, "TIMESTAMP": START, "DATE": START.date()}
    unsaid = {c.name: None if c.nullable else fitting.get(c.type.upper(), True) for c in contract.columns}
    unknown = row.keys() - unsaid.keys()
    assert not unknown, f"{contract.name} has no {unknown}"
    return tuple((unsaid | row).values())


def change(minute: int, previous: int | None, new: int | None, **differs: Any) -> Row:
    """A row of silver.offset_change that ends at ``minute``."""
    queue = {"source_name": "broker-a-0", "broker_name": "broker-a", "topic": "t", "consumer_group": "g"}
    times = {"from_ts": at(minute - 1), "to_ts": at(minute)}
    return queue | {"queue_id": 0, "previous_offset": previous, "new_offset": new} | times | differs
