"""What docs/sql.md says of both engines: spellings and examples give the same values in DuckDB and in Spark."""

from __future__ import annotations

from typing import Any

import duckdb
import pytest
from pyspark.sql import Row

from docs.sql import DIFFERENCES, OTHER_VALUES
from mqreplay.bind.functions import FUNCTIONS
from mqreplay.bind.reference import example
from mqreplay.bind.register import register
from mqreplay.bind.register_duckdb import register_duckdb

# One query in each engine, a column an expression: starting a job takes longer than running it.
EXPRESSIONS = {
    **{each.what: (each.duckdb, each.spark) for each in DIFFERENCES},
    **{name: (example(bound, "duckdb"), example(bound, "spark")) for name, bound in FUNCTIONS.items()},
}


def plain(value: Any) -> Any:
    """Return a value without the classes of an engine."""
    if isinstance(value, Row):
        return plain(value.asDict())
    if isinstance(value, dict):
        if set(value) == {"key", "value"} and isinstance(value["key"], list):  # a map whose keys Python cannot hash
            value = dict(zip(map(str, map(plain, value["key"])), value["value"], strict=True))
        return {str(plain(key)): plain(each) for key, each in value.items()}
    return [plain(each) for each in value] if isinstance(value, list) else value


@pytest.fixture(scope="module")
def answers(spark) -> dict[str, tuple[Any, Any]]:
    register(spark)
    with duckdb.connect() as connection:
        register_duckdb(connection)
        of_duckdb = connection.execute(f"SELECT {', '.join(each for each, _ in EXPRESSIONS.values())}").fetchone()
    of_spark = spark.sql(f"SELECT {', '.join(each for _, each in EXPRESSIONS.values())}").first()
    return dict(zip(EXPRESSIONS, zip(map(plain, of_duckdb), map(plain, of_spark), strict=True), strict=True))


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_both_engines_give_the_same(answers, name: str) -> None:
    of_duckdb, of_spark = answers[name]
    assert of_duckdb == of_spark
    if name in FUNCTIONS:
        assert of_duckdb["error"] is None
        assert of_duckdb["value"] is not None
    else:
        assert of_duckdb is not None or name == "error as NULL"


@pytest.mark.parametrize("each", OTHER_VALUES, ids=lambda each: each.expression)
def test_values_that_differ(spark, each) -> None:
    assert duckdb.sql(f"SELECT {each.expression}").fetchall() == [(each.duckdb,)]
    assert spark.sql(f"SELECT {each.expression}").first()[0] == each.spark


@pytest.mark.parametrize("bound", FUNCTIONS.values(), ids=lambda bound: bound.name)
def test_every_function_is_documented(bound) -> None:
    assert bound.description.endswith(".")
    assert "#" in bound.java or bound.java.startswith("none")
    assert bound.fewest_arguments <= len(bound.example) <= len(bound.argument_list)
