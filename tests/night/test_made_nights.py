"""Recorded nights with known faults: each is found with its cause and time, nothing else alarms, and numbers add up."""

from __future__ import annotations

import json

import pytest

from mqreplay.cli.command_line import main
from night.finding_sums import contradictions, message_count
from night.made_nights import findings_of_fault, judged_night, truth_of, unmatched


def is_of_offsets(name: str, number: int) -> bool:
    """Return whether a fault of a night changed offsets."""
    return truth_of(name)["faults"][number]["fault"] in ("reset", "offset_set")


def names(faults: list[tuple[str, int]]) -> list[str]:
    """Return a name for each fault: its night, its number there and what it is."""
    return [f"{name}-{number}-{truth_of(name)['faults'][number]['fault']}" for name, number in faults]


QUIET = ("quiet-4.9.7", "quiet-joins-5.3.3")
FAULTY = (
    "ratios-5.3.3",
    "outages-5.3.3",
    "resets-4.9.7",
    "resets-circle-4.9.7",
    "conflicts-5.3.3",
    "polled-resets-5.3.3",
)
FAULTS = [(name, number) for name in FAULTY for number in range(len(truth_of(name)["faults"]))]
REDELIVERING = [(name, number) for name, number in FAULTS if "again" in truth_of(name)["faults"][number]]
OFFSET_KINDS = ["offset_reset", "offset_rewind", "offset_jump", "offset_beyond_max"]
IN_SNAPSHOTS = [number for name, number in FAULTS if name == "resets-4.9.7" and is_of_offsets(name, number)]
OTHERS = ("quiet-5.3.3", "resets-5.3.3", "polled-5.3.3")


@pytest.mark.parametrize(("name", "number"), FAULTS, ids=names(FAULTS))
def test_a_fault_is_found_once_with_its_place_cause_and_time(name, number):
    fault = truth_of(name)["faults"][number]
    findings = judged_night(name).findings
    assert len(findings_of_fault(fault, findings)) == 1, unmatched(fault, findings)


@pytest.mark.parametrize(("name", "number"), REDELIVERING, ids=names(REDELIVERING))
def test_what_a_fault_delivered_again_follows_from_it(name, number):
    fault = truth_of(name)["faults"][number]
    findings = judged_night(name).findings
    ids = {f["finding_id"] for f in findings_of_fault(fault, findings)}
    effects = [f for f in findings if f["kind"] == "duplicate_delivery" and f["follows_from"] in ids]
    assert sum(message_count(f) for f in effects) == fault["again"], [f["summary"] for f in findings]


@pytest.mark.parametrize("name", FAULTY)
def test_nothing_else_is_an_alarm(name):
    faults = truth_of(name)["faults"]
    explained = [f["finding_id"] for fault in faults for f in findings_of_fault(fault, judged_night(name).findings)]
    assert [f["summary"] for f in judged_night(name).alarms() if f["finding_id"] not in explained] == []


def test_groups_that_do_not_lag_read_from_the_slave_because_of_its_setting():
    findings = judged_night("ratios-5.3.3").findings
    ratio = [fault for fault in truth_of("ratios-5.3.3")["faults"] if fault["fault"] == "slave_ratio"]
    ids = {f["finding_id"] for fault in ratio for f in findings_of_fault(fault, findings)}
    read = [f for f in findings if f["kind"] == "slave_pull" and f["finding_id"] not in ids]
    assert {f["consumer_group"] for f in read if f["follows_from"] not in ids} == {"yard-scan"}


def test_more_queues_and_consumers_would_have_kept_up_with_one_hot_queue(capsys):
    """yard-scan read one queue from disk, more slowly than messages arrived, with one member."""
    assert main(["advise", "yard-scan", "--warehouse", judged_night("ratios-5.3.3").root, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    (advice,) = found["advice"]
    assert advice["supposition"] == "+2 consumers in yard-scan, 3 queues of hull-scan on each broker"
    assert (advice["new"], advice["brings"]) == (2, [])
    (key,) = advice["removes"]
    backlog = found["backlogs"][key]
    assert backlog["finished_by_a_member"] < backlog["fastest_minute_of_a_member"] < backlog["arrived"]
    assert (backlog["least"], backlog["most"]) == ({"members": 2, "queues": 2}, {"members": 3, "queues": 3})
    catching_up = next(f for f in judged_night("ratios-5.3.3").findings if f["finding_id"] == key)
    assert "338 messages" in catching_up["summary"]
    seconds = (catching_up["to_ts"] - catching_up["from_ts"]).total_seconds()
    assert backlog["finished_by_a_member"] == pytest.approx(338 / seconds, rel=0.05)


def test_a_group_with_two_strategies_may_go_back_to_the_one_it_had(capsys):
    """rota had AVG before one member came with AVG_BY_CIRCLE. With one consumer fewer, nobody would own some queues."""
    assert main(["advise", "rota", "--warehouse", judged_night("conflicts-5.3.3").root, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["advice"]
    first, second, *_, last = found
    assert [each["supposition"] for each in (first, second)] == [
        "strategy=AVG in rota",
        "strategy=AVG_BY_CIRCLE in rota",
    ]
    assert (len(first["removes"]), first["moved_max"]) == (3, 0)
    assert [each["brings"] for each in found] == [*[[]] * (len(found) - 1), ["orphan_queue"]]
    assert last["supposition"] == "-1 consumer in rota"
    kinds = {row["finding_id"]: row["kind"] for row in judged_night("conflicts-5.3.3").findings}
    # An orphan_queue that it removes at one time and raises at another is no gain.
    assert [kinds[key] for key in last["removes"]] == ["double_owned_queue"]


@pytest.mark.parametrize("number", IN_SNAPSHOTS)
def test_snapshots_alone_show_each_change_of_offsets(number):
    fault = truth_of("resets-4.9.7")["faults"][number]
    alone = {"kinds": OFFSET_KINDS, "words": [], "severity": "warning"}
    place = {name: fault["finding"][name] for name in ("consumer_group", "topic")}
    findings = judged_night("resets-4.9.7", "snapshots/").findings
    assert findings_of_fault(fault | {"finding": alone | place}, findings), [f["summary"] for f in findings]


def test_snapshots_alone_make_nothing_up():
    """No queue of the night has more than a few hundred messages, though one offset was set to 999,999."""
    night = judged_night("resets-4.9.7", "snapshots/")
    assert {f["consumer_group"] for f in night.alarms()} == {"redirect", "parcel-archive"}
    assert max(message_count(f) for f in night.findings if f["kind"] == "offset_rewind") < 1000
    assert contradictions(night.findings, night.table) == []


@pytest.mark.parametrize("name", QUIET)
def test_a_quiet_night_has_no_alarm(name):
    assert truth_of(name)["faults"] == []
    assert [f["summary"] for f in judged_night(name).alarms()] == []


@pytest.mark.first_case
@pytest.mark.parametrize("name", [*FAULTY, *QUIET, *OTHERS])
def test_the_findings_of_a_night_add_up(name):
    night = judged_night(name)
    assert contradictions(night.findings, night.table) == []


@pytest.mark.parametrize("cluster", ["DefaultCluster", "grid-cluster"])
def test_the_findings_of_the_samples_add_up(night, cluster):
    findings = night.table("gold.finding", cluster).to_dicts()
    assert contradictions(findings, lambda name: night.table(name, cluster)) == []
