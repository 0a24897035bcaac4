"""The text of a value as Spark SQL casts it to STRING: evidence keys hold values as such text."""

from __future__ import annotations

import datetime as dt
import re

import polars as pl

from mqreplay.core.java_double import double_text

INTEGER = re.compile(r"0|-?[1-9][0-9]{0,18}")
INSTANT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{0,5}[1-9])?")
BIGINTS = range(-(2**63), 2**63)


def spark_text(column: str, kind: pl.DataType) -> pl.Expr:
    """Return the column as text: instants in UTC, with a fraction of a second only where there is one."""
    value = pl.col(column)
    if isinstance(kind, pl.Datetime):
        return value.dt.strftime("%Y-%m-%d %H:%M:%S%.6f").str.strip_chars_end("0").str.strip_chars_end(".")
    if isinstance(kind, pl.Float64):
        return value.map_elements(double_text, pl.String)
    return value.cast(pl.String)


def has_text(column: str, kind: pl.DataType, text: str) -> pl.Expr:
    """Return whether the column, cast to text, is ``text``.

    Strings, integers and instants are compared as they are stored, so that Parquet row groups can be skipped.
    """
    value = pl.col(column)
    if isinstance(kind, pl.String):
        return value == text
    if kind.is_integer():
        is_number = INTEGER.fullmatch(text) is not None and int(text) in BIGINTS
        return value == int(text) if is_number else pl.lit(False)
    instant = _instant(text) if isinstance(kind, pl.Datetime) else None
    return value == instant if instant is not None else spark_text(column, kind) == text


def _instant(text: str) -> dt.datetime | None:
    """Return the instant that is cast to this text; None where Python has none."""
    try:
        return dt.datetime.fromisoformat(f"{text}+00:00") if INSTANT.fullmatch(text) else None
    except ValueError:  # as 2026-02-30
        return None
