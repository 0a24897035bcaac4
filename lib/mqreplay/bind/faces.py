"""The Python bodies of the three faces: rows, pandas Series or Arrow arrays in, answers out.

These run in Spark's Python workers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pandas as pd
import pyarrow as pa

from mqreplay.bind.answer import Answer, Answering
from mqreplay.bind.arrow_values import answers_column, law_values
from mqreplay.bind.pandas_columns import arrow_columns
from mqreplay.bind.values import Converter
from mqreplay.judge.distinct import Codes, distinct_rows


def row_face(answer: Answering, converters: Sequence[Converter]) -> Callable[..., Answer]:
    """Of a pickled UDF."""

    def face(*values: Any) -> Answer:
        return answer([convert(value) for convert, value in zip(converters, values, strict=False)])

    return face


def arrow_face(answer: Answering, answer_type: pa.StructType) -> Callable[..., pa.Array]:
    """Of an Arrow UDF."""

    def face(*columns: pa.Array) -> pa.Array:
        answers, places = distinct_answers(answer, columns)
        answered = answers_column(answers, answer_type)
        return answered if places is None else answered.take(pa.array(places))

    return face


def pandas_face(answer: Answering, argument_types: Sequence[pa.DataType]) -> Callable[..., pd.DataFrame]:
    """Of a pandas UDF over `pandas_columns`. Values stay objects, so no integer passes through a float."""

    def face(*series: pd.Series) -> pd.DataFrame:
        answers, places = distinct_answers(answer, arrow_columns(series, argument_types))
        frame = pd.DataFrame(
            {
                "value": pd.Series([value for value, _ in answers], dtype=object),
                "error": pd.Series([error for _, error in answers], dtype=object),
            }
        )
        return frame if places is None else frame.take(places).reset_index(drop=True)

    return face


def distinct_answers(answer: Answering, columns: Sequence[pa.Array]) -> tuple[list[Answer], Codes | None]:
    """The answers to the distinct rows, and which of them is each row's; None where no row repeats."""
    places, row_of = distinct_rows(columns)
    repeats = len(row_of) < len(places)
    if repeats:
        columns = [column.take(pa.array(row_of)) for column in columns]
    arguments = zip(*(law_values(column) for column in columns), strict=True)
    return [answer(row) for row in arguments], places if repeats else None
