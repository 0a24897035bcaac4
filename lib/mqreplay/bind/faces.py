"""The Python bodies of the faces for rows and for Arrow arrays: values in, answers out.

These run in Spark's Python workers, or in the process of DuckDB. Conversions take whole columns at a time: pyarrow's
to_pylist makes a dict of each queue; here a list of queues becomes MessageQueue tuples from three columns at once,
which is several times faster.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from mqreplay.bind.sql_types import INTEGERS, Argument, inner_types, kind_of, short_type
from mqreplay.bind.values import MISSING_TOPIC, Answer, Answering, Converter, wrap
from mqreplay.core.message_queue import MessageQueue
from mqreplay.evidence.arrays.distinct import Codes, distinct_rows

Check = Callable[[Sequence[pa.Array]], None]
PLAIN_TYPES: dict[str, Callable[[pa.DataType], bool]] = {
    "STRING": lambda kind: pa.types.is_string(kind) or pa.types.is_large_string(kind),
    "BOOLEAN": pa.types.is_boolean,
    "STRUCT": pa.types.is_struct,
    # A long literal is a DECIMAL in Spark; it wraps to 64 bits.
    **dict.fromkeys(
        INTEGERS, lambda kind: pa.types.is_integer(kind) or (pa.types.is_decimal(kind) and kind.scale == 0)
    ),
}


def row_face(answer: Answering, converters: Sequence[Converter]) -> Callable[..., Answer]:
    """Return the body of a pickled UDF."""

    def face(*values: Any) -> Answer:
        return answer([convert(value) for convert, value in zip(converters, values, strict=False)])

    return face


def arrow_face(
    answer: Answering, answer_type: pa.StructType, check: Callable[[Sequence[pa.Array]], None] = lambda columns: None
) -> Callable[..., pa.Array]:
    """Return the body of an Arrow UDF. ``check`` raises TypeError for columns that the law does not take."""

    def face(*columns: pa.Array) -> pa.Array:
        check(columns)
        answers, places = distinct_answers(answer, columns)
        answered = answers_column(answers, answer_type)
        return answered if places is None else answered.take(pa.array(places))

    return face


def distinct_answers(answer: Answering, columns: Sequence[pa.Array]) -> tuple[list[Answer], Codes | None]:
    """Return the answers to the distinct rows, and the number of each row's answer; None if no row repeats."""
    places, row_of = distinct_rows(columns)
    repeats = len(row_of) < len(places)
    if repeats:
        columns = [column.take(pa.array(row_of)) for column in columns]
    arguments = zip(*(law_values(column) for column in columns), strict=True)
    return [answer(row) for row in arguments], places if repeats else None


def law_values(column: pa.Array) -> list[Any]:
    """Return a column as a law's arguments, by the column's own type; see values.to_law."""
    kind = column.type
    if pa.types.is_struct(kind):
        return _with_nulls(column, _message_queues(column))
    if pa.types.is_map(kind):
        pairs = list(zip(law_values(column.keys), law_values(column.items), strict=True))
        return _with_nulls(column, [dict(pairs[start:end]) for start, end in _bounds(column)])
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        items = law_values(column.values)
        return _with_nulls(column, [items[start:end] for start, end in _bounds(column)])
    if pa.types.is_decimal(kind):
        return [wrap(value) for value in column.to_pylist()]
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or column.null_count == 0:
        return list(column.to_numpy(zero_copy_only=False).tolist())
    return list(column.to_pylist())


def answers_column(answers: Iterable[Answer], answer_type: pa.StructType) -> pa.Array:
    """Return answers as a column of struct<value, error>."""
    ready = as_pairs(answer_type.field("value").type)
    if ready is not None:
        answers = [(ready(value), error) for value, error in answers]
    return pa.array(answers, type=answer_type)


def as_pairs(kind: pa.DataType) -> Converter | None:
    """Return the conversion of a value for pa.array, which takes a map as a list of pairs; None if none is needed.

    A map may be a dict, pairs, or the entries that pandas sends.
    """
    if pa.types.is_map(kind):
        item = as_pairs(kind.item_type) or _unchanged
        return lambda entries: None if entries is None else [(k, item(v)) for k, v in _entries(entries)]
    if pa.types.is_struct(kind):
        fields = [as_pairs(kind.field(i).type) for i in range(kind.num_fields)]
        if any(fields):
            each = [field or _unchanged for field in fields]
            return lambda row: None if row is None else tuple(f(v) for f, v in zip(each, row, strict=True))
    return None


def _unchanged(value: Any) -> Any:
    return value


def _entries(entries: Any) -> Iterable[tuple[Any, Any]]:
    if isinstance(entries, Mapping):
        return entries.items()
    return ((e["key"], e["value"]) if isinstance(e, dict) else e for e in entries)


def _message_queues(column: pa.Array) -> list[MessageQueue]:
    names = {column.type.field(i).name: i for i in range(column.type.num_fields)}
    if not {"broker_name", "queue_id"} <= names.keys():
        raise TypeError(f"a queue is struct<topic, broker_name, queue_id>, topic may be missing, not {column.type}")
    fields = column.flatten()
    topics: Iterable[Any] = law_values(fields[names["topic"]]) if "topic" in names else [MISSING_TOPIC] * len(column)
    if "topic" in names and fields[names["topic"]].null_count:
        topics = [MISSING_TOPIC if topic is None else topic for topic in topics]
    rest = (law_values(fields[names[name]]) for name in ("broker_name", "queue_id"))
    return list(map(MessageQueue, topics, *rest))


def _bounds(column: pa.Array) -> Iterable[tuple[int, int]]:
    offsets = column.offsets.to_numpy().tolist()
    return itertools.pairwise(offsets)


def _with_nulls(column: pa.Array, values: list[Any]) -> list[Any]:
    if column.null_count == 0:
        return values
    return [value if valid else None for value, valid in zip(values, column.is_valid().to_pylist(), strict=True)]


def arguments_check(name: str, arguments: Sequence[Argument], fewest: int) -> Check:
    """Return a function that raises TypeError, in one line, for columns that do not fit the arguments."""

    def check(columns: Sequence[pa.Array]) -> None:
        if not fewest <= len(columns) <= len(arguments):
            wanted = f"{fewest}" if fewest == len(arguments) else f"{fewest} to {len(arguments)}"
            shown = ", ".join(f"{argument.name} {short_type(argument.type)}" for argument in arguments)
            raise TypeError(f"{name} takes {wanted} arguments, got {len(columns)}: {name}({shown})")
        for column, argument in zip(columns, arguments, strict=False):
            if not _fits(argument.type, column.type):
                raise TypeError(f"{name}: {argument.name} is {short_type(argument.type)}, not {column.type}")

    return check


def _fits(wanted: str, kind: pa.DataType) -> bool:
    if pa.types.is_null(kind):
        return True
    if kind_of(wanted) == "ARRAY":
        is_list = pa.types.is_list(kind) or pa.types.is_large_list(kind)
        return is_list and _fits(inner_types(wanted)[0], kind.value_type)
    if kind_of(wanted) == "MAP":
        if not pa.types.is_map(kind):
            return False
        return all(map(_fits, inner_types(wanted), (kind.key_type, kind.item_type)))
    return PLAIN_TYPES[kind_of(wanted)](kind)
