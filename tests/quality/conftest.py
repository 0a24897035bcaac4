"""A table's rows, judged by its contract as a night would, on either engine."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import SparkSession

from mqreplay.lake.contract import load_contracts
from mqreplay.quality.frames import fetch
from mqreplay.quality.great import Great
from mqreplay.quality.result import ValidationRow, row_of
from mqreplay.quality.run import judge
from mqreplay.quality.scope import Scope
from quality_rows import START, Judge, Row, filled

ROW_LIMIT = {"pandas": 1_000, "spark": 0}
PARAMETERS: dict[str, Any] = {
    "known_brokers": [],
    "recording_end_ms": None,
    "newest_before_ms": None,
    "silver_rows": {},
}


@pytest.fixture(params=["pandas", "spark"])
def engine(request: pytest.FixtureRequest) -> str:
    """Each test of an expectation runs on both."""
    return str(request.param)


@pytest.fixture
def judged(spark: SparkSession, engine: str, tmp_path: Any) -> Judge:
    """Judges rows of a table by its contract; gives its results by expectation type (the last of each)."""

    def run(table: str, rows: list[Row], **parameters: Any) -> dict[str, ValidationRow]:
        contract = load_contracts()[table]
        frame = spark.createDataFrame([filled(contract, row) for row in rows], contract.struct_type())
        great = Great("a-run", START, str(tmp_path / "docs"))
        fetched = fetch(frame, contract, ROW_LIMIT[engine])
        assert fetched.on_spark == (engine == "spark" and bool(rows))
        found = judge(great, contract, fetched, PARAMETERS | parameters)
        return {rule.type: row_of("c", Scope("a-run"), contract, rule, result) for rule, result in found}

    return run
