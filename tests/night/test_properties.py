"""Findings do not depend on the form of the recording: order, repetition, a wrong clock, missing evidence."""

from __future__ import annotations

import datetime as dt
from collections import Counter

import pytest

from conftest import SAMPLE
from mqreplay.machine.places import conf_dir
from mqreplay.settings import load_settings
from night.cut import cut, shifted
from night.later import midnight_after, moved
from tests_shared import rows_at, run

pytestmark = pytest.mark.long  # each is a night of its own
JUDGED = ("allocation", "pull_route", "slave_suggestion", "listed_route", "rebalance_step")
GROUPS = {"reset-group", "mixalg-group", "crash-group", "pay-group"}
BEGAN = 1795228767352  # of the recording; the cut has both resets, the offset past the end, two strategies, the kill -9
FROM, TO = BEGAN + 290_000, BEGAN + 715_000
CLIENT = "10.20.10.1@7316#2543692467679"  # of reset-group
HOUR = 3_600_000


@pytest.fixture(scope="module")
def judged(tmp_path_factory):
    """Runs a cut of the night; gives its tables as rows."""

    def judge(midnight_s=None, **told):
        folder = tmp_path_factory.mktemp("cut")
        recording = cut(SAMPLE / "orders-4.9.7", folder / "recording", GROUPS, FROM, TO, **told)
        if midnight_s is not None:
            by_ms, _ = midnight_after(recording, midnight_s)
            recording = moved(recording, folder / "moved", by_ms)
        root = str(folder / "warehouse")
        settings = load_settings(str(conf_dir() / "sample.toml"))
        run("ingest", root, settings, lambda what: None, recordings=[str(recording)])
        run("replay", root, settings, lambda what: None)
        tables = ("finding", *JUDGED, "replay_gap", "offset_continuity")
        return {name: rows_at(root, f"gold.{name}") for name in tables}

    return judge


@pytest.fixture(scope="module")
def plain(judged):
    return judged()


def places(findings):
    findings = list(findings)
    kinds = {f["finding_id"]: f["kind"] for f in findings}
    return Counter(
        (f["kind"], f["severity"], f["consumer_group"], f["broker_name"], kinds.get(f["follows_from"]))
        for f in findings
    )


def judgements(night):
    return {t: Counter(row["judgement"] for row in night[t]) for t in JUDGED}


def test_the_cut_has_what_it_was_cut_for(plain):
    told = {f["kind"] for f in plain["finding"] if f["severity"] != "info"}
    assert {"offset_reset", "offset_beyond_max", "strategy_conflict", "consumer_lost"} <= told
    assert not [t for t, counts in judgements(plain).items() if counts["differ"]]


def test_neither_order_nor_repetition_of_lines_matters(judged, plain):
    night = judged(shuffled=True)
    assert places(night["finding"]) == places(plain["finding"])
    times = [sorted((f["kind"], f["from_ts"], f["to_ts"]) for f in n["finding"]) for n in (night, plain)]
    assert times[0] == times[1]
    assert not [t for t, counts in judgements(night).items() if counts["differ"]]


@pytest.mark.parametrize(
    ("by_ms", "shuffled"),
    [(HOUR, True), (HOUR, False), (-HOUR, False)],
)
def test_a_clock_that_is_off_is_told_and_nothing_else_changes(judged, plain, by_ms, shuffled):
    # The first run also has its lines out of order and told twice.
    night = judged(change=shifted(CLIENT, by_ms), shuffled=shuffled)
    skews = [f for f in night["finding"] if f["kind"] == "clock_skew"]
    assert [f["client_id"] for f in skews] == [CLIENT]
    assert " s ahead" in skews[0]["summary"] if by_ms > 0 else " s behind" in skews[0]["summary"]
    others = [f for f in night["finding"] if f["kind"] != "clock_skew"]
    loud = [[f for f in found if f["severity"] != "info"] for found in (others, plain["finding"])]
    assert places(loud[0]) == places(loud[1])
    near = dt.timedelta(seconds=15)
    for mine, theirs in zip(*[sorted(found, key=lambda f: (f["kind"], f["from_ts"])) for found in loud], strict=True):
        assert abs(mine["from_ts"] - theirs["from_ts"]) <= near, (mine, theirs)
    breaks = [
        Counter((b["kind"], b["broker_name"], b["queue_id"], b["new_offset"]) for b in n["offset_continuity"])
        for n in (night, plain)
    ]
    assert breaks[0] == breaks[1]
    assert not [t for t, counts in judgements(night).items() if counts["differ"]]


@pytest.mark.parametrize(("by_ms", "midnight_s"), [(HOUR, 430), (-HOUR, -5)])
def test_a_clock_that_is_off_over_midnight_changes_nothing_else(judged, plain, by_ms, midnight_s):
    # The client says another day than the recorder, of some of its rows or of all.
    night = judged(change=shifted(CLIENT, by_ms), midnight_s=midnight_s)
    assert {f["client_id"] for f in night["finding"] if f["kind"] == "clock_skew"} == {CLIENT}
    loud = [
        places(f for f in found if f["severity"] != "info" and f["kind"] != "clock_skew")
        for found in (night["finding"], plain["finding"])
    ]
    assert loud[0] == loud[1]


def test_with_snapshots_pulls_and_heartbeats_alone_the_rest_is_told_as_missing(judged, plain):
    night = judged(kinds={"pull_log", "heartbeats"})
    loud = {(f["kind"], f["consumer_group"]) for f in night["finding"] if f["severity"] != "info"}
    assert {
        ("offset_rewind", "reset-group"),
        ("offset_beyond_max", "reset-group"),
        ("consumer_lost", "crash-group"),
    } <= loud
    # Two clients that pull one queue are seen without their strategies.
    assert ("double_owned_queue", "mixalg-group") in loud
    known = {(f["kind"], f["consumer_group"]) for f in plain["finding"]}
    assert {f for f in loud if f not in known} <= {("offset_jump", "reset-group")}
    gaps = {(g["decision"], g["evidence"]) for g in night["replay_gap"]}
    assert {
        ("gold.allocation", "rebalance_log"),
        ("finding strategy_conflict", "rebalance_log"),
        ("finding duplicate_delivery", "consume_log"),
        ("gold.delivery_audit", "produce_log"),
        ("gold.slave_suggestion", "broker_runtime"),
    } <= gaps
