"""Commands that only read what a night left need neither Java nor PySpark."""

from __future__ import annotations

import datetime as dt
import os
import subprocess
import sys
from pathlib import Path

import pytest

from evidence_keys import evidence_of
from made_warehouse import CLUSTER, made_warehouse

ROOT = Path(__file__).parents[2]
AT = dt.datetime(2026, 11, 21, 2, tzinfo=dt.UTC)
RUN = """
import sys
from mqreplay.cli import command_line as cli
status = cli.main(sys.argv[1:])
assert "pyspark" not in sys.modules, "pyspark was loaded"
sys.exit(status)
"""


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    nowhere = {"PATH": "/nowhere", "JAVA_HOME": "/nowhere", "SPARK_HOME": "/nowhere", "PYTHONPATH": str(ROOT / "lib")}
    command = [sys.executable, "-c", RUN, *arguments]
    return subprocess.run(command, env={**os.environ, **nowhere}, capture_output=True, text=True, check=False)


@pytest.fixture
def root(tmp_path: Path) -> str:
    evidence = [evidence_of("silver.pull", record_id="p")]
    finding = {"finding_id": "f1", "kind": "broker_down", "severity": "critical", "from_ts": AT, "to_ts": AT}
    tables = {
        "bronze.source_file": [
            {"status": "read", "rows_in": 1, "rows_out": 1, "rows_quarantined": 0} | {"rows_duplicate": 0}
        ],
        "silver.pull": [{"record_id": "p", "request_ts": AT, "day": AT.date(), "topic": "pay-topic"}],
        "gold.finding": [finding | {"summary": "Broker b is down.", "evidence": evidence, "follows_from": None}],
        "gold.judgement": [{"decision": "gold.pull_route", "judgement": "agree", "decisions": 5}],
    }
    made_warehouse(tmp_path / "warehouse", tables)
    return str(tmp_path / "warehouse")


def test_explain(root: str) -> None:
    done = run("explain", "f1", "--warehouse", root)
    assert (done.returncode, done.stderr) == (0, "")
    assert "Broker b is down." in done.stdout
    assert "Evidence: 1 row\n" in done.stdout
    assert "of pay-topic" in done.stdout


def test_sql(root: str) -> None:
    done = run("sql", "SELECT summary, memory_threshold(7, 40).value AS v FROM gold.finding", "--warehouse", root)
    assert (done.returncode, done.stderr) == (0, "")
    assert "Broker b is down." in done.stdout


def test_report(root: str) -> None:
    done = run("report", "--warehouse", root)
    assert done.returncode == 0, done.stderr
    assert "Broker b is down." in done.stdout
    assert "Broker b is down." in Path(root, "report", f"{CLUSTER}.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("command", [("explain", "f1"), ("report",)], ids=lambda command: command[0])
def test_a_warehouse_that_is_not_there(tmp_path: Path, command: tuple[str, ...]) -> None:
    done = run(*command, "--warehouse", str(tmp_path / "none"))
    assert done.returncode == 2
    assert "does not exist; run nightly with a recording first" in done.stderr
