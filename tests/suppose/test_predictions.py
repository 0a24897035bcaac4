"""Stored predictions, and whether what came is what they said."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from mqreplay.cli.command_line import main
from mqreplay.lake.scratch import scratch
from mqreplay.lake.warehouse import Warehouse
from night.cut import cut
from tests_shared import SAMPLE


@pytest.fixture(scope="module")
def root(night: Any, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return a copy of the samples' warehouse that tests may write to."""
    made = tmp_path_factory.mktemp("predictions") / "warehouse"
    shutil.copytree(Path(night.root).resolve(), made)
    return str(made)


def command(root: str, capsys: pytest.CaptureFixture[str], *options: str, status: int = 0) -> dict[str, Any]:
    assert main(["whatif", *options, "--warehouse", root, "--json"]) == status
    return json.loads(capsys.readouterr().out)


def saved(root: str, capsys: pytest.CaptureFixture[str], *options: str) -> str:
    found = command(root, capsys, *options, "--cluster", "DefaultCluster", "--save")
    return str(found["prediction_id"])


def judgements(found: dict[str, Any]) -> Counter[str]:
    return Counter(row["judgement"] for row in found["rows"])


def test_the_members_of_the_night_come_as_predicted(root, capsys):
    found = command(root, capsys, "check", saved(root, capsys, "--consumers", "+0", "--group", "order-group"))
    assert found["answer"] == "held"
    assert judgements(found) == {"within": 8}
    assert {row["measure"] for row in found["rows"]} == {"members", "owner"}


def test_a_bad_prediction_is_shown_as_one(root, capsys):
    stored = saved(root, capsys, "--set", "strategy=AVG_BY_CIRCLE", "--group", "order-group")
    found = command(root, capsys, "check", stored, status=1)
    assert found["answer"] == "failed"
    assert [row["queue_id"] for row in found["rows"] if row["judgement"] == "outside"] == [1, 0]
    assert main(["whatif", "check", stored, "--warehouse", root]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert "  outside      owner of order-group order-topic broker-a 1: predicted member 2, came member 1" in lines
    assert lines[-2] == "  6 within, 2 outside, 0 undetermined: the prediction failed"
    assert lines[-1] == f"Page: {root}/report/DefaultCluster.html#group-order-group"


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ("--consumers +2 --group order-group", "another case: the group had 2 members, not 4"),
        ("--queues 4 --topic order-topic", "another case: the topic had 4 queues, not 8"),
        ("--queues 1 --topic grow-topic", "another case: the topic had 4 queues, not 2"),
    ],
)
def test_other_members_or_queues_are_another_case(options, reason, root, capsys):
    found = command(root, capsys, "check", saved(root, capsys, *options.split()))
    assert found["answer"] == "undetermined"
    assert judgements(found).keys() == {"undetermined"}
    assert reason in {row["reason"] for row in found["rows"]}


def test_a_ratio_that_the_broker_did_not_get(root, capsys):
    stored = saved(root, capsys, "--set", "ratio=60", "--broker", "broker-a")
    found = command(root, capsys, "check", stored, status=1)
    bad = {row["consumer_group"]: row for row in found["rows"] if row["judgement"] == "outside"}
    assert (bad["bulk-group"]["after_max"], bad["bulk-group"]["came"] > 600_000) == (0, True)


def test_what_is_not_compared_is_undetermined(root, capsys):
    found = command(root, capsys, "check", saved(root, capsys, "--reset-to", "02:45", "--group", "pay-group"))
    assert found["answer"] == "undetermined"
    assert {row["consumer_group"] for row in found["rows"]} == {"pay-group"}
    assert {row["reason"][:30] for row in found["rows"]} == {"what a reset delivered again i"}


# Seconds of orders-4.9.7 in which order-group has two members.
BEGAN_MS, END_MS = 1795228767352 + 300_000, 1795228767352 + 400_000


@pytest.fixture(scope="module")
def later(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a recording of the cluster with one group."""
    folder = tmp_path_factory.mktemp("later") / "recording"
    return cut(SAMPLE / "orders-4.9.7", folder, {"order-group"}, BEGAN_MS, END_MS)


@pytest.mark.long
def test_a_bad_prediction_fails_on_a_later_recording(later, root, capsys):
    """The page docs/what_if.md has one that holds."""
    stored = saved(root, capsys, "--set", "strategy=AVG_BY_CIRCLE", "--group", "order-group")
    found = command(root, capsys, "check", stored, "--recording", str(later), status=1)
    assert judgements(found) == {"outside": 2, "within": 6}
    assert not list(scratch().folder.glob("later-*"))


def test_a_recording_of_another_cluster(later, root, tmp_path, capsys):
    other = cut(later, tmp_path / "other")
    brokers = json.loads((other / "brokers.json").read_text(encoding="utf-8"))
    (other / "brokers.json").write_text(json.dumps(brokers | {"cluster": "west"}), encoding="utf-8")
    stored = saved(root, capsys, "--consumers", "+0", "--group", "order-group")
    assert main(["whatif", "check", stored, "--recording", str(other), "--warehouse", root]) == 2
    assert "other is of cluster west; the prediction is of DefaultCluster" in capsys.readouterr().err


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


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("check ffff", "has no prediction ffff"),
        ("chek ffff", "is no option"),
        ("--recording later --drain --group g", "--recording goes with whatif check"),
        ("check ffff --set ratio=60", "whatif check supposes nothing"),
    ],
)
def test_what_is_not_stored(words, says, root, capsys):
    assert main(["whatif", *words.split(), "--warehouse", root]) == 2
    assert says in capsys.readouterr().err
