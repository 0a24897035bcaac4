"""Where the query of `mqreplay sql` comes from, the shell, and what fails before anything heavy is loaded."""

from __future__ import annotations

import io
import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from made_warehouse import made_warehouse
from mqreplay.cli import sql_shell
from mqreplay.cli.command_line import main
from mqreplay.cli.sql_shell import completions, history_file, run_shell, words
from mqreplay.lake.contract import load_contracts
from tests_shared import ROOT

ONE = [{"a": 1}]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("warehouse")
    made_warehouse(folder, {"gold.finding": [{"finding_id": "f1", "kind": "broker_down"}]})
    return str(folder)


def printed(capsys: pytest.CaptureFixture[str]) -> list[Any]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


@pytest.mark.parametrize("arguments", [["-"], []])
def test_a_query_from_stdin(root: str, monkeypatch: pytest.MonkeyPatch, capsys, arguments: list[str]) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("SELECT 1 AS a;\n"))
    assert main(["sql", *arguments, "--warehouse", root, "--format", "json"]) == 0
    assert printed(capsys) == ONE


def test_a_query_from_a_file(root: str, tmp_path: Path, capsys) -> None:
    file = tmp_path / "q.sql"
    file.write_text("-- one\nSELECT 1 AS a\n")
    assert main(["sql", "--file", str(file), "--warehouse", root, "--format", "json"]) == 0
    assert printed(capsys) == ONE
    file.write_bytes(b"SELECT '\xff'")
    for arguments, message in (
        (["--file", str(file)], "cannot be read: it is not UTF-8"),
        (["--file", str(tmp_path)], "cannot be read: Is a directory"),
        (["SELECT 1", "--file", str(file)], "give the query or --file, not both"),
    ):
        assert main(["sql", *arguments, "--warehouse", root]) == 2
        assert capsys.readouterr().err.rstrip().endswith(message)


def test_the_warehouse_of_the_environment(root: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys) -> None:
    monkeypatch.setenv("MQREPLAY_WAREHOUSE", root)
    assert main(["sql", "SELECT 1 AS a", "--format", "json"]) == 0
    assert printed(capsys) == ONE
    assert main(["findings", "--json"]) == 0
    assert main(["tables"]) == 0
    capsys.readouterr()
    assert main(["sql", "SELECT 1", "--warehouse", str(tmp_path / "none")]) == 2  # the option comes first
    monkeypatch.delenv("MQREPLAY_WAREHOUSE")
    with pytest.raises(SystemExit):
        main(["sql", "SELECT 1"])
    assert "--warehouse" in capsys.readouterr().err


@pytest.mark.parametrize(
    "command", [["sql", "SELECT 1"], ["sql", "SELECT 1", "--engine", "spark"], ["tables"], ["findings"]]
)
def test_a_bad_path_fails_before_anything_heavy_is_loaded(tmp_path: Path, command: list[str]) -> None:
    program = (
        "import sys; from mqreplay.cli.command_line import main; status = main(sys.argv[1:]); "
        "print(sorted({'duckdb', 'polars', 'pyspark', 'pyarrow', 'deltalake', 'rich'} & set(sys.modules))); "
        "sys.exit(status)"
    )
    run = [sys.executable, "-c", program, *command, "--warehouse", str(tmp_path)]
    done = subprocess.run(run, env={"PYTHONPATH": str(ROOT / "lib")}, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "[]\n")
    assert "is not a warehouse" in done.stderr


@pytest.mark.parametrize("engine", ["duckdb", "spark"])
def test_describe_function(root: str, capsys, engine: str) -> None:
    query = "describe function `effective_ratio`;"
    assert main(["sql", query, "--warehouse", root, "--engine", engine, "--format", "csv"]) == 0
    out = capsys.readouterr().out
    for part in ("effective_ratio(access_message_in_memory_max_ratio BIGINT, broker_role STRING[, version STRING])",
                 "RocketMQ: BrokerStartup#createBrokerController", "effective_ratio(40"):  # fmt: skip
        assert part in out


def typed(*lines: str) -> Callable[[str], str]:
    """Return a reader that gives these lines, then the end of the input."""
    left: Iterator[str] = iter(lines)

    def read(prompt: str) -> str:
        try:
            return next(left)
        except StopIteration:
            raise EOFError from None

    return read


def test_a_shell(root: str, capsys) -> None:
    from mqreplay.answers.duckdb_query import duckdb_rows

    lines = [
        "SELECT kind -- one;",
        "FROM gold.finding;",
        "SELECT kindd FROM gold.finding;",
        ".tables",
        ".schema gold.findin",
    ]
    more = [".schema gold.finding", ".nothing", "", "SELECT ';' AS a;", ".quit", "SELECT 3 AS never;"]
    run_shell(root, lambda text: duckdb_rows(root, text), "csv", None, typed(*lines, *more))
    out, err = capsys.readouterr()
    rows = out.splitlines()
    assert rows[:2] == ["kind", "broker_down"]
    assert rows[2] == "table,content"
    assert rows[3].startswith("gold.finding,")
    assert any(row.startswith("finding_id,STRING,") for row in rows)
    assert rows[-2:] == ["a", ";"]
    assert "never" not in out
    assert "query: there is no column kindd; did you mean kind?\n" in err
    assert "there is no table gold.findin; did you mean gold.finding?\n" in err
    assert "there is no command .nothing\n" in err


@pytest.mark.parametrize("word", ["exit", "quit;", "QUIT", ".quit", " exit "])
def test_words_of_other_shells_leave_or_help(word: str, root: str, capsys) -> None:
    reads = typed("help", "SELECT 1 AS a", "help;", ".tabels", word, "SELECT 3 AS never;")
    answers = []
    run_shell(root, lambda text: (["a"], [(answers.append(text),)]), "csv", None, reads)
    out, err = capsys.readouterr()
    assert out.startswith(sql_shell.HELP)
    assert answers == ["SELECT 1 AS a\nhelp;"]  # within a statement it is a name
    assert "there is no command .tabels; did you mean .tables?\n" in err


def test_ctrl_c_ends_a_query_and_sigterm_the_shell(root: str, capsys, monkeypatch: pytest.MonkeyPatch) -> None:
    received: list[int] = [signal.SIGINT]
    monkeypatch.setattr("mqreplay.machine.stop_signals._received", received)
    reads = typed("SELECT 1;", "SELECT 2;", "SELECT 3;")

    def answer(text: str) -> Any:
        if "1" in text:
            raise KeyboardInterrupt
        if "3" in text:
            received.append(signal.SIGTERM)
            raise KeyboardInterrupt
        return ["a"], [(2,)]

    with pytest.raises(KeyboardInterrupt):
        run_shell(root, answer, "csv", None, reads)
    out, err = capsys.readouterr()
    assert out.split() == ["a", "2"]
    assert err.count("interrupted") == 1


def test_what_tab_completes() -> None:
    known = words(load_contracts())
    assert "gold.finding" in completions("gold.f", known)
    assert "SELECT" in completions("sel", known)
    assert {"allocate", "allocate_averagely"} <= set(completions("allo", known))
    assert completions(".ta", known) == [".tables"]
    assert completions("", known) == []


def test_the_history_is_the_users_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    path = history_file()
    assert path == tmp_path / "state" / "mqreplay" / "sql_history"
    assert path.stat().st_mode & 0o777 == 0o600
    path.unlink()
    path.symlink_to(tmp_path / "elsewhere")  # is not followed
    assert history_file() is None
    assert not (tmp_path / "elsewhere").exists()


def test_a_statement_ends_with_its_semicolon() -> None:
    import doctest

    assert doctest.testmod(sql_shell)[:2] == (0, 1)
    assert not sql_shell.is_whole("SELECT 1 /* ; */")
    assert not sql_shell.is_whole('SELECT ";"')
    assert sql_shell.is_whole("SELECT 1 - 2 / 3;")
