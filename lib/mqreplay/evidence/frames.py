"""Columns of frames: in the types of a schema, by a table of cases, or by a law that is asked once for each case."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import polars as pl

from mqreplay.evidence.intervals import INSTANT

Schema = Mapping[str, pl.DataType]
# The type of a column follows from its name: one name is one fact, in whichever frame.
QUEUES: Final = pl.List(pl.Struct({"broker_name": pl.String, "queue_id": pl.Int32}))
MAP_OF_NUMBERS: Final = pl.List(pl.Struct({"key": pl.String, "value": pl.Int64}))  # a MAP of Delta, as rows have it
_TYPES: Final[dict[str, pl.DataType]] = {
    **dict.fromkeys(("cause", "client_id", "consumer_group", "error", "judgement", "lookup", "reason"), pl.String()),
    **dict.fromkeys(("record_id", "sign", "source", "source_digest", "step", "who", "why"), pl.String()),
    **dict.fromkeys(("broker_id", "expected_broker_id", "route_id", "slave_id"), pl.Int64()),
    **dict.fromkeys(("opaque", "sub_version", "unacknowledged"), pl.Int64()),
    "day": pl.Date(),
    "epoch": INSTANT,
    "ts": INSTANT,
}
_TYPES_BY_END: Final[dict[tuple[str, ...], pl.DataType]] = {
    ("_ts",): INSTANT,
    ("queue_id", "_code", "_times", "_level"): pl.Int32(),
    ("offset", "_ms", "_bytes", "_messages", "_msgs"): pl.Int64(),
    ("_name", "_addr", "_role", "topic"): pl.String(),
}
Condition = pl.Expr | str  # or the name of a column
Value = pl.Expr | str | float | None  # a text is itself, and names no column


def columns(*names: str) -> dict[str, pl.DataType]:
    """Return the types of columns by their names.

    >>> columns("broker_name", "queue_id", "is_there", "lag_ms")
    {'broker_name': String, 'queue_id': Int32, 'is_there': Boolean, 'lag_ms': Int64}
    """
    return {name: _type_of(name) for name in names}


def _type_of(name: str) -> pl.DataType:
    if name in _TYPES:
        return _TYPES[name]
    if name.startswith(("is_", "has_")):
        return pl.Boolean()
    for end, kind in _TYPES_BY_END.items():
        if name.endswith(end):
            return kind
    raise KeyError(f"no type follows from the name {name}")


def typed(rows: pl.DataFrame, schema: Schema, **values: pl.Expr) -> pl.DataFrame:
    """Return the columns of a schema in their types; ``values`` are those that the rows do not have so."""
    return rows.select(values.get(name, pl.col(name)).cast(kind).alias(name) for name, kind in schema.items())


def filled(rows: pl.DataFrame, schema: Schema, **values: pl.Expr) -> pl.DataFrame:
    """Return the columns of a schema as `typed`; those that the rows lack are null."""
    missing = {name: pl.lit(None) for name in schema if name not in rows.columns}
    return typed(rows, schema, **(missing | values))


def valued(rows: pl.DataFrame, schema: Schema, **values: pl.Expr) -> pl.DataFrame:
    """Return the columns of a schema as `typed`; those without one of ``values`` are null."""
    return typed(rows, schema, **(dict.fromkeys(schema, pl.lit(None)) | values))


def with_law(rows: pl.DataFrame, case: Sequence[str], results: Schema, law: Callable[..., Any]) -> pl.DataFrame:
    """Return the rows, in their order, with the ``results`` of a law that is asked once for each distinct case.

    ``case``: the columns that the law takes. It returns the values of the results; of one result, the value itself.
    """
    cases = rows.select(case).unique()
    answers = [law(*each) for each in cases.iter_rows()]
    of_cases = pl.DataFrame([(each,) for each in answers] if len(results) == 1 else answers, results, orient="row")
    return rows.join(cases.hstack(of_cases), case, how="left", nulls_equal=True, maintain_order="left")


def with_flag(
    rows: pl.DataFrame, others: pl.DataFrame, by: Sequence[str], name: str, *, nulls_equal: bool = False
) -> pl.DataFrame:
    """Return the rows, in their order, with ``name``: whether ``others`` have a row of the same ``by``."""
    flags = others.select(by).unique().with_columns(pl.lit(value=True).alias(name))
    joined = rows.join(flags, by, how="left", nulls_equal=nulls_equal, maintain_order="left")
    return joined.with_columns(pl.col(name).fill_null(value=False))


def first_of(*cases: tuple[Condition, Value], otherwise: Value = None) -> pl.Expr:
    """Return the value of the first case whose condition is true, else ``otherwise``."""
    value = _value(otherwise)
    for condition, of_case in reversed(cases):
        value = pl.when(condition).then(_value(of_case)).otherwise(value)
    return value


def _value(value: Value) -> pl.Expr:
    return value if isinstance(value, pl.Expr) else pl.lit(value)


def ms(instant: str | pl.Expr) -> pl.Expr:
    """Return an instant in epoch milliseconds."""
    return (pl.col(instant) if isinstance(instant, str) else instant).dt.epoch("ms")


def host_of(address: str | pl.Expr) -> pl.Expr:
    """Return the host of an address, host:port."""
    return (pl.col(address) if isinstance(address, str) else address).str.replace(r":[0-9]+$", "")


def instant_of(epoch_ms: str | pl.Expr) -> pl.Expr:
    """Return the instant of epoch milliseconds."""
    number = pl.col(epoch_ms) if isinstance(epoch_ms, str) else epoch_ms
    return (number * 1000).cast(INSTANT)
