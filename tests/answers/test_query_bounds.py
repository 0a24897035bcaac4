"""The bounds of a query: memory of `mqreplay sql`; rows, bytes and time of the tool of an agent."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from pathlib import Path

import anyio
import pytest

from made_warehouse import made_warehouse
from mqreplay.answers.duckdb_query import duckdb_stream
from mqreplay.answers.query_bounds import TOO_LARGE
from mqreplay.mcp import query as mcp_query
from mqreplay.mcp.query import bounded_answer
from mqreplay.settings import load_settings
from mqreplay.words.errors import InputError

LONG_VALUE = "SELECT length(repeat('x', 3000000000)) AS n"
ENDLESS = "SELECT count(*) FROM range(10000000000) a, range(10000000000) b"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("warehouse")
    made_warehouse(folder, {"gold.finding": [{"finding_id": "f1", "kind": "broker_down"}]})
    return str(folder)


def sql(root: str, query: str, *options: str, least: bool = False) -> subprocess.Popen[str]:
    """Start a query; ``least``: with 600 MB for all of its process."""
    command = [sys.executable, "-m", "mqreplay.cli", "sql", query, "--warehouse", root, *options]
    if least:
        command = ["prlimit", f"--data={600 << 20}", *command]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def children(process: int) -> list[int]:
    return list(map(int, Path(f"/proc/{process}/task/{process}/children").read_text().split()))


def test_a_query_above_the_bound_is_one_line(root: str) -> None:
    out, err = (run := sql(root, LONG_VALUE)).communicate(timeout=100)
    assert (run.returncode, out) == (2, "")
    assert err.startswith(f"mqreplay: {TOO_LARGE}")
    assert err.count("\n") == 1
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss < 2600 << 10


def test_a_table_that_does_not_fit_is_one_line(root: str) -> None:
    run = sql(root, "SELECT repeat('x', 20000) AS x FROM range(12000)", least=True)
    out, err = run.communicate(timeout=100)
    assert (run.returncode, out) == (2, "")
    assert err.startswith(f"mqreplay: {TOO_LARGE}")
    assert err.count("\n") == 1


def test_rows_come_before_the_query_ends(root: str) -> None:
    names, rows = duckdb_stream(root, "SELECT range AS a FROM range(1000000000000)")
    assert (names, next(rows)) == (["a"], (0,))


def test_a_child_that_is_killed_is_one_line(root: str) -> None:
    run = sql(root, ENDLESS)
    while not (found := children(run.pid)):
        time.sleep(0.05)
    os.kill(found[0], 6)
    _, err = run.communicate(timeout=30)
    assert (run.returncode, err) == (2, f"mqreplay: {TOO_LARGE} (its process was ended by SIGABRT)\n")


@pytest.mark.first_case
@pytest.mark.parametrize(("number", "status"), [(2, 130), (15, 143)])
def test_a_signal_ends_the_child(root: str, number: int, status: int) -> None:
    run = sql(root, ENDLESS)
    while not (found := children(run.pid)):
        time.sleep(0.05)
    time.sleep(4)  # in DuckDB
    run.send_signal(number)
    _, err = run.communicate(timeout=30)
    assert (run.returncode, err.count("\n")) == (status, 1)
    assert not Path(f"/proc/{found[0]}").exists()


@pytest.mark.first_case
@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELECT repeat('x', 2000000) AS x", "query: the answer is larger than 1,000,000 bytes; choose fewer columns"),
        (LONG_VALUE, TOO_LARGE),
        ("SELECT kindd FROM gold.finding", "query: there is no column kindd; did you mean kind?"),
        (ENDLESS, "query: it took more than 5 s and was ended; add conditions"),
    ],
)
def test_an_agent_is_told_the_bound(root: str, monkeypatch: pytest.MonkeyPatch, query: str, message: str) -> None:
    before = children(os.getpid())
    monkeypatch.setattr(mcp_query, "MOST_SECONDS", 5 if query == ENDLESS else 50)
    with pytest.raises(InputError) as found:
        anyio.run(bounded_answer, root, query, load_settings(None))
    assert str(found.value).startswith(message)
    assert children(os.getpid()) == before


def test_an_agent_gets_the_first_rows(root: str) -> None:
    answer = anyio.run(bounded_answer, root, "SELECT range AS a FROM range(30000000)", load_settings(None))
    assert answer["columns"] == ["a"]
    assert answer["rows"] == [[number] for number in range(200)]
    assert (answer["count"], answer["more"][:18]) == (None, "only the first 200")
    few = anyio.run(bounded_answer, root, "SELECT 1 AS a, 2 AS a", load_settings(None))
    assert few == {"columns": ["a", "a"], "rows": [[1, 2]], "count": 1}


def test_an_agent_that_cancels_ends_the_query(root: str) -> None:
    async def cancelled() -> bool:
        with anyio.move_on_after(4) as scope:
            await bounded_answer(root, ENDLESS, load_settings(None))
        return scope.cancelled_caught

    before = children(os.getpid())
    assert anyio.run(cancelled)
    assert children(os.getpid()) == before
