"""Small tables as they were when the last run ended, beside the warehouse: a run with nothing to do then asks nothing.

The first table that a session reads costs seconds, whatever its size. What is kept counts only while no table has had a
commit since (Warehouse.state); a file that is missing, torn or of another version is no loss.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from mqreplay.lake.small_file import write_json
from mqreplay.lake.warehouse import Warehouse

FILE = ".mqreplay.remembered"
Rows = list[tuple[Any, ...]]


class Remembered:
    """Rows by name. Use it under the warehouse's lock."""

    def __init__(self, warehouse: Warehouse) -> None:
        self._warehouse = warehouse
        self._path = Path(warehouse.root, FILE)

    def rows(self, name: str, read: Callable[[], Sequence[Sequence[Any]]]) -> Rows:
        """Those kept under the name, if the tables are as they were then, else what ``read`` gives."""
        kept = self._kept()
        if kept is not None and name in kept:
            return [tuple(map(_back, row)) for row in kept[name]]
        return [tuple(row) for row in read()]

    def keep(self, tables: dict[str, Callable[[], Sequence[Sequence[Any]]]]) -> None:
        """Keeps what each ``read`` gives, unless all are kept already."""
        kept = self._kept()
        if kept is not None and kept.keys() >= tables.keys():
            return
        rows = {name: [list(map(_plain, row)) for row in read()] for name, read in sorted(tables.items())}
        write_kept(self._path, self._warehouse.state(), rows)

    def _kept(self) -> dict[str, Any] | None:
        found = read_kept(self._path, self._warehouse.state())
        return found if isinstance(found, dict) else None


def write_kept(path: Path, state: str, value: Any) -> None:
    """Keeps what JSON can hold, with the state of the tables (Warehouse.state) that it was made from."""
    write_json(path, {"state": state, "kept": value})


def read_kept(path: Path, state: str) -> Any:
    """What was kept, if the tables are still as they were; None, too, for a file that is none of ours."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        return found["kept"] if found["state"] == state else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _plain(value: Any) -> Any:
    return {"ts": value.isoformat()} if isinstance(value, dt.datetime) else value


def _back(value: Any) -> Any:
    return dt.datetime.fromisoformat(value["ts"]) if isinstance(value, dict) else value
