"""What is printed: expectations that do not hold, the rows of a query, and what is wrong with one."""

from __future__ import annotations

import csv
import datetime as dt
import doctest
import io
import json
import sys
from decimal import Decimal
from pathlib import Path

import pytest
from pyspark.sql import Row

from mqreplay.answers.outcome import Outcome
from mqreplay.cli import command_line as cli
from mqreplay.cli import rows
from mqreplay.cli.rows import print_rows
from mqreplay.terminal import outcome as terminal
from mqreplay.terminal.console import command_text
from mqreplay.terminal.outcome import print_outcome
from mqreplay.words import time_span

FAILED = {"table_name": "silver.route", "day": "2026-11-02", "expectation": "expect_it", "arguments": "{}"}


def test_a_broken_expectation_has_its_rows_or_what_was_seen_of_the_table(capsys):
    of_rows = FAILED | {"unexpected_count": 3, "unexpected_sample": '[{"id": 1}]'}
    of_table = FAILED | {"unexpected_count": None, "unexpected_sample": '[{"age_minutes": 12}]'}
    unknown = FAILED | {"unexpected_count": None, "unexpected_sample": None}
    outcome = Outcome("c", expectations=5, failed_expectations=[of_rows, of_table, unknown])
    print_outcome([outcome], "validate", "W")
    messages = [
        line.partition("expect_it {}: ")[2] for line in capsys.readouterr().out.splitlines() if "expect_it" in line
    ]
    assert messages == ["3 rows break it", '[{"age_minutes": 12}]', "reason unknown"]


def test_what_was_not_judged_is_shown_with_what_would_help(capsys):
    pulls = {"name": "pulls", "state": "not judged", "judged": 0, "differing": 0, "undetermined": 0, "lacks": "no \x1b"}
    owners = {"name": "owners", "state": "judged", "judged": 2000, "differing": None, "undetermined": 0, "lacks": ""}
    nothing = {**owners, "name": "audits", "state": "none"}
    outcome = Outcome("c", coverage=[pulls, owners, nothing], helps=[("run `mqreplay record`", ["pulls"])])
    print_outcome([outcome], "nightly", "W X")
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["Nothing", "could", "be", "judged."] in lines
    assert ["pulls", "none", "no", "\\x1b"] in lines
    assert ["owners", "2,000"] in lines
    assert not any("audits" in line for line in lines)
    assert ["run", "`mqreplay", "record`:", "pulls"] in lines
    assert lines[-1][-2:] == ["'W", "X'"]


def test_an_estate_names_the_worst_finding_of_each_cluster_and_once_what_all_recordings_lack(capsys):
    pulls = {"name": "pulls", "state": "not judged", "judged": 0, "differing": 0, "undetermined": 0, "lacks": "no"}
    down = "1 critical: the master of broker-a did not answer for 88 s from 02:51:31."
    quiet = [
        Outcome(f"c{n}", level="quiet", verdict="No problem found in 8 h: 7 caches of queues judged.", coverage=[pulls])
        for n in range(4)
    ]
    print_outcome([*quiet, Outcome("bad", level="critical", verdict=down)], "nightly", "W")
    lines = capsys.readouterr().out.splitlines()
    assert lines[1:4] == [
        "5 clusters: 1 critical, 4 quiet",
        f"critical bad  {down[:-1]}",
        "quiet    c0   No problem found in 8 h: 7 caches of queues judged",
    ]
    assert [line for line in lines if "pulls" in line] == ["The recording of 4 clusters cannot show: pulls"]


def test_commands_have_the_path_of_a_program_that_is_not_on_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / ".venv" / "bin" / "mqreplay"
    program.parent.mkdir(parents=True)
    program.touch(mode=0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [str(program)])
    monkeypatch.setenv("PATH", "/nowhere")
    assert command_text("mqreplay at 02:51 --group g") == ".venv/bin/mqreplay at 02:51 --group g"
    monkeypatch.setenv("PATH", str(program.parent))
    assert command_text("mqreplay at 02:51") == "mqreplay at 02:51"
    monkeypatch.setattr(sys, "argv", ["pytest"])
    assert command_text("mqreplay at 02:51") == "mqreplay at 02:51"


def test_doctests() -> None:
    assert doctest.testmod(rows)[:2] == (0, 1)
    assert doctest.testmod(time_span)[:2] == (0, 5)


def printed(capsys: pytest.CaptureFixture[str], names: list[str], row: tuple[object, ...], form: str) -> list[str]:
    """The cells of the printed row."""
    print_rows(names, [row], form)
    out = capsys.readouterr().out
    if form == "json":
        return [json.dumps(value) for value in json.loads(out, parse_constant=pytest.fail).values()]
    if form == "csv":
        return [*csv.reader(io.StringIO(out, newline=""))][1]
    return [cell.strip() for cell in out.splitlines()[3].strip("│").split("│")]


@pytest.mark.parametrize("form", ["table", "csv", "json"])
def test_columns_of_one_name_keep_their_values(form: str, capsys) -> None:
    cells = printed(capsys, ["path", "path", "path_2", "path"], ("a", "b", "c", "d"), form)
    assert [cell.strip('"') for cell in cells] == ["a", "b", "c", "d"]


def test_names_that_occur_twice_get_a_number_in_json(capsys) -> None:
    struct = Row("a", "a")(1, 2)
    print_rows(["path", "path", "path_2", "path"], [("a", "b", "c", [struct])], "json")
    assert json.loads(capsys.readouterr().out) == {
        "path": "a",
        "path_3": "b",
        "path_2": "c",
        "path_4": [{"a": 1, "a_2": 2}],
    }


def test_json_has_every_value_exactly(capsys) -> None:
    values = (
        *(bytearray(b"\xff"), "\\xff", float("nan"), float("inf"), float("-inf"), 0.1, -(2**63), Decimal("1.50")),
        *(None, True, dt.date(2020, 1, 1), [b"\x00", float("nan")]),
    )
    expected = ["FF", "\\xff", "NaN", "Infinity", "-Infinity", 0.1, -(2**63), "1.50"]
    expected += [None, True, "2020-01-01", ["00", "NaN"]]
    assert printed(capsys, [str(n) for n in range(len(values))], values, "json") == [*map(json.dumps, expected)]


@pytest.mark.parametrize("form", ["table", "csv", "json"])
def test_keys_of_maps_are_text(form: str, capsys) -> None:
    maps = (
        {dt.date(2020, 1, 1): 1},
        {Row(a=1, b=dt.date(2020, 1, 1)): [{b"\xff": 1}]},
        {True: {1.5: 1}, False: {float("nan"): 1}},
        {7: "x"},
    )
    assert [json.loads(cell) for cell in printed(capsys, ["a", "b", "c", "d"], maps, form)] == [
        {"2020-01-01": 1},
        {'{"a": 1, "b": "2020-01-01"}': [{"FF": 1}]},
        {"true": {"1.5": 1}, "false": {"NaN": 1}},
        {"7": "x"},
    ]


MISTAKES = {
    "a timestamp beyond Python's": (
        "SELECT timestamp_millis(253402300800000)",
        "a value cannot be printed (year 10000",
    ),
    "the last timestamp": ("SELECT timestamp_micros(9223372036854775807)", "a value cannot be printed (year 294247"),
    "the first timestamp": ("SELECT timestamp_micros(-9223372036854775808)", "a value cannot be printed (year -290308"),
    "a date beside an interval": (
        "SELECT make_dt_interval(106751991) * 1 AS i, make_date(99999, 1, 1)",
        "a value cannot be",
    ),
    "a date beyond Python's": ("SELECT date'-0001-01-01'", "a value cannot be printed (ordinal must be"),
    "nested": (
        f"SELECT {'(' * 3000}1{')' * 3000}",
        "the statement is nested too deeply (java.lang.StackOverflowError)",
    ),
    "raised": ("SELECT raise_error('No space left on device')", "[USER_RAISED_EXCEPTION] No space left on device"),
    "raised by rows": (
        "SELECT raise_error('Java heap space') FROM range(3)",
        "[USER_RAISED_EXCEPTION] Java heap space",
    ),
    "quoted": ("SELECT CAST('Too many open files' AS INT)", "[CAST_INVALID_INPUT] The value 'Too many open files'"),
    "quoted by a cause": ("SELECT rlike('a', '(MemoryError')", "[INVALID_PARAMETER_VALUE.PATTERN]"),
    "thrown as another error": (
        """SELECT from_json('{"a":"Input/output error"}', 'a INT', map('mode', 'FAILFAST'))""",
        "[MALFORMED_RECORD_IN_PARSING",
    ),
    "no type of Python's": ("SELECT INTERVAL '1' YEAR", "[NOT_IMPLEMENTED]"),
}


@pytest.mark.parametrize("kind", MISTAKES)
def test_a_mistake_in_a_query(kind: str, spark, tmp_path: Path, capsys) -> None:
    (tmp_path / "gold").mkdir()
    text, message = MISTAKES[kind]
    assert cli.main(["sql", text, "--engine", "spark", "--warehouse", str(tmp_path)]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith(f"mqreplay: query: {message}")


@pytest.mark.parametrize("form", ["table", "csv", "json"])
def test_keys_that_python_cannot_hold(form: str, spark, tmp_path: Path, capsys) -> None:
    (tmp_path / "gold").mkdir()
    query = (
        "SELECT map(array(1), 'x') AS a, 'y' AS a, map(named_struct('k', array(1)), 'z') AS b, array(map(array(2), 3))"
    )
    assert cli.main(["sql", query, "--engine", "spark", "--warehouse", str(tmp_path), "--format", form]) == 0
    out = capsys.readouterr().out.replace('""', '"')
    for text in ('{"[1]": "x"}', "y", '{"{[1]}": "z"}', "[{[2] -> 3}]"):
        assert text in out


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (lambda java: java.java.lang.OutOfMemoryError("Java heap space"), "memory is short"),
        (
            lambda java: java.org.apache.spark.SparkException(
                "Job aborted", java.java.io.IOException("No space left on device")
            ),
            "the disk is full",
        ),
    ],
)
def test_a_machine_that_fails_in_a_query(made, message: str, spark, tmp_path: Path, capsys, monkeypatch) -> None:
    from py4j.protocol import Py4JJavaError
    from pyspark.sql.classic.dataframe import DataFrame

    def fail(rows: object) -> None:
        raise Py4JJavaError("An error occurred while calling o1.collectToPython.\n", made(spark.sparkContext._jvm))

    (tmp_path / "gold").mkdir()
    monkeypatch.setattr(DataFrame, "collect", fail)
    assert cli.main(["sql", "SELECT 1", "--engine", "spark", "--warehouse", str(tmp_path)]) == 4
    assert capsys.readouterr().err.startswith(f"mqreplay: {message} (")


def test_a_python_worker_that_finds_the_disk_full(spark, tmp_path: Path, capsys, monkeypatch) -> None:
    def add_function(session: object) -> None:
        def full(number: int) -> int:
            raise OSError(28, "No space left on device")

        session.udf.register("full", full)

    (tmp_path / "gold").mkdir()
    monkeypatch.setattr("mqreplay.cli.query.register", add_function)
    assert cli.main(["sql", "SELECT full(1)", "--engine", "spark", "--warehouse", str(tmp_path)]) == 4
    assert capsys.readouterr().err.startswith("mqreplay: the disk is full (")


def test_a_finding_that_spans_midnight_has_both_days(capsys):
    finding = {"finding_id": "abcdef0123", "severity": "info", "kind": "broker_down", "summary": "It was down."}
    span = {"from_ts": "2026-11-21T23:59:30.998Z", "to_ts": "2026-11-22T00:10:00.000Z", "follows_from": None}
    print_outcome([Outcome("c", findings=[finding | span])], "nightly", "w")
    assert "2026-11-21 23:59:30 to 2026-11-22 00:10:00 UTC  abcdef01" in capsys.readouterr().out


def test_findings_and_expectations_that_are_not_shown_are_counted_with_the_command(capsys):
    finding = {"severity": "info", "kind": "broker_down", "summary": "It was down.", "follows_from": None}
    span = {"from_ts": "2026-11-21T02:00:00Z", "to_ts": "2026-11-21T02:10:00Z"}
    findings = [finding | span | {"finding_id": f"{n:016}"} for n in range(terminal.SHOWN_FINDINGS + 3)]
    failed = [FAILED | {"unexpected_count": 1, "unexpected_sample": None}] * (terminal.SHOWN_FINDINGS + 2)
    outcome = Outcome("my c", findings=findings, expectations=99, failed_expectations=failed)
    print_outcome([outcome], "nightly", "w")
    lines = capsys.readouterr().out.splitlines()
    assert "... and 3 more: mqreplay findings --cluster 'my c' --warehouse w" in lines
    assert (
        '  ... and 2 more: mqreplay sql "SELECT * FROM gold.validation_result WHERE NOT passed" --warehouse w' in lines
    )
    print_outcome([outcome, Outcome("b")], "nightly", "w")
    assert "All 43 findings: mqreplay findings --warehouse w" in capsys.readouterr().out.splitlines()
