"""The Python bodies of the faces for rows and for Arrow arrays: values in, answers out.

These run in Spark's Python workers, or in the process of DuckDB.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from mqreplay.bind.answer import Answer, Answering
from mqreplay.bind.arrow_values import answers_column, law_values
from mqreplay.bind.values import Converter
from mqreplay.evidence.arrays.distinct import Codes, distinct_rows


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
