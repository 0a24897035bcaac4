"""A statement of DuckDB's SQL is judged by its parsed form, and the database refuses the rest."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from mqreplay.lake.contract import load_contracts
from mqreplay.lake.duckdb_database import Database, literal
from mqreplay.lake.duckdb_statement import read_duckdb_statement
from mqreplay.words.errors import InputError

T = "gold.finding"
READS = [
    "SELECT 1",
    f"SELECT kind, count(*) AS n FROM {T} GROUP BY ALL HAVING n > 1 ORDER BY ALL LIMIT 3 OFFSET 1",
    f"WITH t AS (SELECT * FROM {T}), u AS (SELECT kind FROM t) SELECT * FROM u JOIN t USING (kind)",
    "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 5) SELECT * FROM r",
    f"FROM {T}",
    f"TABLE {T}",
    f'SELECT * FROM "GOLD"."Finding" AS f, LATERAL (SELECT f.topic) WHERE EXISTS (SELECT 1 FROM {T})',
    f"SELECT rank() OVER w FROM {T} WINDOW w AS (PARTITION BY kind ORDER BY topic)",
    f"SELECT kind FROM {T} UNION SELECT 'a' EXCEPT SELECT 'b' INTERSECT SELECT 'c'",
    f"PIVOT (SELECT kind, topic FROM {T}) ON kind IN ('a', 'b') USING count(*)",
    f"SELECT topic, unnest(evidence) FROM {T}, unnest([1, 2]) AS u(x), range(3), generate_series(1, 2)",
    "SELECT 'DELETE FROM gold.finding; INSERT', ';' -- INSERT INTO",
    "VALUES (1, 'a'), (2, 'b');",
    f"EXPLAIN SELECT * FROM {T}",
    f"/* why */ EXPLAIN ANALYZE SELECT * FROM {T}",
    f"DESCRIBE {T}",
    f"DESCRIBE SELECT * FROM {T}",
    f"SUMMARIZE {T}",
    "SHOW ALL TABLES",
    "SELECT table_name FROM information_schema.tables",
    "SELECT * FROM duckdb_functions()",
]
REFUSED = [
    f"DELETE FROM {T}",
    f"WITH x AS (SELECT 1) DELETE FROM {T}",
    f"INSERT INTO {T} TABLE {T}",
    f"UPDATE {T} SET kind = 'x'",
    f"MERGE INTO {T} t USING (SELECT 'x' AS k) s ON t.kind = s.k WHEN MATCHED THEN DELETE",
    f"EXPLAIN ANALYZE DELETE FROM {T}",
    f"EXPLAIN EXPLAIN ANALYZE DELETE FROM {T}",
    f"TRUNCATE {T}",
    f"DROP VIEW {T}",
    f"ALTER VIEW {T} RENAME TO x",
    "CREATE TABLE x AS SELECT 1",
    "CREATE OR REPLACE TEMPORARY VIEW v AS SELECT 1",
    "CREATE MACRO f() AS 1",
    "CREATE SECRET (TYPE s3)",
    f"COPY {T} TO '/tmp/x'",
    f"COPY (SELECT * FROM {T}) TO PROGRAM 'cat'",
    "EXPORT DATABASE '/tmp/x'",
    "IMPORT DATABASE '/tmp/x'",
    "ATTACH '/tmp/x.db'",
    "DETACH memory",
    "INSTALL httpfs",
    "LOAD httpfs",
    "SET memory_limit = '1TB'",
    "SET VARIABLE a = 1",
    "RESET ALL",
    "USE gold",
    "PRAGMA database_list",
    "CALL enable_logging()",
    "CHECKPOINT",
    "VACUUM",
    "ANALYZE",
    "PREPARE p AS SELECT 1",
    "EXECUTE p",
    "BEGIN",
    f"PIVOT {T} ON kind",
    "SELECT * FROM read_text('/etc/passwd')",
    "SELECT * FROM read_csv('/etc/passwd')",
    "SELECT (SELECT max(content) FROM read_text('/etc/passwd'))",
    "WITH x AS (SELECT * FROM read_blob('/etc/passwd')) SELECT * FROM x",
    "SELECT * FROM '/etc/passwd'",
    "SELECT * FROM glob('/*')",
    "SELECT * FROM parquet_metadata('/tmp/x.parquet')",
    "SELECT * FROM sniff_csv('/etc/passwd')",
    "SELECT * FROM arrow_scan(1, 2, 3)",
    "SELECT * FROM pandas_scan(1)",
    "SELECT * FROM query('SELECT 1')",
    "SELECT * FROM query_table('gold.finding')",
    "SELECT * FROM json_execute_serialized_sql('{}')",
    "FROM enable_logging()",
    "FROM enable_profiling()",
    "FROM duckdb_secrets()",
    "FROM duckdb_logs()",
    "SELECT write_log('x')",
    f"SELECT * FROM {T} WHERE write_log(kind) IS NULL",
    "SELECT * FROM silver.nothing",
    "SELECT * FROM nothing",
    "SELECT * FROM other.gold.finding",
    "SHOW silver.nothing",
    "SELECT 1; SELECT 2",
    f"SELECT 1; DELETE FROM {T}",
    "",
    ";",
    "-- SELECT 1",
]


@pytest.fixture(scope="module")
def connection():
    with duckdb.connect() as made:
        yield made


@pytest.mark.parametrize("text", READS)
def test_what_reads_is_accepted(connection, text: str) -> None:
    read = read_duckdb_statement(connection, text, load_contracts())
    assert read.tables == ({T} if "finding" in text.lower() and "'DELETE" not in text else set())
    assert read.asks_for_tables == any(word in text for word in ("SHOW", "information_schema", "duckdb_"))


@pytest.mark.parametrize("text", REFUSED)
def test_what_does_more_is_refused_in_one_line(connection, text: str) -> None:
    with pytest.raises((InputError, duckdb.ParserException)) as found:
        read_duckdb_statement(connection, text, load_contracts())
    if isinstance(found.value, InputError):
        assert str(found.value).startswith("query refused: ")
        assert "\n" not in str(found.value)
    else:
        assert text.startswith(("COPY (SELECT", "EXPLAIN EXPLAIN", "IMPORT", "RESET ALL"))


@pytest.mark.parametrize(
    ("name", "hint"),
    [("finding", "gold.finding"), ("gold.findings", "gold.finding"), ("silver.pulls", "silver.pull"), ("zzz", None)],
)
def test_the_table_that_was_meant(connection, name: str, hint: str | None) -> None:
    said = f"did you mean {hint}?" if hint else "`mqreplay tables` lists them"
    with pytest.raises(InputError, match=f"there is no table {name}; {said[:12]}") as found:
        read_duckdb_statement(connection, f"SELECT * FROM {name}", load_contracts())
    assert str(found.value).endswith(said)


# Without the judgement: what the database itself refuses.
@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM read_text({outside})",
        "SELECT * FROM read_csv({outside})",
        "COPY (SELECT 1) TO {new}",
        "ATTACH {new}",
        "EXPORT DATABASE {new}",
        "SET memory_limit = '1TB'",
        "SET enable_external_access = true",
        "SET lock_configuration = false",
        "SET allowed_paths = [{outside}]",
        "INSTALL httpfs",
        "LOAD httpfs",
        "CALL enable_logging(storage = 'file', storage_config = {{'path': {new}}})",
        "PRAGMA enable_profiling",
        "SELECT * FROM glob('/*')",
        "SELECT * FROM outside_of_sql",
    ],
)
def test_a_locked_database(tmp_path: Path, text: str) -> None:
    outside, new = tmp_path / "outside.txt", tmp_path / "new"
    outside.write_text("secret")
    outside_of_sql = [1]  # a variable of Python, which would be a table
    with Database() as database:
        database.lock()
        with pytest.raises(duckdb.Error):
            database.run(text.format(outside=literal(str(outside)), new=literal(str(new))))
        assert database.run("SELECT 1") == [(1,)]
    assert (outside_of_sql, list(tmp_path.iterdir())) == ([1], [outside])
