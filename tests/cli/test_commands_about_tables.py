"""`mqreplay tables`."""

from __future__ import annotations

import datetime as dt
import json

import pytest

from made_warehouse import made_warehouse
from mqreplay.cli.command_line import main

AT = dt.datetime(2026, 11, 21, 2, tzinfo=dt.UTC)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("warehouse")
    days = [{"finding_id": str(hour), "day": (AT + dt.timedelta(hours=hour)).date()} for hour in (1, 2, 3)]
    made_warehouse(folder, {"gold.finding": days, "bronze.step": [{}]})
    return str(folder)


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
