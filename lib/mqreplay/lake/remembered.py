"""Small tables as they were when the last run ended, beside the warehouse: a run with nothing to do then asks nothing.

What is kept counts only while no table has had a commit since (Warehouse.state). A file that is missing, torn or of
another version is no loss.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mqreplay.lake.small_file import write_json
from mqreplay.lake.warehouse import Warehouse

FILE = ".mqreplay.remembered"
Rows = list[tuple[Any, ...]]


@dataclass(frozen=True)
class Question:
    """What a run asks of a warehouse's tables, under a name that says it all; the answer is small."""

    name: str
    read: Callable[[Warehouse], Sequence[Sequence[Any]]]


class Remembered:
    """Answers of the last run. Use it under the warehouse's lock."""

    def __init__(self, warehouse: Warehouse) -> None:
        self._warehouse = warehouse
        self._path = Path(warehouse.root, FILE)

    def rows(self, asked: Question) -> Rows:
        """Those kept, if the tables are as they were then, else what is read."""
        kept = self._kept()
        if kept is not None and asked.name in kept:
            return [tuple(map(_back, row)) for row in kept[asked.name]]
        return [tuple(row) for row in asked.read(self._warehouse)]

    def keep(self, asked: Iterable[Question]) -> None:
        """Keeps the answers to these questions, and no others, unless all are kept already."""
        kept, by_name = self._kept(), {question.name: question for question in asked}
        if kept is not None and kept.keys() >= by_name.keys():
            return
        rows = {
            name: [list(map(_plain, row)) for row in question.read(self._warehouse)]
            for name, question in sorted(by_name.items())
        }
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
