"""`mqreplay findings` and `mqreplay tables`."""

from __future__ import annotations

import csv
import datetime as dt
import io
import json

import pytest

from made_warehouse import made_warehouse
from mqreplay.cli.command_line import main

AT = dt.datetime(2026, 11, 21, 2, tzinfo=dt.UTC)


def finding(name: str, hour: int, **differs: object) -> dict[str, object]:
    begin = AT + dt.timedelta(hours=hour)
    times = {"from_ts": begin, "to_ts": begin + dt.timedelta(minutes=30), "day": begin.date()}
    return (
        {"finding_id": name, "severity": "info", "follows_from": None, "summary": f"{name} happened.\x1b"}
        | times
        | differs
    )


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("warehouse")
    rows = [
        finding("late", 3, kind="clock_skew", consumer_group="g1", topic="t", broker_name="b"),
        finding("down", 1, kind="broker_down", severity="critical", broker_name="a"),
        finding("pull", 2, kind="failover_pull", severity="warning", follows_from="down", cluster="other"),
    ]
    made_warehouse(folder, {"gold.finding": rows, "bronze.step": [{}]})
    return str(folder)


@pytest.mark.parametrize(
    ("options", "ids"),
    [
        ([], ["down", "pull", "late"]),
        (["--severity", "warning"], ["down", "pull"]),
        (["--kind", "clock_skew", "--kind", "broker_down"], ["down", "late"]),
        (["--group", "g1"], ["late"]),
        (["--topic", "t", "--broker", "b"], ["late"]),
        (["--broker", "a", "--topic", "t"], []),
        (["--cluster", "other"], ["pull"]),
        (["--since", "2026-11-21T03:30"], ["down", "pull", "late"]),
        (["--since", "2026-11-21T03:31"], ["pull", "late"]),
        (["--until", "2026-11-21T05:00"], ["down", "pull"]),
        (["--since", "2026-11-21T05:31+01:00", "--until", "2026-11-22"], ["late"]),
    ],
)
def test_findings(root: str, capsys, options: list[str], ids: list[str]) -> None:
    assert main(["findings", "--warehouse", root, "--json", *options]) == 0
    assert [each["finding_id"] for each in json.loads(capsys.readouterr().out)["findings"]] == ids
    assert main(["findings", "--warehouse", root, "--format", "csv", *options]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [row["finding_id"] for row in rows] == ids
    assert main(["findings", "--warehouse", root, *options]) == 0
    out = capsys.readouterr().out
    assert [line.split()[-1] for line in out.splitlines() if " UTC  " in line] == ids
    assert "\x1b" not in out
    assert ("No findings." in out) == (not ids)
    assert ("Follows from down." in out) == ("pull" in ids)


def test_an_instant_that_is_none(root: str, capsys) -> None:
    assert main(["findings", "--warehouse", root, "--since", "yesterday"]) == 2
    assert capsys.readouterr().err == (
        "mqreplay: --since 'yesterday' is no instant; write it as 2026-11-21T02:30 or 2026-11-21\n"
    )


def test_tables(root: str, capsys) -> None:
    assert main(["tables", "--warehouse", root, "--format", "json"]) == 0
    step, found = (json.loads(line) for line in capsys.readouterr().out.splitlines())
    assert (step["table"], step["rows"], step["first_day"]) == ("bronze.step", 1, None)
    assert (found["table"], found["rows"], found["last_day"]) == ("gold.finding", 3, "2026-11-21")
    assert found["content"].startswith("One row is ")


def test_the_columns_of_a_table(root: str, capsys) -> None:
    assert main(["tables", "gold.finding", "--warehouse", root, "--format", "json"]) == 0
    rows = {row["column"]: row for row in map(json.loads, capsys.readouterr().out.splitlines())}
    assert rows["finding_id"]["key"] == "3"
    assert (rows["consumer_group"]["type"], rows["consumer_group"]["null"]) == ("STRING", "yes")
    assert all(row["comment"] for row in rows.values())
    assert main(["tables", "findings", "--warehouse", root]) == 2
    assert capsys.readouterr().err == "mqreplay: there is no table findings; did you mean gold.finding?\n"
