"""What was known at a moment: a join to the nearest row before or after, by numbers sorted once (nearest.py)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import ArrayType, MapType, StructField, StructType

from mqreplay.replay.nearest import NOWHERE, common_codes, nearest, numbers, taken

AT, SHARE = "_at", "_share"
KNOWN = "_known_"
SHORT = 2  # partitions of a shuffle


class Ask(NamedTuple):
    """A question of each row of ``left``: the moment, the column of ``right`` that answers, its new name, which way."""

    at: str
    value: str
    out: str
    after: bool = False


def as_of(
    left: DataFrame, right: DataFrame, by: list[str], at: str, value: Column, out: str, *, after: bool = False
) -> DataFrame:
    """``left`` with column ``out``: ``value`` of the nearest ``right`` row of the same ``by``.

    ``at`` is the name of the column in both frames that orders them. Nearest is the last row at or before, or with
    ``after`` the first row at or after; null where there is none. Rows of ``right`` with a null ``at`` or ``value`` are
    passed over; rows of ``left`` with a null ``at`` get null.
    """
    known = right.select(*by, F.col(at).alias(AT), value.alias(out))
    return ask(left, known, by, [Ask(at, out, out, after)])


def ask(left: DataFrame, right: DataFrame, by: list[str], asks: Sequence[Ask]) -> DataFrame:
    """Several questions to the same rows. ``right`` has ``by``, AT, and the columns that answer."""
    shares = group_shares(left)
    share = F.pmod(F.hash(*by), F.lit(shares)).alias(SHARE)
    asked = left.select("*", share)
    known = apart(right.select(*by, AT, *dict.fromkeys(a.value for a in asks), share).where(F.col(AT).isNotNull()))
    answers = [StructField(a.out, right.schema[a.value].dataType) for a in asks]
    shape = nullable(StructType(left.schema.fields + answers))
    look = _looker(by, asks, to_arrow_schema(shape, timestamp_utc=True))
    return asked.groupBy(SHARE).cogroup(known.groupBy(KNOWN + SHARE)).applyInArrow(look, shape)


def apart(known: DataFrame) -> DataFrame:
    """The frame with other names for all columns: in a cogroup Spark mixes up columns that both sides had from one."""
    return known.select(*[F.col(name).alias(KNOWN + name) for name in known.columns])


def as_known(table: pa.Table) -> pa.Table:
    """In the worker, such a table by the old names."""
    return table.rename_columns([name.removeprefix(KNOWN) for name in table.column_names]).combine_chunks()


def completed(rows: pa.Table, found: Mapping[str, pa.Array], schema: pa.Schema) -> pa.Table:
    """In the worker, the rows with what was found for them, in the shape that Spark was promised."""
    columns = [found[f.name] if f.name in found else rows[f.name].combine_chunks() for f in schema]
    arrays = [column.cast(f.type) for column, f in zip(columns, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)


def group_shares(frame: DataFrame) -> int:
    """Into how many groups rows are dealt for a look in memory: one is then small, however long the night."""
    partitions = int(frame.sparkSession.conf.get("spark.sql.shuffle.partitions") or 1)
    # Each group costs some milliseconds, which in a short night is more than what is in it.
    return (8 if partitions <= SHORT else 16) * partitions


def nullable(kind: Any) -> Any:
    """The type with every field of it nullable, as what comes back from a worker may be."""
    if isinstance(kind, StructType):
        return StructType([StructField(f.name, nullable(f.dataType), True) for f in kind.fields])
    if isinstance(kind, ArrayType):
        return ArrayType(nullable(kind.elementType), True)
    if isinstance(kind, MapType):
        return MapType(kind.keyType, nullable(kind.valueType), True)
    return kind


def _looker(by: list[str], asks: Sequence[Ask], schema: pa.Schema) -> Callable[[pa.Table, pa.Table], pa.Table]:
    def look(asked: pa.Table, known: pa.Table) -> pa.Table:
        questions, told = asked.combine_chunks(), as_known(known)
        key, of_known = common_codes([questions[name] for name in by], [told[name] for name in by])
        moment, _ = numbers(told[AT])
        found = {}
        for one in asks:
            at, there = numbers(questions[one.at])
            rows = np.flatnonzero(told[one.value].is_valid().to_numpy(zero_copy_only=False))
            side = "after" if one.after else "before"
            place = nearest(key, at, of_known[rows], moment[rows], side=side)
            place = np.where(there & (place != NOWHERE), rows[place] if len(rows) else NOWHERE, NOWHERE)
            found[one.out] = taken(told[one.value], place)
        return completed(questions, found, schema)

    return look
