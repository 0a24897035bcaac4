"""Rows of a table as Python values that JSON and a terminal can show."""

from __future__ import annotations

import datetime as dt
from typing import Any

import polars as pl


def plain_rows(rows: pl.DataFrame) -> list[dict[str, Any]]:
    """Return each row by column name. Instants are datetimes in UTC without a time zone; bytes are bytearrays.

    Maps and structs are dicts, arrays are lists.
    """
    return [{name: _plain(value) for name, value in row.items()} for row in rows.iter_rows(named=True)]


def _plain(value: Any) -> Any:
    if isinstance(value, dt.datetime):
        return value.replace(tzinfo=None)
    if isinstance(value, bytes):
        return bytearray(value)
    if isinstance(value, dict):
        return {_plain(key): _plain(each) for key, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, list) else value
