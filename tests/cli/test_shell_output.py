"""Rows that do not fit into the terminal: one column a line, and the pager."""

from __future__ import annotations

import datetime as dt
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from in_terminal import in_terminal
from made_warehouse import made_warehouse
from mqreplay.cli.rows import print_rows
from mqreplay.cli.shell_output import ShellOutput

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


def test_rows_that_do_not_fit_are_records_of_whole_values(terminal, capsys) -> None:
    terminal(60, 40)
    values = [f"{'v' * 30}{number}" for number in range(9)]
    print_rows(NAMES, [values, values], "table")
    lines = capsys.readouterr().out.splitlines()
    record = [f"{name}  {value}" for name, value in zip(NAMES, values, strict=True)]
    assert lines == [*record, "", *record]


def test_columns_that_fit_are_all_shown(terminal, capsys) -> None:
    terminal(60, 40)
    print_rows(NAMES[:4], [[1, 2, 3, "long " * 40]], "table")
    out = capsys.readouterr().out
    assert "not fit" not in out
    assert len(re.findall("long", out)) == 40


def test_a_long_list_says_what_shows_all_of_it(terminal, capsys) -> None:
    terminal(60, 40)
    print_rows(["a"], [[list(range(1000))]], "table")
    words = capsys.readouterr().out.replace("│", " ").split()
    assert re.search(r"\.\.\. \(4,690 more characters; --format line shows all\)", " ".join(words))


def test_findings_have_summary_and_times_at_120_columns(tmp_path: Path) -> None:
    finding = {"finding_id": "0123456789abcdef", "kind": "broker_down", "summary": "The master did not answer. " * 9}
    made_warehouse(
        tmp_path,
        {"gold.finding": [finding | {name: dt.datetime(2026, 11, 21, 2, 52, 58) for name in ("from_ts", "to_ts")}]},
    )
    shown = in_terminal(120, "sql", "SELECT * FROM gold.finding", "--warehouse", str(tmp_path), PAGER="cat")
    rows = dict(re.findall(r"^(\w+) +(\S.*)$", shown, re.MULTILINE))
    assert rows["finding_id"] == "0123456789abcdef"
    assert rows["to_ts"] == "2026-11-21T02:52:58"
    assert {"from_ts", "summary"} <= set(rows)
    assert max(map(len, shown.splitlines())) <= 120


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


def test_long_answers_go_through_the_pager(tmp_path: Path) -> None:
    made_warehouse(tmp_path, {"gold.finding": [{"finding_id": "f1"}]})
    long, short = "SELECT range AS n FROM range(20);", "SELECT 77 AS n;"
    typed = "".join(f"{line}\n" for line in (long, short, ".pager off", long, ".quit"))
    places = {"PAGER": "sed s/^/paged:/", "XDG_STATE_HOME": str(tmp_path / "state"), "TERM": "dumb"}
    shown = in_terminal(70, "sql", "--warehouse", str(tmp_path), typed=typed, lines=12, **places)
    assert len(re.findall(r"paged:│\s*\d+", shown)) == 20
    assert len(re.findall(r"^│\s*\d+", shown, re.MULTILINE)) == 21  # the short answer, and all without the pager
    assert "│77│" in shown
