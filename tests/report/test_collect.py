"""What the page gets of the tables: sorted, capped, and with all rows counted."""

from __future__ import annotations

import dataclasses
import datetime as dt
from pathlib import Path

from made_warehouse import CLUSTER, made_warehouse
from mqreplay.lake.warehouse import Warehouse
from mqreplay.report.build import build_report
from mqreplay.report.collect import collect
from mqreplay.report.data import CAP, ReportData

FIRST, LAST = dt.date(2026, 11, 20), dt.date(2026, 11, 21)
AT = dt.datetime(2026, 11, 21, 2, tzinfo=dt.UTC)


def test_a_warehouse_without_tables_has_nothing_to_show(tmp_path: Path) -> None:
    found = collect(Warehouse(str(tmp_path)), CLUSTER)
    assert {each.state for each in found.coverage} == {"none"}
    assert dataclasses.replace(found, coverage=[]) == ReportData(CLUSTER, findings_total=0)


def test_files_are_counted_by_kind_and_status_and_bound_the_recording(tmp_path: Path) -> None:
    row = {
        "kind": "pull_log",
        "status": "read",
        "rows_in": 5,
        "rows_out": 3,
        "rows_quarantined": 1,
        "rows_duplicate": 1,
    }
    rows = [
        row | {"path": "a", "first_ts": AT, "last_ts": AT + dt.timedelta(hours=1)},
        row | {"path": "b", "first_ts": AT - dt.timedelta(hours=1), "last_ts": AT},
        row | {"path": "c", "status": "empty"},
        row | {"path": "d", "cluster": "d", "first_ts": AT - dt.timedelta(days=9)},
    ]
    found = collect(made_warehouse(tmp_path, {"bronze.source_file": rows}), CLUSTER)
    assert [(f["status"], f["files"], f["rows_in"], f["rows_duplicate"]) for f in found.files] == [
        ("empty", 1, 5, 1),
        ("read", 2, 10, 2),
    ]
    assert (found.first_ts, found.last_ts) == (AT - dt.timedelta(hours=1), AT + dt.timedelta(hours=1))
    assert found.files[0]["first_ts"] is None


def test_decisions_of_all_days_are_added_and_those_that_differ_come_first(tmp_path: Path) -> None:
    judged_rows = [
        ("agree", "r", 2, FIRST),
        ("agree", "r", 3, LAST),
        ("undetermined", "q", 1, LAST),
        ("differ", "p", 1, LAST),
    ]
    judged_rows += [("agree", "s", 9, LAST), ("agree", "a", 9, LAST)]
    names = ("judgement", "reason", "decisions", "day")
    rows = [{"decision": "gold.allocation", **dict(zip(names, each, strict=True))} for each in judged_rows]
    found = collect(made_warehouse(tmp_path, {"gold.judgement": rows}), CLUSTER).judgements
    assert [(f["judgement"], f["reason"], f["decisions"]) for f in found] == [
        ("differ", "p", 1),
        ("undetermined", "q", 1),
        ("agree", "a", 9),
        ("agree", "s", 9),
        ("agree", "r", 5),
    ]


def test_expectations_that_fail_come_by_day_and_those_that_hold_on_every_day_once(tmp_path: Path) -> None:
    rows = [
        {"expectation": "fails once", "passed": False, "day": LAST},
        {"expectation": "fails once", "passed": True, "day": FIRST, "run_id": "y"},
        {"expectation": "fails first", "passed": False, "day": FIRST},
        {"expectation": "holds", "passed": True, "day": FIRST, "description": "a"},
        {"expectation": "holds", "passed": True, "day": LAST, "description": "b", "run_id": "y"},
    ]
    found = collect(made_warehouse(tmp_path, {"gold.validation_result": rows}), CLUSTER).expectations
    assert [(f["passed"], f["expectation"], f["description"]) for f in found] == [
        (False, "fails first", None),
        (False, "fails once", None),
        (True, "holds", "b"),
    ]


def test_long_lists_are_cut_and_counted(tmp_path: Path) -> None:
    rows = [{"to_ts": AT + dt.timedelta(seconds=-n), "queue_id": n} for n in range(CAP + 7)]
    gaps = [{"gap_id": str(n), "decisions": n} for n in range(3)]
    refused = [{"path": f"{n:04}", "content": b"\xff"} for n in range(CAP)]
    tables = {"gold.offset_continuity": rows, "gold.replay_gap": gaps, "bronze.quarantine": refused}
    found = collect(made_warehouse(tmp_path, tables), CLUSTER)
    assert (len(found.breaks.rows), found.breaks.total, found.breaks.more) == (CAP, CAP + 7, 7)
    assert [row["queue_id"] for row in found.breaks.rows[:2]] == [CAP + 6, CAP + 5]
    assert not {"cluster", "day", "source_digest"} & found.breaks.rows[0].keys()
    assert [row["gap_id"] for row in found.gaps.rows] == ["2", "1", "0"]
    assert (len(found.quarantine.rows), found.quarantine.more) == (CAP, 0)
    assert "content" not in found.quarantine.rows[0]
    build_report(found)


def test_a_finding_of_two_days_is_shown_once(tmp_path: Path) -> None:
    row = {"from_ts": AT, "to_ts": AT, "kind": "broker_down", "evidence": []}
    rows = [
        row | {"finding_id": "over", "severity": "info", "day": FIRST},
        row | {"finding_id": "over", "severity": "warning", "day": LAST},
        row | {"finding_id": "late", "severity": "critical", "from_ts": AT + dt.timedelta(hours=1)},
        row | {"finding_id": "early", "severity": "critical"},
    ]
    found = collect(made_warehouse(tmp_path, {"gold.finding": rows}), CLUSTER)
    assert [f["finding_id"] for f in found.findings] == ["early", "late", "over"]
    assert found.findings[2]["day"] == LAST
    assert build_report(found).count("data-severity=") == 3
