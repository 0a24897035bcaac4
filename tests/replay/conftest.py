"""Rows of silver tables in the making: a base row of each, plus what differs."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pyspark.sql import DataFrame, SparkSession

from mqreplay.lake.contract import load_contracts
from mqreplay.lake.session import fit_to
from silver_moments import BEGAN


@pytest.fixture(scope="session")
def rows(spark: SparkSession) -> Callable[..., DataFrame]:
    """Makes a frame of a table's schema: rows(name, base, [what differs, ...])."""
    fit_to(spark, 0)  # plans over a handful of rows: compiling them is all the time

    def make(name: str, base: dict[str, object], differs: list[dict[str, object]]) -> DataFrame:
        schema = load_contracts()[name].struct_type()
        common = {"cluster": "c", "day": BEGAN.date(), "source_digest": "d"}
        listed = []
        for i, change in enumerate(differs):
            row = common | {"record_id": f"r{i}"} | base | change
            listed.append(tuple(row.get(f.name) for f in schema.fields))
        return spark.createDataFrame(listed, schema)

    return make
