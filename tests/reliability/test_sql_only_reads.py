"""`mqreplay sql` reads: what a statement does is judged by its plan, and the process cannot write anyway."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from made_warehouse import made_warehouse
from mqreplay.words.errors import InputError
from tests_shared import ROOT

T = "gold.finding"
READS = [
    "SELECT 1",
    f"SELECT kind, count(*) AS n FROM {T} GROUP BY ALL HAVING n > 1 ORDER BY ALL LIMIT 3 OFFSET 1",
    f"WITH t AS (SELECT * FROM {T}), u AS (SELECT kind FROM t) SELECT * FROM u JOIN t USING (kind)",
    "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 5) SELECT * FROM r",
    f"FROM {T} |> WHERE kind = 'x' |> AGGREGATE count(*) GROUP BY topic |> ORDER BY topic |> LIMIT 1",
    f"SELECT * FROM {T}, LATERAL (SELECT topic AS t2) WHERE EXISTS (SELECT 1) AND topic IN (SELECT topic FROM {T})",
    f"SELECT topic, e.record_id FROM {T} LATERAL VIEW explode(evidence) AS e",
    f"SELECT * FROM {T} VERSION AS OF 0",
    f"SELECT * FROM spark_catalog.{T} TABLESAMPLE (10 ROWS)",
    f"SELECT rank() OVER w FROM {T} WINDOW w AS (PARTITION BY kind ORDER BY topic)",
    f"SELECT kind FROM {T} UNION SELECT 'a' EXCEPT SELECT 'b' INTERSECT SELECT 'c'",
    f"SELECT * FROM (SELECT kind, topic FROM {T}) PIVOT (count(*) FOR kind IN ('a', 'b'))",
    f"SELECT * FROM (SELECT kind, topic FROM {T}) UNPIVOT (v FOR n IN (kind, topic))",
    f"SELECT /*+ COALESCE(1) */ filter(array(1, 2), x -> x > 1) FROM {T} -- INSERT INTO",
    "SELECT 'DELETE FROM gold.finding; INSERT', ';', `a;b` FROM VALUES (1), (2) AS t(`a;b`)",
    "SELECT * FROM range(3)",
    "SELECT * FROM explode(array(1, 2))",
    "VALUES (1, 'a'), (2, 'b');",
    f"TABLE {T}",
    f"EXPLAIN EXTENDED SELECT * FROM {T}",
    f"DESCRIBE QUERY SELECT * FROM {T}",
    "SHOW DATABASES",
    "SHOW TABLES IN gold",
    "SHOW FUNCTIONS LIKE 'alloc*'",
    f"SHOW COLUMNS IN {T}",
    f"DESCRIBE EXTENDED {T}",
    f"DESC {T} kind",
    f"DESCRIBE HISTORY {T}",
    f"DESCRIBE DETAIL {T}",
    "DESCRIBE FUNCTION upper",
]
WRITES = [
    f"FROM {T} INSERT OVERWRITE TABLE {T} SELECT *",
    f"FROM {T} INSERT INTO {T} SELECT * INSERT INTO {T} SELECT *",
    f"WITH x AS (SELECT 1) DELETE FROM {T}",
    f"WITH x AS (SELECT * FROM {T}) INSERT INTO {T} SELECT * FROM x",
    f"WITH x AS (SELECT 1) UPDATE {T} SET kind = 'x'",
    f"/* SELECT */ INSERT INTO {T} TABLE {T}",
    f"-- SELECT\nTRUNCATE TABLE {T}",
    f"DELETE FROM {T}",
    f"MERGE INTO {T} t USING (SELECT 'x' AS k) s ON t.kind = s.k WHEN MATCHED THEN DELETE",
    f"EXPLAIN INSERT INTO {T} TABLE {T}",
    f"EXPLAIN ANALYZE DELETE FROM {T}",
    f"DROP TABLE {T}",
    f"ALTER TABLE {T} ADD COLUMN x INT",
    f"OPTIMIZE {T}",
    f"VACUUM {T} RETAIN 0 HOURS",
    f"RESTORE TABLE {T} TO VERSION AS OF 0",
    f"REORG TABLE {T} APPLY (PURGE)",
    f"GENERATE symlink_format_manifest FOR TABLE {T}",
    "CONVERT TO DELTA parquet.`/tmp/x`",
    f"CREATE TABLE gold.x SHALLOW CLONE {T}",
    f"CREATE TABLE gold.x USING delta AS SELECT * FROM {T}",
    "CREATE OR REPLACE TEMPORARY VIEW v AS SELECT 1",
    "CREATE DATABASE x",
    "CREATE TEMPORARY FUNCTION f AS 'java.lang.Runtime'",
    "CREATE TEMPORARY FUNCTION f() RETURNS INT RETURN 1",
    "DECLARE VARIABLE v INT",
    "INSERT OVERWRITE DIRECTORY '{outside}' USING csv SELECT 'x'",
    "INSERT OVERWRITE LOCAL DIRECTORY '{outside}' STORED AS textfile SELECT 'x'",
    f"SELECT TRANSFORM (kind) USING 'touch {{outside}}' AS (b STRING) FROM {T}",
    f"FROM {T} MAP kind USING 'touch {{outside}}' AS b",
    f"FROM {T} REDUCE kind USING 'touch {{outside}}' AS b",
    f"SELECT * FROM (SELECT TRANSFORM (kind) USING 'touch {{outside}}' AS (b STRING) FROM {T})",
    f"SELECT (SELECT max(b) FROM (SELECT TRANSFORM (kind) USING 'touch {{outside}}' AS (b STRING) FROM {T}))",
    f"WITH x AS (SELECT TRANSFORM (kind) USING 'touch {{outside}}' AS (b STRING) FROM {T}) SELECT * FROM x",
    "LOAD DATA LOCAL INPATH '/etc/passwd' INTO TABLE gold.finding",
    "SET spark.sql.runSQLOnFiles=true",
    "RESET",
    "USE gold",
    "ADD JAR '/tmp/x.jar'",
    "ADD FILE '/etc/passwd'",
    f"CACHE TABLE {T}",
    f"CACHE TABLE x AS SELECT * FROM {T}",
    "CLEAR CACHE",
    "REFRESH '/tmp'",
    f"ANALYZE TABLE {T} COMPUTE STATISTICS",
    f"MSCK REPAIR TABLE {T}",
    "CALL system.anything()",
    "EXECUTE IMMEDIATE 'DELETE FROM gold.finding'",
    f"BEGIN DELETE FROM {T}; END",
    f"BEGIN IF 1 = 1 THEN SELECT 1; DELETE FROM {T}; END IF; END",
]
XPATHS = [
    "xpath",
    *(f"XPath_{kind}" for kind in ("boolean", "double", "float", "int", "long", "number", "short", "string")),
]
REACHES_OUTSIDE = [
    "SELECT * FROM text.`/etc/passwd`",
    "SELECT * FROM TEXT.`/etc/passwd`",
    "SELECT * FROM csv.`/etc/passwd` AS t JOIN (SELECT 1)",
    "SELECT * FROM parquet.`/tmp/x`",
    "SELECT * FROM delta.`/tmp/x`",
    "SELECT * FROM delta.`/tmp/x` VERSION AS OF 0",
    "SELECT * FROM `org.apache.spark.sql.execution.datasources.text`.`/etc/passwd`",
    "SELECT * FROM jdbc.`jdbc:derby:memory:x;create=true`",
    "SELECT (SELECT max(value) FROM text.`/etc/passwd`)",
    "SELECT 1 WHERE EXISTS (SELECT * FROM text.`/etc/passwd`)",
    "WITH x AS (SELECT * FROM text.`/etc/passwd`) SELECT * FROM x",
    "TABLE text.`/etc/passwd`",
    "DESCRIBE text.`/etc/passwd`",
    "DESCRIBE DETAIL '/tmp'",
    "DESCRIBE HISTORY delta.`/tmp/x`",
    "EXPLAIN SELECT * FROM text.`/etc/passwd`",
    "SELECT * FROM IDENTIFIER('text.`/etc/passwd`')",
    "SELECT IDENTIFIER('reflect')('java.lang.System', 'getenv')",
    f"SELECT * FROM {T} WITH ('path' = '/tmp')",
    f"SELECT * FROM STREAM {T}",
    "SELECT reflect('java.lang.System', 'getProperty', 'user.home')",
    "SELECT REFLECT('java.lang.System', 'exit', 0)",
    "SELECT `reflect`('java.lang.System', 'getProperty', 'user.home')",
    "SELECT java_method('java.lang.System', 'getProperty', 'user.home')",
    "SELECT try_reflect('java.lang.System', 'getProperty', 'user.home')",
    "SELECT system.builtin.reflect('java.lang.System', 'getProperty', 'user.home')",
    "SELECT transform(array('user.home'), x -> reflect('java.lang.System', 'getProperty', x))",
    "SELECT * FROM VALUES (reflect('java.lang.System', 'getProperty', 'user.home'))",
    f"SELECT 1 FROM {T} ORDER BY reflect('java.lang.System', 'getProperty', 'user.home')",
    "SELECT from_protobuf(binary('x'), 'm', '/etc/passwd')",
    "SELECT from_xml('<a/>', 'a INT', map('rowValidationXSDPath', 'http://127.0.0.1:1/e.xsd'))",
    "SELECT schema_of_xml('<a/>', map('rowValidationXSDPath', '/etc/passwd'))",
    *(f"SELECT {name}('<!DOCTYPE a SYSTEM \"file:///etc/passwd\"><a>&e;</a>', '/a')" for name in XPATHS),
    "SELECT * FROM table_changes_by_path('/tmp/x', 0)",
    "SELECT * FROM read_files('/etc/passwd')",
    "SELECT * FROM silver.nothing",
]
NO_STATEMENT = ["SELECT 1; SELECT 2", f"SELECT 1; DELETE FROM {T}", "", ";", "nothing"]


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory) -> str:
    from mqreplay.lake.warehouse import Warehouse

    root = str(tmp_path_factory.mktemp("sql") / "warehouse")
    Warehouse(root).replace_rows(T, [], None)
    return root


def digest(root: str) -> str:
    """What lies in a folder, names and bytes."""
    found = hashlib.sha256()
    for path in sorted(Path(root).rglob("*")):
        found.update(str(path).encode() + (path.read_bytes() if path.is_file() else b""))
    return found.hexdigest()


def judge(spark, warehouse: str, text: str) -> None:
    """The first half of what query() does, without a session for each statement."""
    from mqreplay.lake.contract import load_contracts
    from mqreplay.lake.statement import read_statement

    read_statement(spark, text, load_contracts())


@pytest.mark.parametrize("text", READS)
def test_what_reads_is_accepted(spark, warehouse, text) -> None:
    judge(spark, warehouse, text)


@pytest.mark.parametrize("text", [*WRITES, *REACHES_OUTSIDE])
def test_what_does_more_is_refused_in_one_line(spark, warehouse, text) -> None:
    from pyspark.errors import ParseException

    try:
        with pytest.raises(InputError, match=r"\Aquery refused: [^\n]+\Z"):
            judge(spark, warehouse, text.format(outside="/nowhere"))
    except ParseException:
        assert text.startswith(("EXPLAIN ANALYZE", "CREATE OR REPLACE TEMPORARY VIEW v AS SELECT TRANSFORM"))


@pytest.mark.parametrize("text", NO_STATEMENT)
def test_what_is_not_one_statement_is_refused(spark, warehouse, text) -> None:
    from pyspark.errors import ParseException

    from mqreplay.cli.query import query_error

    with pytest.raises(ParseException) as found:
        judge(spark, warehouse, text)
    assert re.fullmatch(r"query: \S[^\n]+", str(query_error(found.value)))


def test_a_query_has_its_rows_and_changes_nothing(spark, warehouse) -> None:
    from mqreplay.cli.query import query
    from mqreplay.settings import load_settings

    before = digest(warehouse)
    whole = " UNION ALL ".join(f"(SELECT {n} AS n, count(*) AS c FROM {T})" for n in range(2))
    assert sorted(query(warehouse, whole, load_settings()).collect()) == [(0, 0), (1, 0)]
    assert query(warehouse, f"SHOW COLUMNS IN {T}", load_settings()).count() > 10
    assert [row.tableName for row in query(warehouse, "SHOW TABLES IN gold", load_settings()).collect()] == ["finding"]
    for text in ["SELECT 1; DELETE FROM gold.finding", WRITES[0], "SELECT nothing"]:
        with pytest.raises(InputError, match=r"\Aquery[^\n]+\Z"):
            query(warehouse, text, load_settings())
    assert digest(warehouse) == before


def test_another_warehouses_table_is_not_this_ones(spark, warehouse, tmp_path) -> None:
    from mqreplay.cli.query import query
    from mqreplay.lake.contract import load_contracts
    from mqreplay.settings import load_settings

    spark.sql("CREATE DATABASE IF NOT EXISTS gold")
    spark.sql("DROP TABLE IF EXISTS gold.allocation")
    spark.sql(f"CREATE TABLE gold.allocation (other INT) USING delta LOCATION '{tmp_path / 'other'}'")
    rows = query(warehouse, "SELECT * FROM gold.allocation", load_settings())
    assert rows.count() == 0
    assert rows.columns == [column.name for column in load_contracts()["gold.allocation"].columns]


def test_no_text_is_replaced_by_a_setting(spark, warehouse) -> None:
    from mqreplay.cli.query import query
    from mqreplay.settings import load_settings

    [row] = query(warehouse, "SELECT '${env:HOME}' AS a, '${spark.app.name}' AS b", load_settings()).collect()
    assert (row.a, row.b) == ("${env:HOME}", "${spark.app.name}")


def test_the_analyzed_plan_is_judged_too(spark, warehouse, tmp_path) -> None:
    from mqreplay.lake.statement import check_analyzed

    spark.sql("SELECT 1 AS a").createOrReplaceTempView("plain_view")
    check_analyzed(spark.sql("SELECT * FROM plain_view"))
    for hidden in (
        "SELECT reflect('java.lang.System', 'getProperty', 'user.home') AS a",
        "SELECT TRANSFORM (a) USING 'cat' AS (b STRING) FROM VALUES ('x') AS t(a)",
        "SELECT xpath_string('<a/>', '/a') AS a",
        "SELECT from_xml('<a/>', 'a INT') AS a",
        "SELECT schema_of_xml('<a/>') AS a",
    ):
        spark.sql(hidden).createOrReplaceTempView("hidden_view")
        with pytest.raises(InputError, match="query refused"):
            check_analyzed(spark.sql("SELECT (SELECT count(*) FROM hidden_view)"))


# Without the judgement: what the process itself may do.
BYPASS = """
import sys
from pathlib import Path
import mqreplay.cli.query as query
from mqreplay.lake.statement import Statement
from mqreplay.settings import load_settings

root, outside, inside, *texts = sys.argv[1:]
settings = load_settings()
confined = query.keep_from_writing(settings) if inside == "confined" else False
query.read_statement = lambda spark, text, tables: Statement(tables={"gold.finding"})
query.check_analyzed = lambda rows: None
for text in texts:
    try:
        query.query(root, text.format(outside=outside), settings).collect()
        print("done", text)
    except Exception as error:
        print("refused", text)
try:
    Path(root, "by_python").write_text("x")
    print("done python")
except OSError:
    print("refused python")
print("confined" if confined else "free")
"""


@pytest.mark.long
@pytest.mark.parametrize("inside", ["confined", pytest.param("free", marks=pytest.mark.long)])
def test_a_process_that_cannot_write(tmp_path, inside) -> None:
    from mqreplay.lake.confinement import _rights

    if _rights() is None:
        pytest.skip("this kernel has no Landlock")
    root, outside = str(tmp_path / "w"), str(tmp_path / "outside")
    made_warehouse(Path(root), {T: [{}]})
    before = digest(root)
    texts = [
        f"INSERT INTO {T} TABLE {T}",
        f"ALTER TABLE {T} SET TBLPROPERTIES ('a' = 'b')",
        "INSERT OVERWRITE DIRECTORY '{outside}' USING csv SELECT 'x'",
        "SELECT TRANSFORM (a) USING 'mkdir {outside}.made' AS (b STRING) FROM VALUES ('x') AS t(a)",
    ]
    command = [sys.executable, "-c", BYPASS, root, outside, inside, *texts, f"SELECT count(*) FROM {T}"]
    done = subprocess.run(
        command, env=os.environ | {"PYTHONPATH": str(ROOT / "lib")}, capture_output=True, text=True, check=False
    )
    said = done.stdout.splitlines()
    assert said[-1] == inside, done.stderr
    if inside == "confined":
        assert [line.split()[0] for line in said[:-1]] == ["refused"] * 4 + ["done", "refused"], said
        assert digest(root) == before
        assert not list(tmp_path.glob("outside*"))
    else:  # the statements would have written
        assert "refused" not in done.stdout, said
        assert digest(root) != before
        assert len(list(tmp_path.glob("outside*"))) == 2


# DuckDB without its lock and without the judgement: what the process itself may do.
UNLOCKED = """
import argparse, sys
from pathlib import Path
from mqreplay.cli import sql_command
from mqreplay.lake.duckdb_database import Database, literal
from mqreplay.settings import load_settings

root, inside = sys.argv[1:]
if inside == "confined":
    sql_command._confine(argparse.Namespace(own_process=True, engine="duckdb"), load_settings(), [])
new = literal(root + "/new")
with Database() as database:
    for text in [f"COPY (SELECT 1) TO {new}", f"ATTACH {new} AS x", "SELECT 1"]:
        try:
            database.run(text)
            print("done")
        except Exception:
            print("refused")
        Path(root, "new").unlink(missing_ok=True) if inside == "free" else None
"""


@pytest.mark.parametrize(("inside", "said"), [("confined", ["refused"] * 2), ("free", ["done"] * 2)])
def test_a_process_of_duckdb_that_cannot_write(tmp_path, inside, said) -> None:
    from mqreplay.lake.confinement import _rights

    if _rights() is None:
        pytest.skip("this kernel has no Landlock")
    command = [sys.executable, "-c", UNLOCKED, str(tmp_path), inside]
    done = subprocess.run(
        command, env=os.environ | {"PYTHONPATH": str(ROOT / "lib")}, capture_output=True, text=True, check=False
    )
    assert done.stdout.split() == [*said, "done"], done.stderr
    assert list(tmp_path.iterdir()) == []
