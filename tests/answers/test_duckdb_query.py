"""The rows of a query by DuckDB, and the message for a mistake."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pytest

from made_warehouse import made_warehouse
from mqreplay.answers.duckdb_query import duckdb_rows
from mqreplay.words.errors import InputError

AT = dt.datetime(2026, 11, 21, 2, 30, tzinfo=dt.UTC)
QUEUES = "[{'topic': 't', 'broker_name': 'a', 'queue_id': 0}, {'topic': 't', 'broker_name': 'a', 'queue_id': 1}]"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("it's [a] warehouse")
    finding = {"finding_id": "f1", "kind": "broker_down", "from_ts": AT, "to_ts": AT, "day": AT.date()}
    made_warehouse(folder, {"gold.finding": [finding, finding | {"finding_id": "f2", "kind": "clock_skew"}]})
    return str(folder)


@pytest.mark.parametrize(
    ("query", "names", "rows"),
    [
        ("SELECT kind, from_ts FROM gold.finding ORDER BY kind LIMIT 1", ["kind", "from_ts"], [("broker_down", AT)]),
        ("SELECT count(*) AS n FROM gold.allocation", ["n"], [(0,)]),
        ("SELECT 1 AS a, 2 AS a", ["a", "a"], [(1, 2)]),
        ("SELECT TIMESTAMPTZ '2026-11-21 04:30+02' AS t, [TIMESTAMPTZ '2026-11-21 04:30+02'] AS l", None, [(AT, [AT])]),
        ("SELECT memory_threshold(7, 40).value AS v", ["v"], [(2,)]),
        ("SELECT Memory_Threshold(access_message_in_memory_max_ratio := 40, total_physical_memory_size := 7).value v",
         ["v"], [(2,)]),
        ("SELECT effective_ratio(40, 'SLAVE').value AS a, effective_ratio(40, 'SLAVE', '5.3.3').value AS b",
         ["a", "b"], [(40, 30)]),
        (f"SELECT allocate('AVG', 'g', 'c2', {QUEUES}, ['c1', 'c2']).value[1].queue_id AS q", ["q"], [(1,)]),
        ("SELECT allocate('AVG', 'g', 'c', [{'broker_name': 'a', 'queue_id': 0}], ['c']).value AS q", ["q"],
         [([{"topic": None, "broker_name": "a", "queue_id": 0}],)]),
        ("SELECT memory_threshold(NULL, 40).error.code AS c", ["c"], [("NullArgument",)]),
        ("SELECT * FROM (VALUES (1), (NULL)) AS t(a) ORDER BY a", ["a"], [(None,), (1,)]),
        ("SELECT * FROM (VALUES (NULL), (1)) AS t(a) ORDER BY a DESC", ["a"], [(1,), (None,)]),
        ("SHOW TABLES", ["layer", "table"], [["gold", "finding"]]),
        ("show tables in silver;", ["layer", "table"], []),
        ("SELECT count(*) AS n FROM information_schema.tables WHERE table_schema = 'gold'", ["n"], [(1,)]),
        ("SHOW FUNCTIONS LIKE 'alloc*'", ["function"],
         [("allocate",), ("allocate_averagely",), ("allocate_averagely_by_circle",), ("allocate_for_pop",)]),
    ],
)  # fmt: skip
def test_rows(root: str, query: str, names: list[str] | None, rows: list[object]) -> None:
    found_names, found = duckdb_rows(root, query)
    assert names is None or found_names == names
    without_zone = AT.replace(tzinfo=None)
    expected = [
        [without_zone if v is AT else [without_zone] if isinstance(v, list) and v[0] is AT else v for v in row]  # type: ignore[attr-defined]
        for row in rows
    ]
    assert [list(row) for row in found] == expected


def test_a_table_has_the_columns_of_its_contract_in_order(root: str) -> None:
    from mqreplay.lake.contract import load_contracts

    for name, contract in load_contracts().items():
        if name in ("gold.finding", "gold.allocation", "silver.topic_stats", "silver.assignment"):
            names, _ = duckdb_rows(root, f"SELECT * FROM {name}")
            assert names == [column.name for column in contract.columns]


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELECT * FROM finding", "query refused: there is no table finding; did you mean gold.finding?"),
        ("SELECT kindd FROM gold.finding", "query: there is no column kindd; did you mean kind?"),
        ("SELECT ts FROM silver.offset_change", "query: there is no column ts; did you mean to_ts?"),
        ("SELECT f.topik FROM gold.finding f", "query: there is no column topik; did you mean topic?"),
        ("SELECT zzz FROM gold.finding", "query: there is no column zzz; `mqreplay tables TABLE` lists them"),
        ("SELECT 1; SELECT 2", "query refused: 2 statements; give one statement"),
        ("", "query refused: no statement; give one statement"),
        ("SELECT memory_threshold('x', 1)", "query: Could not convert string 'x' to INT64"),
        (
            "SELECT memory_threshold(1.5, 1)",
            "query: memory_threshold does not take these arguments (DECIMAL(2,1), INTEGER); write "
            "memory_threshold(total_physical_memory_size BIGINT, access_message_in_memory_max_ratio BIGINT)",
        ),
        (
            "SELECT update_offset(1)",
            "query: update_offset does not take these arguments; write "
            "update_offset(offset_old BIGINT, offset BIGINT, increase_only BOOLEAN)",
        ),
        ("SELECT update_offzet(1, 2, true)", "query: there is no function update_offzet, did you mean update_offset?;"),
        ("SELECT array(1, 2)", 'query: syntax error at or near "1"; this is DuckDB\'s SQL, see docs/sql.md; --engine'),
        ("SELECT 1\nFORM gold.finding", 'query: syntax error at or near "gold" in line 2;'),
        ("SELECT error('No space left on device')", "query: No space left on device"),
        ("SELECT 'x'::INT", "query: Could not convert string 'x' to INT32"),
        (f"SELECT {'(' * 3000}1{')' * 3000}", "query: the statement is nested too deeply"),
        (f"SELECT {'[' * 500}1{']' * 500}", "query: the statement is nested too deeply"),
        ("SELECT list(repeat('x', 1000) || range) FROM range(3000000)", "query: it needs more memory than it may use;"),
        ("SELECT '\ud800'", "\"SELECT '\\ud800'\" is not Unicode text"),
        ("DESCRIBE FUNCTION nothing", "query: there is no function nothing; `SHOW FUNCTIONS` lists them"),
        ("SHOW TABLES IN brass", "query refused: there is no layer brass; the layers are bronze, silver, gold"),
    ],
)
def test_a_mistake_is_one_line(root: str, query: str, message: str) -> None:
    with pytest.raises(InputError) as found:
        duckdb_rows(root, query)
    assert str(found.value).startswith(message)
    assert "\n" not in str(found.value)


def test_a_bug_in_a_function_is_no_mistake_of_the_query(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import duckdb

    from mqreplay.bind.functions import FUNCTIONS

    def full(*arguments: object) -> object:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(type(FUNCTIONS["memory_threshold"]), "answering", property(lambda self: full))
    with pytest.raises(duckdb.Error, match="No space left"):
        duckdb_rows(root, "SELECT memory_threshold(1, 2)")


def test_nothing_is_left_behind(root: str) -> None:
    from mqreplay.lake.scratch import scratch

    before = sorted(Path(scratch().folder).iterdir())
    duckdb_rows(root, "SELECT * FROM gold.finding")
    assert sorted(Path(scratch().folder).iterdir()) == before
