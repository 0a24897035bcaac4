"""The columns that Spark gives to a function fit its arguments, or one line says which does not."""

from __future__ import annotations

import pyarrow as pa
import pytest

from mqreplay.bind.faces import arguments_check
from mqreplay.bind.functions import FUNCTIONS
from mqreplay.bind.sql_types import QUEUE_TYPE, arguments_of
from mqreplay.lake.contract import arrow_type

TWO = "f takes 2 arguments, got 1: f(a STRING, b BIGINT)"


@pytest.mark.parametrize("bound", FUNCTIONS.values(), ids=lambda bound: bound.name)
def test_the_types_of_the_catalogue_fit(bound) -> None:
    check = arguments_check(bound.name, bound.argument_list, bound.fewest_arguments)
    columns = [pa.nulls(1, arrow_type(argument.type)) for argument in bound.argument_list]
    check(columns)
    check(columns[: bound.fewest_arguments])
    check([pa.nulls(1) for _ in columns])
    for wrong in (columns[: bound.fewest_arguments - 1], [*columns, pa.nulls(1)]):
        with pytest.raises(TypeError, match=rf"{bound.name} takes \d"):
            check(wrong)


@pytest.mark.parametrize(
    ("kind", "column_type", "fits"),
    [
        ("BIGINT", pa.int16(), True),
        ("BIGINT", pa.decimal128(20, 0), True),
        ("BIGINT", pa.decimal128(2, 1), False),
        ("BIGINT", pa.string(), False),
        ("BIGINT", pa.float64(), False),
        ("STRING", pa.int64(), False),
        ("BOOLEAN", pa.int8(), False),
        ("ARRAY<STRING>", pa.list_(pa.null()), True),
        ("ARRAY<STRING>", pa.list_(pa.int64()), False),
        (f"ARRAY<{QUEUE_TYPE}>", pa.list_(pa.int64()), False),
        (f"ARRAY<{QUEUE_TYPE}>", pa.list_(pa.struct([("broker_name", pa.string()), ("queue_id", pa.int32())])), True),
        ("MAP<STRING, BIGINT>", pa.map_(pa.string(), pa.int32()), True),
        ("MAP<STRING, BIGINT>", pa.map_(pa.int64(), pa.int32()), False),
        ("MAP<STRING, BIGINT>", pa.struct([]), False),
    ],
)
def test_other_types(kind: str, column_type: pa.DataType, fits: bool) -> None:
    check = arguments_check("f", arguments_of(f"a {kind}"), 1)
    if fits:
        check([pa.nulls(1, column_type)])
    else:
        with pytest.raises(TypeError, match="f: a is "):
            check([pa.nulls(1, column_type)])


def test_the_line_names_the_arguments() -> None:
    with pytest.raises(TypeError) as found:
        arguments_check("f", arguments_of("a STRING, b BIGINT"), 2)([pa.nulls(1)])
    assert str(found.value) == TWO
