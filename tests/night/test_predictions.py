"""Stored predictions, and whether what came is what they said."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from mqreplay.cli.command_line import main
from mqreplay.lake.warehouse import Warehouse


@pytest.fixture(scope="module")
def root(night: Any, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return a copy of the samples' warehouse that tests may write to."""
    made = tmp_path_factory.mktemp("predictions") / "warehouse"
    shutil.copytree(Path(night.root).resolve(), made)
    return str(made)


def command(root: str, capsys: pytest.CaptureFixture[str], *options: str) -> dict[str, Any]:
    assert main(["whatif", *options, "--warehouse", root, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def saved(root: str, capsys: pytest.CaptureFixture[str], *options: str) -> str:
    found = command(root, capsys, *options, "--cluster", "DefaultCluster", "--save")
    return str(found["prediction_id"])


def test_the_members_of_the_night_come_as_predicted(root, capsys):
    found = command(root, capsys, "check", saved(root, capsys, "--consumers", "+0", "--group", "order-group"))
    assert found["judgement"] == "as predicted"
    assert {row["judgement"] for row in found["rows"]} == {"as predicted"}
    assert {row["measure"] for row in found["rows"]} == {"members", "owner"}


def test_a_bad_prediction_is_shown_as_one(root, capsys):
    stored = saved(root, capsys, "--set", "strategy=AVG_BY_CIRCLE", "--group", "order-group")
    found = command(root, capsys, "check", stored)
    assert found["judgement"] == "other"
    assert [row["queue_id"] for row in found["rows"] if row["judgement"] == "other"] == [1, 0]
    assert main(["whatif", "check", stored, "--warehouse", root]) == 0
    assert "owner of order-group order-topic broker-a 1: predicted 2 to 2, came 1" in capsys.readouterr().out


def test_another_number_of_members_is_another_case(root, capsys):
    found = command(root, capsys, "check", saved(root, capsys, "--consumers", "+2", "--group", "order-group"))
    assert found["judgement"] == "undetermined"


def test_a_ratio_that_the_broker_did_not_get(root, capsys):
    found = command(root, capsys, "check", saved(root, capsys, "--set", "ratio=60", "--broker", "broker-a"))
    assert found["judgement"] == "other"
    bad = {row["consumer_group"]: row for row in found["rows"] if row["judgement"] == "other"}
    assert (bad["bulk-group"]["after_max"], bad["bulk-group"]["came"] > 600_000) == (0, True)


def test_losses_and_resets_are_stored(root, capsys):
    saved(root, capsys, "--lose-master", "broker-a", "--at", "02:51:29")
    saved(root, capsys, "--reset-to", "02:45", "--group", "pay-group")
    rows = Warehouse(root).read("gold.prediction").collect()
    assert {"redelivered", "again"} <= set(rows["measure"])
    assert (rows["after_min"] <= rows["after_max"]).all()


def test_the_same_prediction_is_stored_once(root, capsys):
    options = ("--consumers", "+0", "--group", "order-group")
    assert saved(root, capsys, *options) == saved(root, capsys, *options)
    rows = Warehouse(root).read("gold.prediction").collect()
    assert rows.select("prediction_id", "row").is_duplicated().sum() == 0


@pytest.mark.parametrize(("words", "says"), [("check ffff", "has no prediction ffff"), ("chek ffff", "is no option")])
def test_what_is_not_stored(words, says, root, capsys):
    assert main(["whatif", *words.split(), "--warehouse", root]) == 2
    assert says in capsys.readouterr().err
