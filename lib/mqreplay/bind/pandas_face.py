"""The Python body of the pandas face: Series in, answers out. It runs in Spark's Python workers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pandas as pd
import pyarrow as pa

from mqreplay.bind.answer import Answering
from mqreplay.bind.faces import distinct_answers
from mqreplay.bind.pandas_columns import arrow_columns


def pandas_face(answer: Answering, argument_types: Sequence[pa.DataType]) -> Callable[..., pd.DataFrame]:
    """Return the body of a pandas UDF over `pandas_columns`. Values stay objects: no integer becomes a float."""

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
