"""Nights with refusals, a full disk, stopped slaves, slow and failing listeners, restarts: found by all evidence, and
those that polls show by `mqreplay record` alone. Nothing else alarms, and no decision differs.
"""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from night.made_nights import (
    JudgedNight,
    findings_of_fault,
    judged_night,
    truth_of,
    unmatched,
)

NIGHTS = ("refusals-4.9.7", "refusals-5.3.3", "consumers-4.9.7", "consumers-5.3.3")


def faults(key: str) -> list[tuple[str, int]]:
    """Return the night and number of each fault that has a finding by all evidence, or ``by_record``."""
    return [(name, n) for name in NIGHTS for n, fault in enumerate(truth_of(name)["faults"]) if key in fault]


def named(cases: list[tuple[str, int]]) -> list[str]:
    return [f"{name}-{number}-{truth_of(name)['faults'][number]['fault']}" for name, number in cases]


def expected(name: str, number: int, key: str) -> dict[str, Any]:
    """Return a fault with the finding that it must give."""
    fault: dict[str, Any] = truth_of(name)["faults"][number]
    return fault | {"finding": fault[key]}


def polled(name: str) -> JudgedNight:
    """Return the judged night of what `mqreplay record` wrote over the network, without stores, packets and logs."""
    return judged_night(name, frozenset(truth_of(name)["of_record"]))


@pytest.mark.parametrize(("name", "number"), faults("finding"), ids=named(faults("finding")))
def test_a_fault_is_found(name: str, number: int) -> None:
    fault, findings = expected(name, number, "finding"), judged_night(name).findings
    assert len(findings_of_fault(fault, findings)) == 1, unmatched(fault, findings)


@pytest.mark.parametrize(("name", "number"), faults("by_record"), ids=named(faults("by_record")))
@pytest.mark.first_case
def test_polls_show_a_fault(name: str, number: int) -> None:
    fault, findings = expected(name, number, "by_record"), polled(name).findings
    assert findings_of_fault(fault, findings), unmatched(fault, findings)


@pytest.mark.parametrize("name", NIGHTS)
def test_nothing_else_is_an_alarm_and_nothing_differs(name: str) -> None:
    night = judged_night(name)
    explained = {
        finding["finding_id"]
        for _, number in [each for each in faults("finding") if each[0] == name]
        for finding in findings_of_fault(expected(name, number, "finding"), night.findings)
    }
    assert [f["summary"] for f in night.alarms() if f["finding_id"] not in explained] == []
    differing = night.table("gold.judgement").filter(judgement="differ")
    assert differing.rows() == []


@pytest.mark.parametrize("name", NIGHTS)
def test_few_sends_of_four_threads_are_undetermined(name: str) -> None:
    """Without the threads a fifth of consumers' nights, and more of the others: see send_outcomes.py."""
    of_sends = judged_night(name).table("gold.judgement").filter(decision="gold.send_attempt")
    counts = dict(of_sends.group_by("judgement").agg(pl.col("decisions").sum()).iter_rows())
    assert counts["undetermined"] < 0.06 * sum(counts.values())
    assert counts["agree"] > 3000
