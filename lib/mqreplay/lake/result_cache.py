"""Cached results of small queries, such as the kept days, beside the warehouse: a run without new files needs no query.

The cache counts only while no table has a newer commit (Warehouse.state). A missing or torn file, or one of another
version, is ignored.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import polars as pl

from mqreplay.lake.files import files_of, joined, read_json, write_json
from mqreplay.lake.row_filter import RowFilter
from mqreplay.lake.store_protocol import FileInfo
from mqreplay.lake.warehouse import Warehouse

CACHE_FILE = ".mqreplay.remembered"
MOST_STORED_ROWS = 20_000  # of a stored result: to read a large one from its table is faster than from JSON
Rows = list[tuple[Any, ...]]
RETENTION = "bronze.retention"


@dataclass(frozen=True)
class CachedQuery:
    """A query of a run with a small result. Its name includes all parameters."""

    name: str
    read: Callable[[Warehouse], pl.DataFrame | Sequence[Sequence[Any]]]


class ResultCache:
    """Results of the last run. Use it under the warehouse's lock."""

    def __init__(self, warehouse: Warehouse) -> None:
        self._warehouse = warehouse
        self._path = joined(warehouse.root, CACHE_FILE)

    def rows(self, query: CachedQuery) -> Rows:
        """Return the cached rows if no table changed since; else run the query."""
        found = self._found(query)
        return found.rows() if isinstance(found, pl.DataFrame) else [tuple(row) for row in found]

    def frame(self, query: CachedQuery, schema: pl.Schema) -> pl.DataFrame:
        """Return the same as a frame of this schema."""
        found = self._found(query)
        return found if isinstance(found, pl.DataFrame) else pl.DataFrame(found, schema, orient="row")

    def _found(self, query: CachedQuery) -> pl.DataFrame | Sequence[Sequence[Any]]:
        rows = (self._kept() or {}).get(query.name)
        return query.read(self._warehouse) if rows is None else [tuple(map(_back, row)) for row in rows]

    def keep(self, query: Iterable[CachedQuery]) -> None:
        """Store the results of exactly these queries, unless all are stored already; none of a large one."""
        kept, by_name = self._kept(), {question.name: question for question in query}
        if kept is not None and kept.keys() >= by_name.keys():
            return
        rows = {name: self._to_store(question) for name, question in sorted(by_name.items())}
        write_kept(self._path, self._warehouse.state(), rows)

    def _to_store(self, query: CachedQuery) -> list[list[Any]] | None:
        found = query.read(self._warehouse)
        if len(found) > MOST_STORED_ROWS:
            return None
        rows = found.iter_rows() if isinstance(found, pl.DataFrame) else found
        return [list(map(_plain, row)) for row in rows]

    def _kept(self) -> dict[str, Any] | None:
        found = read_kept(self._path, self._warehouse.state())
        return found if isinstance(found, dict) else None


def write_kept(path: str, state: str, value: Any) -> None:
    """Store a JSON value with the state of the tables (Warehouse.state) from which it was made."""
    write_json(path, {"state": state, "kept": value})


def read_kept(path: str, state: str) -> Any:
    """Return the stored value if no table has changed since; else None, also for a foreign file. Do not change it."""
    try:
        found = _read_once(path, files_of(path).info(path))
        return found["kept"] if found["state"] == state else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


@lru_cache(maxsize=1)  # a night asks for many results of one file, which grows with clusters and nights
def _read_once(path: str, _written: FileInfo | None) -> dict[str, Any]:
    return read_json(path)


def last_kept(path: str) -> Any:
    """Return the value that was stored last, from whatever state of the tables; None without one."""
    try:
        return read_json(path)["kept"]
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _plain(value: Any) -> Any:
    return {"ts": value.isoformat()} if isinstance(value, dt.datetime) else value


def _back(value: Any) -> Any:
    return dt.datetime.fromisoformat(value["ts"]) if isinstance(value, dict) else value


def first_days(warehouse: Warehouse, cluster: str) -> dict[str, dt.date]:
    """Return layer -> the first day that is kept; nothing for a layer from which no day was removed."""
    rows = ResultCache(warehouse).rows(kept_days(cluster))
    return {layer: dt.date.fromisoformat(first_day) for layer, first_day in rows}


def kept_days(cluster: str) -> CachedQuery:
    """Return the query for layer and first_day (ISO 8601) of the cluster's rows of bronze.retention."""

    def read(warehouse: Warehouse) -> list[tuple[Any, ...]]:
        rows = warehouse.read(RETENTION, RowFilter(cluster)).select("layer", "first_day").sort("layer").collect().rows()
        return [(layer, first_day.isoformat()) for layer, first_day in rows]

    return CachedQuery(f"kept days of {cluster}", read)
