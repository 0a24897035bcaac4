"""Every example of docs/other_tools.md runs as it is written there, gives the same answer and leaves no file behind."""

from __future__ import annotations

import datetime as dt
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from chispa import assert_df_equality

from cluster.processes import free_port
from made_warehouse import made_warehouse
from mqreplay.cli import command_line
from mqreplay.lake.class_archive import archive_options
from mqreplay.lake.row_filter import RowFilter
from mqreplay.lake.warehouse import Warehouse
from standalone_cluster import environment
from tests_shared import ROOT

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

PAGE = (ROOT / "docs" / "other_tools.md").read_text(encoding="utf-8")
GIVEN = {"conf", "warehouse", "register.sql"}
PORT = "10015"
STARTS_S = 120
FINDINGS = {"critical": 1, "info": 4, "warning": 2}  # of each severity


def examples(title: str, language: str) -> list[str]:
    """Return the code blocks of a section of the page."""
    section = PAGE.split(f"\n## {title}\n")[1].split("\n## ")[0]
    return re.findall(rf"^```{language}\n(.*?)^```", section, re.MULTILINE | re.DOTALL)


def answer(text: str) -> dict[str, int]:
    """Return the number of findings of each severity in what a tool printed."""
    return {severity: int(number) for severity, number in re.findall(r"(critical|warning|info)\W+(\d+)", text)}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The working folder of a reader: the settings, the warehouse and the SQL file of the page.

    The warehouse has few tables, which Spark registers faster; tests/lake/test_registration.py registers all.
    """
    made = tmp_path_factory.mktemp("reader")
    (made / "conf").symlink_to(ROOT / "conf")
    severities = [severity for severity, number in FINDINGS.items() for _ in range(number)]
    rows = [{"finding_id": str(number), "severity": severity} for number, severity in enumerate(severities)]
    made_warehouse(made / "warehouse" / "bulk", {"gold.finding": rows, "silver.broker": [{}]})
    (command,) = re.findall(r"^    (mqreplay tables --sql .*)$", PAGE, re.MULTILINE)
    command = command.replace("mqreplay", f"{sys.executable} -m mqreplay.cli", 1)
    subprocess.run(["bash", "-c", command], cwd=made, check=True)
    return made


def environment_of_a_reader() -> dict[str, str]:
    """Stock Spark. Java starts faster here: the tests of a session start do without that."""
    options = f"{archive_options()} -XX:TieredStopAtLevel=1"
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return {**environment(), "PATH": path, "PYTHONPATH": str(ROOT / "lib"), "SPARK_SUBMIT_OPTS": options}


def run(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env=environment_of_a_reader(),
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


@contextmanager
def thrift_server(command: str, port: int, folder: Path) -> Iterator[None]:
    """The server of the page, until the block ends."""
    log = folder.parent / f"{folder.name}.thrift.log"
    with log.open("w") as out:
        command = f"exec {command.strip()}"
        server = subprocess.Popen(
            ["bash", "-c", command], cwd=folder, env=environment_of_a_reader(), stdout=out, stderr=out
        )
    try:
        deadline = time.monotonic() + STARTS_S
        while True:
            assert server.poll() is None, log.read_text()[-3000:]
            assert time.monotonic() < deadline, log.read_text()[-3000:]
            with socket.socket() as client:
                if client.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.2)
        yield
    finally:
        server.send_signal(signal.SIGINT)
        server.wait(60)


@pytest.mark.parametrize("tool", ["Python", "polars", "DuckDB", "delta-rs"])
def test_tools_without_java(tool: str, folder: Path, monkeypatch) -> None:
    monkeypatch.chdir(folder)
    (code,) = examples(tool, "python")
    out = StringIO()
    with redirect_stdout(out):
        exec(code, {})
    assert answer(out.getvalue()) == FINDINGS


def test_the_agents_settings_start_the_server() -> None:
    (text,) = examples("Agents", "json")
    server = json.loads(text)["mcpServers"]["mqreplay"]
    assert server["command"] == "mqreplay"
    assert command_line.parser().parse_args(server["args"]).command == "mcp"


@pytest.mark.long
def test_pyspark_in_a_running_session(folder: Path, spark, monkeypatch) -> None:
    monkeypatch.chdir(folder)
    names: dict[str, Any] = {}
    out = StringIO()
    try:
        with redirect_stdout(out):
            for code in examples("PySpark", "python"):
                # Java has the working folder of its start.
                exec(code.replace('"warehouse/', f'"{folder}/warehouse/'), names)
    finally:
        spark.catalog.dropTempView("finding")
        for name in re.findall(r"CREATE TABLE IF NOT EXISTS (\S+)", (folder / "register.sql").read_text()):
            spark.sql(f"DROP TABLE IF EXISTS {name}")
    assert answer(out.getvalue()) == FINDINGS
    assert names["spark"].sparkContext is spark.sparkContext
    assert "{orders, broker-a, 1}" in out.getvalue()
    assert {path.name for path in folder.iterdir()} == GIVEN


@pytest.mark.long
def test_a_stream_follows_the_findings(spark, tmp_path: Path) -> None:
    """Three nights, the second one judged again: the copy has each finding once, and as it was judged last."""
    (code,) = examples("Streams", "python")
    code = re.sub(r'"(warehouse/|followed)', rf'"{tmp_path}/\1', code)
    root = tmp_path / "warehouse" / "bulk"
    made_warehouse(root, {"gold.finding": [{"finding_id": "gone"}]})
    first = Warehouse(str(root)).read("gold.finding").collect()
    table, cluster = "gold.finding", first["cluster"][0]

    def judge(day: int, *ids: str) -> None:
        at = dt.date(2026, 11, day)
        of_day = pl.concat(
            [first.with_columns(pl.lit(at).alias("day"), pl.lit(one).alias("finding_id")) for one in ids]
        )
        rows = of_day.with_columns(pl.lit(f"judged {len(ids)}").alias("summary"))
        Warehouse(str(root)).replace_rows(table, rows, RowFilter(cluster, days=frozenset({at})))

    def followed() -> DataFrame:
        exec(code, {})
        return spark.read.format("delta").load(f"{tmp_path}/followed")

    Warehouse(str(root)).replace_rows(table, [], RowFilter(cluster))
    judge(20, "a")
    assert_df_equality(followed(), spark.read.format("delta").load(f"{root}/gold/finding"), ignore_row_order=True)
    judge(21, "b", "c")
    followed()
    judge(21, "c", "d", "e")
    judge(22, "f")
    copy = followed()
    assert_df_equality(copy, spark.read.format("delta").load(f"{root}/gold/finding"), ignore_row_order=True)
    assert sorted(row.finding_id for row in copy.collect()) == ["a", "c", "d", "e", "f"]


@pytest.mark.long  # test_pyspark_in_a_running_session runs the same text
def test_pyspark_script(folder: Path) -> None:
    code = "\n".join(examples("PySpark", "python"))
    (folder.parent / "night.py").write_text(code)
    done = run("python ../night.py", folder)
    assert done.returncode == 0, done.stderr[-3000:]
    assert answer(done.stdout) == FINDINGS
    assert {path.name for path in folder.iterdir()} == GIVEN


@pytest.mark.long
def test_spark_sql(folder: Path) -> None:
    (command,) = examples("spark-sql", "sh")
    done = run(command, folder)
    assert done.returncode == 0, done.stderr[-3000:]
    assert answer(done.stdout) == FINDINGS
    assert {path.name for path in folder.iterdir()} == GIVEN


@pytest.mark.long
def test_thrift_server_and_a_jdbc_client(folder: Path) -> None:
    port = free_port()
    server, client = (code.replace(PORT, str(port)) for code in examples("Thrift server and JDBC", "sh"))
    with thrift_server(server, port, folder):
        done = run(client, folder)
    assert done.returncode == 0, done.stderr[-3000:]
    assert answer(done.stdout) == FINDINGS
    assert {path.name for path in folder.iterdir()} == GIVEN


def test_every_example_is_tested() -> None:
    assert PAGE.count("```python") == 7
    assert PAGE.count("```json") == 1
    assert PAGE.count("```sh") == 3
