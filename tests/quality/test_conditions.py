"""CHECK conditions mean the same in DuckDB and in Spark, which enforces them when rows are written."""

from __future__ import annotations

import datetime as dt
import itertools

import duckdb
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from mqreplay.lake.contract import arrow_schema, load_contracts
from mqreplay.quality.suite import duckdb_condition
from mqreplay.words.errors import ContractError
from quality_rows import START

CONTRACTS = load_contracts()
MIDNIGHT = dt.datetime(2026, 11, 21, tzinfo=dt.UTC)
VALUES = {
    "INT": [None, -1, 0, 2],
    "BIGINT": [None, -1, 0, 2],
    "TIMESTAMP": [None, MIDNIGHT, MIDNIGHT - dt.timedelta(microseconds=1), START],
    "DATE": [None, MIDNIGHT.date()],
}
CHECKS = [(contract, name) for contract in CONTRACTS.values() for name in contract.checks]


def test_both_engines_say_the_same_of_every_check(spark: SparkSession) -> None:
    duck = duckdb.connect()
    duck.execute("SET TimeZone = 'UTC'")
    for contract, name in CHECKS:
        condition = contract.checks[name]
        columns = [c for c in contract.columns if c.name in condition.replace("(", " ").replace(")", " ").split()]
        assert columns
        rows = list(itertools.product(*(VALUES[c.type] for c in columns)))
        schema = ", ".join(f"{c.name} {c.type}" for c in columns)
        holds = F.expr(f"coalesce({condition}, false)").alias("holds")  # as in Delta, a null does not hold
        asked = spark.createDataFrame(rows, schema).coalesce(1).select(holds)
        of_spark = [row.holds for row in asked.collect()]
        arrow = pa.table(list(map(list, zip(*rows, strict=True))), arrow_schema((c.name, c.type) for c in columns))
        shown = ", ".join(
            f"CAST({c.name} AS TIMESTAMP) AS {c.name}" if c.type == "TIMESTAMP" else c.name for c in columns
        )
        duck.register("given", arrow)
        truth = f"coalesce({duckdb_condition(condition, {c.name for c in columns})}, false)"
        assert [
            row[0] for row in duck.execute(f"SELECT {truth} FROM (SELECT {shown} FROM given)").fetchall()
        ] == of_spark
        assert set(of_spark) == {True, False}


@pytest.mark.parametrize(
    "condition", ["name LIKE 'a%'", "queue_id / 2 = 1", "length(name) > 1", "queue_id >= 0.5", "other > 1"]
)
def test_what_the_engines_may_see_differently_is_not_taken(condition: str) -> None:
    with pytest.raises(ContractError, match="does not evaluate"):
        duckdb_condition(condition, {"name", "queue_id"})
