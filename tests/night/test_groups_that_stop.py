"""Nights of 5.x in which groups of all kinds of clients stop: each is told or is a gap, and nobody else is."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

from mqreplay.answers.outcome import outcome_of
from mqreplay.lake.warehouse import Warehouse
from night.made_nights import judged_night
from tests_shared import rows_at


def judged(name: str, cluster: str) -> tuple[str, list[dict[str, Any]]]:
    """Return a night's warehouse and its findings, as commands have them."""
    root = judged_night(name).root
    return root, outcome_of(Warehouse(root), cluster).findings


def lags(findings) -> dict[tuple[str, str], dt.datetime]:
    return {
        (f["consumer_group"], f["topic"]): dt.datetime.fromisoformat(str(f["from_ts"])).replace(tzinfo=None)
        for f in findings
        if f["kind"] == "lag_grows"
    }


def test_groups_of_pop_and_grpc_that_stop():
    root, findings = judged("pop533-proxy", "pop-cluster")
    found = lags(findings)
    assert found.keys() == {("g-simple", "t-normal"), ("g-fifo", "t-fifo"), ("r-pop", "t-rem")}
    assert min(found.values()) > dt.datetime(2026, 11, 25, 4, 57, 30), "all groups worked until then"
    retried = {f["consumer_group"] for f in findings if f["kind"] == "retry_growth"}
    assert retried == {"g-push", "g-small", "r-pop", "r-cr0"}, "a retry topic of POP is of its group"
    statuses = rows_at(root, "gold.group_status")
    stopped = {(row["consumer_group"], row["topic"]) for row in statuses if row["status"] == "STOP"}
    assert stopped >= found.keys()
    assert not {row["consumer_group"] for row in statuses if row["consumer_group"].startswith("CID_RMQ_SYS_")}


@pytest.mark.long
def test_members_that_report_no_queues_and_a_group_whose_offsets_are_with_its_clients():
    root, findings = judged("kinds550", "kinds-cluster")
    assert lags(findings).keys() == {("old", "t-b"), ("dup", "t-b"), ("lp-assign", "t-a")}
    stuck = {f["consumer_group"] for f in findings if f["kind"] == "stuck_queue"}
    assert stuck == {"ord", "unit", "NS1%nsg", "lp-sub"}
    gaps = rows_at(root, "gold.replay_gap")
    assert {g["consumer_group"] for g in gaps if g["decision"] == "finding lag_grows"} == {"bc"}
