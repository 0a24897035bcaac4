"""A whole warehouse judged: both engines say the same, and Data Docs show it without believing a word of it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from mqreplay.lake.contract import load_contracts
from mqreplay.lake.warehouse import Warehouse
from mqreplay.quality.pages import write_index
from mqreplay.quality.result import ValidationRow
from mqreplay.quality.run import validate
from mqreplay.quality.scope import UNDATED, Scope
from quality_rows import Row, at, change, filled

HOSTILE = "<script>document.title='x'</script>\u202egro.elpmaxe"
TABLES = ("bronze.source_file", "gold.finding", "silver.broker", "silver.offset_change", "silver.pull", "silver.route")
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
def warehouse(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    """A few tables that break nearly every rule, and another cluster's that do not. No CHECK stopped them."""
    contracts = {name: load_contracts()[name] for name in TABLES}

    class Unchecked(Warehouse):
        def read(self, name: str) -> Any:
            rows = [filled(contracts[name], row | {"cluster": "c"}) for row in ROWS.get(name, [])]
            return self.frame(name, [*rows, filled(contracts[name], {"cluster": "other"})])

    return Unchecked(spark, str(tmp_path_factory.mktemp("warehouse")), contracts)


@pytest.fixture(scope="module")
def docs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("data_docs")


@pytest.fixture(scope="module")
def on_pandas(warehouse: Warehouse, docs: Path) -> list[ValidationRow]:
    return validate(warehouse, "c", Scope("a-run"), str(docs))


def broken(rows: list[ValidationRow]) -> dict[tuple[str, str], int | None]:
    short = {(row.table_name, row.expectation): row.unexpected_count for row in rows if not row.passed}
    return {(table, kind.removeprefix("expect_")): count for (table, kind), count in short.items()}


def test_what_is_broken_is_found_and_nothing_else(on_pandas: list[ValidationRow]) -> None:
    assert broken(on_pandas) == {
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
    assert {row.table_name for row in on_pandas} == set(TABLES)
    assert {(row.cluster, row.run_id) for row in on_pandas} == {("c", "a-run")}


def test_a_sample_names_rows_by_their_key_to_the_last_digit(on_pandas: list[ValidationRow]) -> None:
    samples = {(r.table_name, r.expectation, r.arguments): r.unexpected_sample for r in on_pandas if not r.passed}
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


@pytest.mark.long
def test_spark_and_pandas_give_the_same_rows(
    warehouse: Warehouse, tmp_path: Path, on_pandas: list[ValidationRow]
) -> None:
    on_spark = validate(warehouse, "c", Scope("a-run"), str(tmp_path), row_limit=0)
    assert on_spark == on_pandas


def test_data_docs_show_it_and_run_none_of_it(on_pandas: list[ValidationRow], docs: Path) -> None:
    write_index(str(docs), [(UNDATED, table, 9, 1) for table in TABLES])
    pages = {path: path.read_text(encoding="utf-8") for path in docs.rglob("*.html")}
    index = pages[docs / "index.html"]
    assert all(re.search(rf'<a href="undated/validations/[^"]*">{table}</a>', index) for table in TABLES)
    for table in TABLES:
        assert any("validations" in path.parts and table in str(path) for path in pages)
    shown = "".join(text for path, text in pages.items() if "silver.pull" in str(path))
    assert "broker named here" in shown
    assert "broker_name &lt;script&gt;document" in shown
    for text in pages.values():
        assert "<script" not in text
        assert "default-src 'none'" in text
        assert not re.search(r"<(link|img|iframe)\b[^>]*https?:", text)


def test_the_sample_nights_hold_all_that_contracts_say(night: Any) -> None:
    for cluster in night.outcomes:
        rows = night.table("gold.validation_result", cluster).collect()
        assert {row.table_name for row in rows} == set(load_contracts())
        assert [row for row in rows if not row.passed] == []
