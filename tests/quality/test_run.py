"""A whole warehouse judged, and the results as rows and as JSON."""

from __future__ import annotations

import datetime as dt
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from mqreplay.lake.contract import load_contracts
from mqreplay.quality import Scope
from mqreplay.quality.result import ValidationRow
from mqreplay.quality.run import validate
from mqreplay.quality.suite import UNIQUE
from quality_rows import START, Folder, Row, at, change

HOSTILE = "<script>document.title='x'</script>\u202egro.elpmaxe"
TABLES = ("bronze.source_file", "gold.finding", "silver.broker", "silver.offset_change", "silver.pull", "silver.route")
BETWEEN = "expect_column_values_to_be_between"
BIG = 9_007_199_254_740_993  # the first integer that a double has not


def finding(number: int, **differs: Any) -> Row:
    return {"finding_id": str(number), "severity": "info", "confidence": 1.0} | differs


def pull(number: int, **differs: Any) -> Row:
    return {"record_id": f"{number:02}", "broker_name": "broker-a", "request_ts": at(1), "queue_id": 0} | differs


ROWS: dict[str, list[Row]] = {
    "bronze.source_file": [
        {"path": "a", "kind": "pull_log", "status": "read", "rows_in": 4, "rows_out": 2, "last_ts": at(30)},
        {"path": "b", "kind": "pull_log", "status": HOSTILE},
    ],
    "silver.broker": [{"broker_name": "broker-a"}],
    "silver.pull": [
        pull(1, topic=HOSTILE, broker_name=HOSTILE, queue_id=-1, broker_id=-BIG),
        *[pull(i, response_ts=at(0)) for i in range(2, 40)],
    ],
    "silver.offset_change": [change(1, None, BIG), change(2, BIG - 1, 3), change(2, BIG - 1, 3), change(3, None, None)],
    "gold.finding": [finding(1, severity=HOSTILE), finding(2, confidence=1.5), finding(2, from_ts=at(2), to_ts=at(1))],
}


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    """A few tables that break nearly every rule, and another cluster's that do not. No CHECK stopped them."""
    folder = Folder(tmp_path_factory.mktemp("warehouse"), {name: load_contracts()[name] for name in TABLES})
    for name in TABLES:
        folder.write(name, [*(row | {"cluster": "c"} for row in ROWS.get(name, [])), {"cluster": "other"}])
    return folder


@pytest.fixture(scope="module")
def docs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("expectations")


@pytest.fixture(scope="module")
def results(warehouse: Folder, docs: Path) -> list[ValidationRow]:
    return validate(warehouse, "c", Scope("a-run"), str(docs))


def broken(rows: list[ValidationRow]) -> dict[tuple[str, str], int | None]:
    short = {(row.table_name, row.expectation): row.unexpected_count for row in rows if not row.passed}
    return {(table, kind.removeprefix("expect_")): count for (table, kind), count in short.items()}


def test_what_is_broken_is_found_and_nothing_else(results: list[ValidationRow]) -> None:
    assert broken(results) == {
        ("bronze.source_file", "column_values_to_be_in_set"): 1,
        ("bronze.source_file", "rows_conserved"): 4,
        ("bronze.source_file", "check_constraint_to_hold"): 1,
        ("gold.finding", "compound_columns_to_be_unique"): 2,
        ("gold.finding", "column_values_to_be_in_set"): 1,
        ("gold.finding", "column_values_to_be_between"): 1,
        ("gold.finding", "column_pair_values_a_to_be_greater_than_b"): 1,
        ("silver.offset_change", "compound_columns_to_be_unique"): 2,
        ("silver.offset_change", "offset_continuity"): 3,
        ("silver.offset_change", "check_constraint_to_hold"): 1,
        ("silver.pull", "column_values_to_be_between"): 1,
        ("silver.pull", "check_constraint_to_hold"): 1,
        ("silver.pull", "column_pair_values_a_to_be_greater_than_b"): 38,
        ("silver.pull", "known_brokers"): 1,
        ("silver.pull", "table_to_be_fresh"): None,
    }
    assert {row.table_name for row in results} == set(TABLES)
    assert {(row.cluster, row.run_id) for row in results} == {("c", "a-run")}


def test_a_sample_names_rows_by_their_key_to_the_last_digit(results: list[ValidationRow]) -> None:
    samples = {(r.table_name, r.expectation, r.arguments): r.unexpected_sample for r in results if not r.passed}
    pulled = {key[2]: json.loads(text or "") for key, text in samples.items() if key[0] == "silver.pull"}
    below = next(rows for arguments, rows in pulled.items() if '"broker_id"' in arguments)
    assert below == [{"record_id": "01", "broker_id": -BIG}]
    late = next(rows for arguments, rows in pulled.items() if "column_A" in arguments)
    assert len(late) == 20
    assert late[0] == {
        "record_id": "02",
        "response_ts": "2026-11-21T03:00:00.000Z",
        "request_ts": "2026-11-21T03:01:00.000Z",
    }


def test_a_day_is_judged_by_its_own_rows(warehouse: Folder, tmp_path: Path) -> None:
    none = validate(
        warehouse, "c", Scope("a-run", START.date() + dt.timedelta(days=1), ("silver.pull",)), str(tmp_path)
    )
    assert broken(none) == {}


def test_a_rule_that_cannot_be_asked_has_not_passed(warehouse: Folder, tmp_path: Path) -> None:
    pull = warehouse.contracts["silver.pull"]
    wrong = replace(
        pull, quality=({"type": BETWEEN, "kwargs": {"column": "topic", "min_value": 0}, "description": ""},)
    )
    there = Folder(warehouse.root, warehouse.contracts | {"silver.pull": wrong})
    found = validate(there, "c", Scope("a-run", None, ("silver.pull",)), str(tmp_path))
    (row,) = [row for row in found if row.expectation == BETWEEN]
    assert not row.passed
    assert "Cannot compare" in json.loads(row.unexpected_sample or "")[0]["error"]


def test_equal_rows_are_seen_whatever_is_null_among_them(warehouse: Folder, tmp_path: Path) -> None:
    rule = {"type": UNIQUE, "kwargs": {"column_list": ["topic", "queue_id"]}, "description": ""}
    there = Folder(
        tmp_path / "w",
        warehouse.contracts | {"silver.pull": replace(warehouse.contracts["silver.pull"], quality=(rule,))},
    )
    keys = [("a", 1), ("a", None), ("a", None), (None, 1), (None, 1), ("a", 2), ("\0x", 1), ("\0y", 1)]
    there.write("silver.pull", [pull(n, topic=t, queue_id=q) | {"cluster": "c"} for n, (t, q) in enumerate(keys)])
    found = validate(there, "c", Scope("a-run", None, ("silver.pull",)), str(tmp_path))
    (row,) = [row for row in found if row.expectation == UNIQUE]
    assert row.unexpected_count == 4
    assert [one["record_id"] for one in json.loads(row.unexpected_sample or "")] == ["01", "02", "03", "04"]


def test_rows_of_no_file_are_found_without_any_file(tmp_path: Path) -> None:
    there = Folder(tmp_path / "w", load_contracts())
    there.write("silver.pull", [pull(1) | {"cluster": "c"}])
    found = validate(there, "c", Scope("a-run", None, ("bronze.source_file", "silver.pull")), str(tmp_path))
    assert broken(found) == {("bronze.source_file", "rows_conserved"): 1}


def test_a_sample_is_of_the_first_rows_by_key(tmp_path: Path) -> None:
    there = Folder(tmp_path / "w", load_contracts())
    there.write("silver.pull", [pull(n, queue_id=-1) | {"cluster": "c"} for n in range(99, 9, -1)])
    found = validate(there, "c", Scope("a-run", None, ("silver.pull",)), str(tmp_path))
    samples = [
        json.loads(row.unexpected_sample or "") for row in found if "queue_id" in row.arguments and not row.passed
    ]
    assert samples
    for sample in samples:
        assert [one["record_id"] for one in sample] == [str(n) for n in range(10, 30)]


def test_the_results_are_kept_as_great_expectations_writes_them(results: list[ValidationRow], docs: Path) -> None:
    (path,) = docs.iterdir()
    text = path.read_text(encoding="utf-8")
    kept = json.loads(text)
    assert path.name == "undated.json"
    assert {table: sum(not one["success"] for one in each) for table, each in kept.items()} == {
        table: sum(not row.passed for row in results if row.table_name == table) for table in TABLES
    }
    (named,) = [one for one in kept["silver.pull"] if one["expectation_config"]["type"] == "expect_known_brokers"]
    assert named["result"]["partial_unexpected_index_list"][0]["broker_name"] == HOSTILE
    assert "\u202e" not in text


def test_the_sample_nights_hold_all_that_contracts_say(night: Any) -> None:
    for cluster in night.outcomes:
        rows = night.table("gold.validation_result", cluster)
        assert set(rows["table_name"]) == set(load_contracts())
        assert rows.filter(~pl.col("passed").fill_null(False)).is_empty()
