"""Rules of tables whose rows stay in Spark: Great Expectations' Spark engine gives the results of DuckDB."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from mqreplay.lake.contract import load_contracts
from mqreplay.lake.row_filter import RowFilter
from mqreplay.quality import Scope
from mqreplay.quality.result import ValidationRow
from mqreplay.quality.run import validate
from quality import test_chains_over_midnight as chains
from quality.test_offset_continuity import BAD, GOOD, each_in_its_own_topic, gold_break
from quality.test_run import ROWS, finding
from quality_rows import START, Folder, at, change

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from mqreplay.lake.table_files import TableFiles

CHANGES, BREAKS = "silver.offset_change", "gold.offset_continuity"
LARGE = frozenset({CHANGES, chains.KEPT, BREAKS, "silver.pull", "gold.finding"})


@dataclass(frozen=True)
class SparkFolder(Folder):
    """The tables of a folder; those of LARGE only Spark reads."""

    session: SparkSession | None = None

    def is_here(self, name: str, rows: RowFilter) -> bool:
        return name not in LARGE

    def files(self, name: str, rows: RowFilter) -> TableFiles:
        assert name not in LARGE, f"{name} was copied"
        return super().files(name, rows)

    def spark_rows(self, name: str, rows: RowFilter) -> DataFrame:
        assert self.session is not None
        table = self.session.read.format("delta").load(self.location(name))
        return table.where(rows.days_sql(self.contracts[name].is_dated))


@pytest.fixture
def both(spark: SparkSession, tmp_path: Path) -> Callable[[Folder, Scope], list[ValidationRow]]:
    """both(folder, scope): the results by DuckDB, after they were found to be those by Spark."""

    def validated(folder: Folder, scope: Scope) -> list[ValidationRow]:
        counts: tuple[dict[str, int], dict[str, int]] = ({}, {})
        here = validate(folder, "c", scope, str(tmp_path / "here"), counts[0])
        in_spark = SparkFolder(folder.root, folder.contracts, spark)
        there = validate(in_spark, "c", scope, str(tmp_path / "there"), counts[1])
        assert there == here
        assert counts[0] == counts[1]
        return here

    return validated


def broken(found: list[ValidationRow]) -> dict[str, int | None]:
    return {row.expectation: row.unexpected_count for row in found if not row.passed}


def test_rules_that_are_broken(both: Any, tmp_path: Path) -> None:
    tables = {"silver.pull": ROWS["silver.pull"], "silver.broker": [{"broker_name": "broker-a"}]}
    tables["bronze.source_file"] = [{"path": "a", "kind": "pull_log", "status": "read", "last_ts": at(30)}]
    folder = Folder(tmp_path / "w", load_contracts())
    for name, rows in tables.items():
        folder.write(name, [*(row | {"cluster": "c"} for row in rows), {"cluster": "other"}])
    found = broken(both(folder, Scope("a-run", None, ("silver.pull",))))
    assert len(found) == 5
    assert found["expect_column_pair_values_a_to_be_greater_than_b"] == 38


def test_chains_and_rewinds(both: Any, tmp_path: Path) -> None:
    cases = GOOD | {name: rows for name, (rows, _) in BAD.items()}
    cases |= {"a rewind": [change(1, None, 63), change(2, 63, 28)], "twice": [change(1, None, 5)] * 2}
    causes = [gold_break(2, "rewind", "unknown", topic="a rewind")]
    folder = Folder(tmp_path / "w", load_contracts())
    folder.write(CHANGES, [row | {"cluster": "c", "day": START.date()} for row in each_in_its_own_topic(cases)])
    folder.write(BREAKS, [row | {"cluster": "c", "day": START.date()} for row in causes])
    found = broken(both(folder, Scope("a-run", START.date(), (CHANGES,))))
    backwards = "expect_column_pair_values_a_to_be_greater_than_b"
    assert found == {backwards: 1, "expect_compound_columns_to_be_unique": 2, chains.NAME: 8}


@pytest.mark.long
def test_chains_go_on_over_midnight(both: Any, tmp_path: Path) -> None:
    folder = Folder(tmp_path / "w", load_contracts())
    changes, kept = [], []
    for topic, (before, checkpoint, _) in chains.CASES.items():
        changes += [row | {"topic": topic} for row in [*before, chains.TODAY]]
        kept += [row | {"topic": topic} for row in checkpoint]
    # The last checkpoint up to the day counts, for all chains alike.
    for checkpoints, broken_chains in (([], 2), (kept, 1)):
        folder.write(CHANGES, changes)
        folder.write(chains.KEPT, checkpoints)
        found = both(folder, Scope("a-run", at(2 * chains.DAY).date(), (CHANGES,), goes_on=True))
        assert broken(found) == {chains.NAME: broken_chains}


def test_a_day_that_goes_on_ends_with_its_own_rows(both: Any, tmp_path: Path) -> None:
    folder = Folder(tmp_path / "w", load_contracts())
    day = START.date()
    pulls = [{"cluster": "c", "day": day, "record_id": str(n), "request_ts": at(n)} for n in range(20)]
    folder.write("silver.pull", pulls)
    late = {"cluster": "c", "kind": "pull_log", "status": "read", "first_ts": at(0), "last_ts": at(3 * chains.DAY)}
    folder.write("bronze.source_file", [late])
    assert broken(both(folder, Scope("a-run", day, ("silver.pull",)))) == {}


def test_a_rule_that_cannot_be_asked_has_not_passed(spark: SparkSession, tmp_path: Path) -> None:
    contract = load_contracts()["gold.finding"]
    rule = {"type": "expect_column_values_to_be_between", "kwargs": {"column": "kind", "min_value": 0}}
    wrong = replace(contract, quality=(rule | {"description": ""},))
    folder = SparkFolder(tmp_path / "w", {**load_contracts(), "gold.finding": wrong}, spark)
    folder.write("gold.finding", [finding(1) | {"cluster": "c"}])
    found = validate(folder, "c", Scope("a-run", None, ("gold.finding",)), str(tmp_path / "results"))
    (row,) = [row for row in found if row.expectation == rule["type"]]
    assert not row.passed
    assert "error" in (row.unexpected_sample or "")
