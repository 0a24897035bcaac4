"""`mqreplay advise` on the samples: each setting is proved by what whatif computes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mqreplay.cli.command_line import main


def advised(night: Any, capsys: pytest.CaptureFixture[str], group: str) -> dict[str, Any]:
    assert main(["advise", group, "--cluster", "DefaultCluster", "--warehouse", night.root, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def by_setting(found: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {each["supposition"]: each for each in found["advice"]}


def test_one_strategy_ends_a_conflict(night, capsys):
    found = advised(night, capsys, "mixalg-group")
    best = found["advice"][0]
    assert best["supposition"] == "strategy=AVG in mixalg-group"
    assert (len(best["removes"]), best["brings"], best["moved_max"]) == (3, [], 4)
    assert set(found["open"]).isdisjoint(best["removes"])
    assert set(found["open"]) | set(best["removes"]) == set(found["findings"])


def test_an_idle_consumer_needs_more_queues_or_fewer_consumers(night, capsys):
    found = by_setting(advised(night, capsys, "order-group"))
    assert set(found) == {
        "-1 consumer in order-group",
        "3 queues of order-topic on each broker",
        "4 queues of order-topic on each broker",
    }
    assert found["3 queues of order-topic on each broker"]["moved_max"] == 0


def test_no_setting_of_shares_helps_against_different_subscriptions(night, capsys):
    found = advised(night, capsys, "mixsub-group")
    assert found["advice"] == []
    assert found["open"] == found["findings"] != []


def test_the_text_names_the_price_and_what_is_left(night, capsys, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    assert main(["advise", "ship-circle-group", "--cluster", "DefaultCluster", "--warehouse", night.root]) == 0
    first, best, *others, last = capsys.readouterr().out.splitlines()
    assert first == "DefaultCluster: ship-circle-group, findings: 2"
    assert best == (
        "  4 queues of ship-topic on each broker: without idle_consumer 432008a1; 2 of 10 queues would move"
    )
    assert len(others) == 2
    assert last.startswith("  nothing was found against duplicate_delivery 42a25a8e: ")


def test_an_unknown_group(night, capsys):
    assert main(["advise", "order-grop", "--cluster", "DefaultCluster", "--warehouse", night.root]) == 2
    assert "did you mean order-group?" in capsys.readouterr().err


def test_a_group_without_rebalances(night, capsys):
    assert main(["advise", "meter-billing", "--cluster", "grid-cluster", "--warehouse", night.root]) == 0
    assert "nothing was found against" in capsys.readouterr().out
