"""Recorded nights with known faults: each is found with its cause and time, nothing else alarms, and numbers add up."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from night.finding_sums import contradictions
from night.made_nights import JudgedNight, findings_of_fault, judge_archive, truth_of

QUIET: tuple[str, ...] = ()
FAULTY = ("ratios-5.3.3",)
FAULTS = [(name, number) for name in FAULTY for number in range(len(truth_of(name)["faults"]))]
OTHERS = ("quiet-5.3.3", "resets-5.3.3", "polled-5.3.3")


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], JudgedNight]:
    """Return the judged night of an archive; each is judged once. Tests must not write to it."""

    @cache
    def judge(name: str) -> JudgedNight:
        return judge_archive(name, Path(tmp_path_factory.mktemp(name)))

    return judge


@pytest.mark.parametrize(("name", "number"), FAULTS, ids=[f"{name}-{number}" for name, number in FAULTS])
def test_a_fault_is_found_once_with_its_place_cause_and_time(judged, name, number):
    fault = truth_of(name)["faults"][number]
    findings = judged(name).findings
    assert len(findings_of_fault(fault, findings)) == 1, [f["summary"] for f in findings]


@pytest.mark.parametrize("name", FAULTY)
def test_nothing_else_is_an_alarm(judged, name):
    faults = truth_of(name)["faults"]
    explained = [f["finding_id"] for fault in faults for f in findings_of_fault(fault, judged(name).findings)]
    assert [f["summary"] for f in judged(name).alarms() if f["finding_id"] not in explained] == []


@pytest.mark.parametrize("name", QUIET)
def test_a_quiet_night_has_no_alarm(judged, name):
    assert truth_of(name)["faults"] == []
    assert [f["summary"] for f in judged(name).alarms()] == []


@pytest.mark.parametrize("name", [*FAULTY, *QUIET, *OTHERS])
def test_the_findings_of_a_night_add_up(judged, name):
    night = judged(name)
    assert contradictions(night.findings, night.table) == []


@pytest.mark.parametrize("cluster", ["DefaultCluster", "grid-cluster"])
def test_the_findings_of_the_samples_add_up(night, cluster):
    findings = night.table("gold.finding", cluster).to_dicts()
    assert contradictions(findings, lambda name: night.table(name, cluster)) == []
