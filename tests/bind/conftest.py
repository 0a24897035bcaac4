"""Ask a bound function through each of its faces, and through SQL, over one DataFrame of all cases."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema

from mqreplay.bind.faces import as_pairs
from mqreplay.bind.function import BoundFunction
from mqreplay.bind.functions import FUNCTIONS
from mqreplay.bind.register import register
from mqreplay.bind.register_duckdb import register_duckdb
from mqreplay.lake.duckdb_database import quoted

DATA = Path(__file__).parents[1] / "vectors" / "data"
PYTHON_FACES = ("udf", "pandas_udf", "arrow_udf")
SHOWN = 3
Answer = dict[str, Any]
Case = tuple[tuple[Any, ...], Answer]


# Arrow UDFs are the face that the replay uses; test_function.py has all of them.
@pytest.fixture(
    params=[*(pytest.param(each, marks=pytest.mark.long) for each in PYTHON_FACES[:2]), "arrow_udf", "sql", "duckdb"]
)
def face(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(params=PYTHON_FACES)
def python_face(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def ask(spark: SparkSession) -> Ask:
    return Ask(spark)


class Ask:
    """Calls in, answers out, whatever the face."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark

    @staticmethod
    def vectors(stem: str) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
        """(in, out) of each case of a vector file."""
        with gzip.open(DATA / f"{stem}.jsonl.gz", "rt", encoding="utf-8") as lines:
            for line in lines:
                case = json.loads(line)
                yield case["in"], case["out"]

    @staticmethod
    def value(of: Any) -> Answer:
        """An answer without an error."""
        return {"value": of, "error": None}

    @staticmethod
    def error(code: str, detail: str | None) -> Answer:
        return {"value": None, "error": {"code": code, "detail": detail}}

    def java_error(self, text: str) -> Answer:
        """The answer for an exception as the vectors write it, `class: message` or `class`."""
        code, found, detail = text.partition(": ")
        return self.error(code, detail if found else None)

    def frame(self, bound: BoundFunction, rows: Sequence[Sequence[Any]]) -> DataFrame:
        """The arguments of many calls as one DataFrame, a column each, in this order."""
        fields, arrays = [], []
        for field, column in zip(to_arrow_schema(bound.argument_types), zip(*rows, strict=True), strict=False):
            ready = as_pairs(field.type) or (lambda each: each)
            arrays.append(pa.array([ready(each) for each in column], type=field.type))
            fields.append(pa.field(field.name, field.type))
        return self.spark.createDataFrame(pa.Table.from_arrays(arrays, schema=pa.schema(fields)))

    def answers(self, face: str, bound: BoundFunction, data: DataFrame) -> list[Answer]:
        """What a face answers to each row, in order; its type is checked first."""
        if face == "duckdb":
            return answers_of_duckdb(bound, data.toArrow())
        if face == "sql":
            assert FUNCTIONS[bound.name] is bound
            register(self.spark)
            asked = data.selectExpr(f"{bound.name}({', '.join(f'`{c}`' for c in data.columns)}) AS answer")
        else:
            asked = data.select(getattr(bound, face)(*data.columns).alias("answer"))
        assert asked.schema["answer"].dataType == bound.answer_type
        return [row["answer"] for row in asked.toArrow().to_pylist()]

    def check(self, face: str, bound: BoundFunction, cases: Sequence[Case]) -> None:
        """Every case's arguments must get its answer; the first few that do not are shown."""
        got = self.answers(face, bound, self.frame(bound, [arguments for arguments, _ in cases]))
        assert len(got) == len(cases)
        differing = [
            (arguments, want, each)
            for (arguments, want), each in zip(cases, got, strict=True)
            if canonical(each) != canonical(want)
        ]
        assert not differing, f"{len(differing)} of {len(cases)} differ, as {differing[:SHOWN]}"


def answers_of_duckdb(bound: BoundFunction, data: pa.Table) -> list[Answer]:
    with duckdb.connect() as connection:
        register_duckdb(connection, [bound.name])
        connection.register("data", data)
        call = f"{bound.name}({', '.join(map(quoted, data.column_names))})"
        return connection.sql(f"SELECT {call} AS answer FROM data").to_arrow_table()["answer"].to_pylist()


def canonical(answer: Any) -> str:
    """A text equal only for equal answers: True is not 1, 1 is not 1.0, the order of a map does not count."""
    if isinstance(answer, dict):
        return str({key: canonical(answer[key]) for key in sorted(answer)})
    if isinstance(answer, list | tuple):
        pairs = bool(answer) and isinstance(answer[0], tuple)
        return str(sorted(map(canonical, answer)) if pairs else [canonical(each) for each in answer])
    return repr(answer)
