"""The rows of a warehouse as plain_model.py has them, read by delta-rs."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

from deltalake import DeltaTable

from reliability.plain_model import TABLES, Row


def without_copies(tables: dict[str, list[Row]]) -> dict[str, list[Row]]:
    """The tables without ledger rows of files whose bytes lie in two places."""
    digests = [row["sha256"][:32] for row in tables["bronze.source_file"]]
    once = {digest for digest in digests if digests.count(digest) == 1}
    left = {name: [row for row in tables[name] if row["source_digest"] in once] for name in ("bronze.quarantine",)}
    left["bronze.source_file"] = [row for row in tables["bronze.source_file"] if row["sha256"][:32] in once]
    return tables | left


IGNORED = {"cluster", "reason", "code", "advice", "first_ts", "last_ts"}


def tables_of(warehouse: str, cluster: str) -> dict[str, list[Row]]:
    """The rows of the compared tables as the model has them, read by delta-rs."""
    found = {}
    for name in TABLES:
        path = Path(warehouse, *name.split("."))
        rows = DeltaTable(str(path)).to_pyarrow_table().to_pylist() if path.is_dir() else []
        found[name] = [_as_model(row) for row in rows if row["cluster"] == cluster]
    return found


def _as_model(row: Row) -> Row:
    told: Row = {name: _plain(value) for name, value in row.items() if value is not None and name not in IGNORED}
    if "recording" in told:
        told["recording"] = Path(told["recording"]).name
    return told


def _plain(value: Any) -> Any:
    if isinstance(value, dt.datetime):
        return round(value.timestamp() * 1000)
    return str(value) if isinstance(value, dt.date) else value
