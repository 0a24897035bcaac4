"""Recorded nights of RocketMQ 5 with POP, proxies and a controller: each fault is found, and nothing else alarms."""

from __future__ import annotations

import json

import pytest

from mqreplay.cli.command_line import main
from night.finding_sums import contradictions
from night.made_nights import findings_of_fault, judged_night, truth_of, unmatched

NIGHTS = ("pop533-proxy", "kinds550", "controller550", "rocks550", "unregistered533")
FAULTS = [(name, number) for name in NIGHTS for number in range(len(truth_of(name)["faults"]))]
NAMES = [f"{name}-{number}-{truth_of(name)['faults'][number]['fault']}" for name, number in FAULTS]


@pytest.mark.parametrize(("name", "number"), FAULTS, ids=NAMES)
def test_a_fault_is_found_with_its_place_cause_and_time(name, number):
    fault = truth_of(name)["faults"][number]
    findings = judged_night(name).findings
    assert len(findings_of_fault(fault, findings)) == 1, unmatched(fault, findings)


@pytest.mark.parametrize("name", NIGHTS)
def test_nothing_else_is_an_alarm(name):
    findings = judged_night(name).findings
    explained = {f["finding_id"] for fault in truth_of(name)["faults"] for f in findings_of_fault(fault, findings)}
    assert [f["summary"] for f in judged_night(name).alarms() if f["finding_id"] not in explained] == []


@pytest.mark.parametrize("name", NIGHTS)
def test_no_decision_differs(name):
    counted = judged_night(name).table("gold.judgement")
    assert counted.filter(judgement="differ").to_dicts() == []


@pytest.mark.parametrize("name", NIGHTS)
def test_the_findings_of_a_night_add_up(name):
    assert contradictions(judged_night(name).findings, judged_night(name).table) == []


def test_lists_of_polls_say_how_many_consumers_keep_up(capsys):
    """Nobody logged the rebalances of this night; both members of NS1%nsg hung."""
    assert main(["advise", "NS1%nsg", "--warehouse", judged_night("kinds550").root, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (len(found["findings"]), found["advice"]) == (2, [])
    for backlog in found["backlogs"].values():
        assert (backlog["members"], backlog["least"]) == (2, {"members": 2, "queues": None})
        assert backlog["finished_by_a_member"] < 0.1 < backlog["fastest_minute_of_a_member"]


@pytest.mark.parametrize(
    ("name", "group"),
    [("kinds550", "old"), ("pop533-proxy", "g-simple")],  # it pulls queues of its own choice; it is behind a proxy
)
def test_a_group_whose_lists_nobody_recorded(capsys, name, group):
    assert main(["advise", group, "--warehouse", judged_night(name).root, "--json"]) == 0
    (note,) = json.loads(capsys.readouterr().out)["notes"]
    assert note["lines"] == ["the lists that its members saw were not recorded"]
    assert note["next"].startswith(f"Check who is connected: `mqadmin consumerConnection -g {group} -n ")
