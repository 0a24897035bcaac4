"""`mqreplay whatif` on the samples: texts, JSON and refused options."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mqreplay.cli.command_line import main
from mqreplay.machine.places import conf_dir

CLUSTER = ["--cluster", "DefaultCluster"]


@pytest.fixture(autouse=True)
def _terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("NO_COLOR", "1")


def whatif(root: str, *options: str) -> int:
    conf = ["--conf", str(conf_dir() / "sample.toml")]
    return main(["whatif", *options, *CLUSTER, "--warehouse", root, *conf])


def shown(night: Any, capsys: pytest.CaptureFixture[str], *options: str) -> str:
    assert whatif(night.root, *options) == 0
    return capsys.readouterr().out


def as_json(night: Any, capsys: pytest.CaptureFixture[str], *options: str) -> dict[str, Any]:
    return json.loads(shown(night, capsys, *options, "--json"))


def test_a_strategy_as_text(night, capsys):
    assert shown(night, capsys, "--set", "strategy=AVG_BY_CIRCLE", "--group", "order-group") == (
        "DefaultCluster\n"
        "  order-group: 381 rebalances decided again: 258 unchanged, 123 changed\n"
        "    2 of 6 queues would move\n"
        "    queues of each member before: 10.20.0.11@7316#2544401008483 3, 10.20.0.12@7333#2579951863447 3\n"
        "    queues of each member after:  10.20.0.11@7316#2544401008483 3, 10.20.0.12@7333#2579951863447 3\n"
        "    order-topic broker-a 1: 10.20.0.11@7316#2544401008483 to 10.20.0.12@7333#2579951863447\n"
        "    order-topic broker-b 0: 10.20.0.12@7333#2579951863447 to 10.20.0.11@7316#2544401008483\n"
        f"Page: {night.root}/report/DefaultCluster.html#group-order-group\n"
    )


def test_several_suppositions_as_json(night, capsys):
    options = ("--set", "ratio=60", "--broker", "broker-a", "--consumers", "+1", "--group", "order-group")
    found = as_json(night, capsys, *options)
    assert found["supposed"] == ["accessMessageInMemoryMaxRatio=60 on broker-a", "+1 consumer in order-group"]
    assert {row["broker_name"] for row in found["pulls"]} == {"broker-a"}
    assert sum(row["to_slave_max"] for row in found["pulls"]) == 0
    assert {row["consumer_group"] for row in found["owners"]} == {"order-group"}
    assert {row["outcome"] for row in found["decided"]} == {"unchanged", "changed"}


def test_reads_from_slaves_disabled(night, capsys):
    out = shown(night, capsys, "--set", "slaveReadEnable=false")
    assert "bulk-group bulk-topic on broker-a: sent to a slave 3,688 times, would be 0 times" in out


def test_a_strategy_that_needs_settings_is_undetermined(night, capsys):
    out = shown(night, capsys, "--set", "strategy=MACHINE_ROOM_NEARBY", "--group", "order-group")
    assert 'undetermined: not judged: [strategies.groups."order-group"] nearby_strategy is not set' in out
    assert "of 6 it is not known" in out


def test_a_strategy_with_settings(night, capsys):
    out = shown(night, capsys, "--set", "strategy=MACHINE_ROOM_NEARBY-AVG_BY_CIRCLE", "--group", "pay-room-group")
    assert "undetermined" not in out


def test_a_lost_master(night, capsys):
    options = ("--lose-master", "broker-a", "--at", "02:51:29")
    assert "at most, with what clients have not committed yet: " in shown(night, capsys, *options)
    lost = as_json(night, capsys, *options)["lost_master"]
    assert lost["slaves"] == [1]
    assert lost["redelivered_max"]["ship-circle-group"] == 3


def test_a_reset(night, capsys):
    found = as_json(night, capsys, "--reset-to", "02:45", "--group", "pay-group")["reset"]
    assert {row["topic"] for row in found} == {"pay-topic", "refund-topic"}
    assert all(0 <= row["again_min"] <= row["again_max"] for row in found)
    assert "messages would be delivered again" in shown(night, capsys, "--reset-to", "02:45", "--group", "pay-group")


def test_a_backlog(night, capsys):
    found = as_json(night, capsys, "--drain", "--group", "bulk-group", "--at", "02:45")
    (row,) = found["drain"]
    assert row["lag"] > 10_000
    later = as_json(night, capsys, "--drain", "--group", "bulk-group", "--at", "02:45:30")["drain"]
    assert later[0]["lag"] == 0  # gone within 30 s, while nothing more was sent
    assert 0 < row["seconds_min"] <= 30
    assert row["seconds_max"] is None or row["seconds_max"] > 30
    assert "caught up" in found["assumption"]
    assert "84 messages wait, gone in" in shown(night, capsys, "--drain", "--group", "stuck-group", "--at", "02:42")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ("", "nothing is supposed"),
        ("--consumers +1", "--consumers needs --group"),
        ("--consumers two --group order-group", "--consumers 'two' is no whole number; write it as +2 or -1"),
        ("--queues 8", "--queues needs --topic"),
        ("--queues 0 --topic order-topic", "a topic has 1 queue or more"),
        ("--reset-to 02:45", "--reset-to needs --group"),
        ("--drain", "--drain needs --group"),
        ("--set ratio", "has no value"),
        ("--set ratio=0", "percent from 1 to 100"),
        ("--set slaveReadEnable=maybe", "write true or false"),
        ("--set flushDiskType=SYNC", "no decision depends on it"),
        ("--set strategy=AVG", "needs --group"),
        ("--set strategy=AVG --group order-group --broker broker-a", "--broker goes with --set ratio"),
        ("--set ratio=60 --group order-group", "--group goes with"),
        ("--consumers +1 --group order-group --topic order-topic", "--topic goes with --queues"),
        ("--consumers +1 --group ordergroup", "did you mean order-group?"),
        ("--queues 8 --topic order-topik", "did you mean order-topic?"),
        ("--set ratio=60 --broker broker-x", "did you mean broker-"),
        ("--lose-master nothing-like-it", "known are broker-a, broker-b"),
        ("--consumers +1 --group order-group --at 05:00", "outside of the recording"),
        ("--consumers +1 --group order-group --day 2026-11-20", "has not been judged"),
        ("--consumers +1 --group order-group --day today", "is no day"),
    ],
)
def test_options_that_do_not_fit(options, says, night, capsys):
    assert whatif(night.root, *options.split()) == 2
    assert says in capsys.readouterr().err
