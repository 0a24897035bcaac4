"""Rows that do not fit into the terminal: one column a line, columns that are named, and the pager."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from collections.abc import Callable
from pathlib import Path

import pytest

from made_warehouse import made_warehouse
from mqreplay.cli.rows import print_rows
from mqreplay.cli.shell_output import ShellOutput
from tests_shared import ROOT

NAMES = [f"column_{number}" for number in range(9)]


@pytest.fixture
def terminal(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[[int, int], None]:
    """Return a function that makes stdout a terminal of so many columns and lines."""

    def make(columns: int, lines: int) -> None:
        monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
        monkeypatch.setenv("COLUMNS", str(columns))
        monkeypatch.setenv("LINES", str(lines))
        monkeypatch.setenv("TERM", "dumb")

    return make


def test_line_form_has_one_column_a_line(capsys) -> None:
    print_rows(["kind", "queue_id", "时间"], [("broker_down", None, "a\x1bb"), ("stuck_queue", 3, 1.5)], "line")
    assert capsys.readouterr().out.splitlines() == [
        "    kind = broker_down",
        "queue_id =",
        r"    时间 = a\x1bb",
        "",
        "    kind = stuck_queue",
        "queue_id = 3",
        "    时间 = 1.5",
    ]


def test_no_value_is_cut_without_a_word(terminal, capsys) -> None:
    terminal(60, 40)
    values = [f"{'v' * 30}{number}" for number in range(9)]
    print_rows(NAMES, [values], "table")
    *table, note = capsys.readouterr().out.splitlines()
    assert all(len(line) <= 60 for line in table)
    left_out = re.fullmatch(r"(\d) columns do not fit: (.*)\. --format line shows all\.", note)
    assert left_out is not None
    shown = len(NAMES) - int(left_out[1])
    assert shown >= 3
    assert left_out[2].split(", ") == NAMES[shown:]
    columns = [re.split(r"\s*[│┃]\s*", line.strip("│┃")) for line in table if line[0] in "│┃"]
    folded = ["".join(cells) for cells in zip(*columns[1:], strict=True)]
    assert [cell.strip().removeprefix(name) for cell, name in zip(folded, NAMES, strict=False)] == values[:shown]


def test_columns_that_fit_are_all_shown(terminal, capsys) -> None:
    terminal(60, 40)
    print_rows(NAMES[:4], [[1, 2, 3, "long " * 40]], "table")
    out = capsys.readouterr().out
    assert "not fit" not in out
    assert len(re.findall("long", out)) == 40


def test_a_single_wide_column_is_folded(terminal, capsys) -> None:
    terminal(10, 40)
    print_rows(["a", "b"], [["x" * 50, "y" * 50]], "table")
    out = capsys.readouterr().out
    assert out.count("x") == 50
    assert "1 column does not fit: b." in out


def test_modes_and_pager_are_chosen(capsys) -> None:
    output = ShellOutput("table")
    for form in ("", "line", "x", ""):
        output.choose_form(form)
    for word in ("", "off", "maybe", ""):
        output.choose_pager(word)
    out, err = capsys.readouterr()
    assert out.split() == ["table", "line", "on", "off"]
    assert "there is no form x; the forms are table, line, csv, json" in err
    assert ".pager on or .pager off" in err
    output.show(["a"], [(1,)])
    assert capsys.readouterr().out == "a = 1\n"


def test_a_pager_that_does_not_exist_loses_nothing(terminal, capsys, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal(60, 5)
    for pager in ("/nowhere/less", "'"):
        monkeypatch.setenv("PAGER", pager)
        ShellOutput("line").show(["a"], [(number,) for number in range(9)])
        assert capsys.readouterr().out.count("a = ") == 9


def typed(warehouse: Path, pager: str, *lines: str) -> str:
    """Return what `mqreplay sql` shows in a terminal of 12 lines while these lines are typed."""
    ours, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 12, 70, 0, 0))
    environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
    environment |= {"PYTHONPATH": str(ROOT / "lib"), "PAGER": pager, "TERM": "dumb"}
    environment["XDG_STATE_HOME"] = str(warehouse / "state")
    command = [sys.executable, "-m", "mqreplay.cli", "sql", "--warehouse", str(warehouse)]
    os.write(ours, "".join(f"{line}\n" for line in (*lines, ".quit")).encode())
    with subprocess.Popen(command, stdin=its, stdout=its, stderr=its, env=environment) as shell:
        os.close(its)
        shown = b""
        try:
            while part := os.read(ours, 65536):
                shown += part
        except OSError:  # the end of a terminal
            pass
    os.close(ours)
    assert shell.returncode == 0
    return shown.decode()


def test_long_answers_go_through_the_pager(tmp_path: Path) -> None:
    made_warehouse(tmp_path, {"gold.finding": [{"finding_id": "f1"}]})
    long, short = "SELECT range AS n FROM range(20);", "SELECT 77 AS n;"
    shown = typed(tmp_path, "sed s/^/paged:/", long, short, ".pager off", long)
    assert len(re.findall(r"paged:│\s*\d+", shown)) == 20
    assert len(re.findall(r"^│\s*\d+", shown, re.MULTILINE)) == 21  # the short answer, and all without the pager
    assert "│77│" in shown
