"""Texts and tables in terminals of 40 to 120 columns, and piped."""

from __future__ import annotations

import datetime as dt
import doctest
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from rich.cells import cell_len
from rich.text import Text

from in_terminal import in_terminal
from made_warehouse import made_warehouse
from mqreplay.answers.ready import required_readiness
from mqreplay.answers.state import state_at
from mqreplay.cli.command_line import main
from mqreplay.lake.warehouse import Warehouse
from mqreplay.moment.instant import recorded
from mqreplay.settings import Settings
from mqreplay.terminal import console
from mqreplay.terminal.console import print_line, print_row, print_table, print_text, text_console
from mqreplay.words.errors import InputError
from tests_shared import ROOT

CLIENT = "10.20.13.2@7333#3109985043571"
NAMES = ("client", "queues", "why")
ROWS = [(CLIENT, "1,200", "it left the group because a broker heard nothing of it for two minutes"), ("b", "3", "x")]
AT = dt.datetime(2026, 11, 21, 2, 50, tzinfo=dt.UTC)
DAY = AT.date()


def printed(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return [line.rstrip() for line in capsys.readouterr().out.splitlines()]


def test_doctests() -> None:
    assert doctest.testmod(console)[0] == 0


@pytest.mark.parametrize(("columns", "is_table"), [(60, True), (120, True), (50, False)])
def test_a_table_that_does_not_fit_is_records(columns: int, is_table: bool, capsys, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    print_table(text_console(), NAMES, ROWS, [1])
    lines = printed(capsys)
    assert max(map(len, lines)) <= columns
    assert sum(CLIENT in line for line in lines) == 1
    assert (lines[0].split() == list(NAMES)) == is_table
    if not is_table:
        assert lines[:2] == [f"client  {CLIENT}", "queues  1,200"]
        assert lines[-4:] == ["", "client  b", "queues  3", "why     x"]


def test_a_record_has_no_empty_values(capsys, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "50")
    print_table(text_console(), NAMES, [*ROWS, ("c", "", Text("0"))])
    assert printed(capsys)[-3:] == ["", "client  c", "why     0"]


@pytest.mark.parametrize("columns", [40, 60, 80])
def test_a_text_is_beside_its_head_or_below_it_and_no_word_is_split(columns: int, capsys, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    text = f"group pay-group {CLIENT}: took queues 0, 1, 2, 3 of pay-topic on broker-a"
    print_text(text_console(), Text(text), 2, Text("02:51:00.857  owner    "))
    lines = printed(capsys)
    assert max(map(len, lines)) <= columns
    assert " ".join("".join(f"{line}\n" for line in lines).split()) == f"02:51:00.857 owner {text}"
    assert sum(CLIENT in line for line in lines) == 1
    assert {len(line) - len(line.lstrip()) for line in lines[1:]} == {25 if columns >= 60 else 6}


def test_no_id_is_split_within_chinese(capsys, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    text = f"两个客户端的路由重新包含它（{CLIENT}，{CLIENT}）"
    print_text(text_console(), Text(text), 2, Text("02:51:00.857  "))
    print_table(text_console(), ["时间", "事件"], [("02:51", text)])
    lines = printed(capsys)
    assert max(map(cell_len, lines)) <= 60
    assert sum(line.count(CLIENT) for line in lines) == 4
    assert not [line for line in lines if line.strip()[0] in "，）"]


def test_a_row_is_one_line_where_no_terminal_is_also_with_columns(capsys, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    text = "took queues 0, 1, 2, 3 of pay-topic on broker-a " * 3 + "end"
    print_row(text_console(), Text(text), 2, Text("02:51:00.857  "))
    print_line(text_console(), f"    {text}")
    assert printed(capsys) == [f"  02:51:00.857  {text}", f"    {text}"]


def test_a_reader_that_ends_first_is_no_error(root: str, monkeypatch) -> None:
    for command in (["findings"], ["sql", "SELECT 1"]):
        reader, writer = os.pipe()
        os.close(reader)
        with os.fdopen(writer, "w") as out:
            monkeypatch.setattr(sys, "stdout", out)
            assert main([*command, "--warehouse", root]) == 0
            monkeypatch.undo()


def test_what_is_piped_is_never_wrapped(capsys, monkeypatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    long = "a word " * 100 + "end"
    out = text_console()
    print_line(out, f"  {long}")
    print_text(out, Text(long), 9, Text("head "))
    print_table(out, ["a", "b"], [(long, long)])
    assert printed(capsys)[0:2] == [f"  {long}", f"{' ' * 9}head {long}"]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return a warehouse in which client CLIENT leaves while a finding with a long summary is open."""
    span = {"from_ts": AT, "to_ts": AT + dt.timedelta(minutes=5), "day": DAY, "consumer_group": "pay-group"}
    rows = {"rows_in": 0, "rows_out": 0, "rows_quarantined": 0, "rows_duplicate": 0}
    file = rows | {
        "path": "p",
        "status": "read",
        "first_ts": AT - dt.timedelta(minutes=1),
        "last_ts": AT + dt.timedelta(minutes=9),
    }
    queues = [span | {"topic": "pay-topic", "broker_name": "broker-a", "queue_id": n} for n in range(3)]
    summary = f"Client {CLIENT} of group pay-group held three queues and did not finish any message for 95 s."
    found = {"finding_id": "0123456789abcdef", "kind": "slow_listener", "severity": "warning", "summary": summary}
    place = dict.fromkeys(("topic", "broker_name", "broker_id", "queue_id", "client_id", "values"))
    broker = {"ts": AT, "recording": "r", "broker_name": "broker-a", "broker_id": 0, "properties": {}}
    tables = {
        "bronze.source_file": [file],
        "silver.broker": [broker],
        "gold.member": [span | {"client_id": CLIENT, "ended": "unregistered", "shares_queues": True}],
        "gold.queue_owner": [queue | {"client_id": CLIENT, "source": "rebalance"} for queue in queues],
        "gold.finding": [span | place | found],
    }
    made_warehouse(folder := tmp_path_factory.mktemp("warehouse"), tables)
    return str(folder)


COMMANDS = (["at", "02:51"], ["at", "02:51", "--group", "pay-group"], ["at", "02:49", "--to", "02:58"], ["findings"])


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_no_line_is_longer_than_the_terminal_and_no_id_is_split(columns: int, root: str) -> None:
    for command in COMMANDS[1:2] if columns > 60 else COMMANDS[1:]:
        shown = in_terminal(columns, *command, "--warehouse", root)
        assert max(map(len, shown.splitlines())) <= columns, shown
        assert "01234567" in shown
        if command != ["findings"]:
            assert CLIENT in shown


def test_an_explanation_has_its_time_and_id_on_a_line_of_their_own_at_60_columns(root: str) -> None:
    kind, when, *_ = in_terminal(60, "explain", "01234567", "--warehouse", root).splitlines()
    assert re.fullmatch(r"\w+ +\w+", kind), kind
    assert re.fullmatch(r"    (since )?2026-.* UTC  01234567", when), when


def test_tables_of_a_state_are_records_at_60_columns(root: str) -> None:
    shown = in_terminal(60, *COMMANDS[1], "--warehouse", root)
    assert f"  client           {CLIENT}\n" in shown
    assert "  queue         pay-topic broker-a 2\n" in shown


def test_a_group_or_broker_that_is_not_known_is_answered_with_the_nearest_name(root: str) -> None:
    night = recorded(Warehouse(root), None)
    with pytest.raises(InputError, match=r"group pay-grup; did you mean pay-group\?"):
        state_at(night, AT, "pay-grup")
    with pytest.raises(InputError, match="nothing is recorded of the broker nothing"):
        state_at(night, AT, broker="nothing")
    with pytest.raises(InputError, match="nothing is recorded of the broker brokr-a; did you mean broker-a"):
        required_readiness(night, "brokr-a", 0, AT, Settings())
    with pytest.raises(InputError, match="nothing is known of broker broker-a 7 at 2026-11-21 02:50:00 UTC; known ids"):
        required_readiness(night, "broker-a", 7, AT, Settings())


def test_a_pipe_gets_whole_lines(root: str, tmp_path: Path) -> None:
    environment = {"PYTHONPATH": str(ROOT / "lib"), "HOME": str(tmp_path)}
    for command in COMMANDS[2:]:
        words = [sys.executable, "-m", "mqreplay.cli", *command, "--warehouse", root]
        done = subprocess.run(words, env=environment, capture_output=True, text=True, check=True)
        (summary,) = (line.strip() for line in done.stdout.splitlines() if "did not finish" in line)
        assert summary.endswith("any message for 95 s.")
