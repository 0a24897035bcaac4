"""Two days side by side."""

from __future__ import annotations

import datetime as dt

from made_warehouse import made_warehouse
from mqreplay.answers.compare import compare
from mqreplay.moment.instant import Recorded
from mqreplay.terminal.moment import print_comparison

MONDAY, TUESDAY = dt.date(2026, 11, 23), dt.date(2026, 11, 24)


def noon(day: dt.date) -> dt.datetime:
    return dt.datetime.combine(day, dt.time(12), dt.UTC)


def finding(day: dt.date, kind: str, group: str, number: str, severity: str = "warning") -> dict:
    of = {"day": day, "kind": kind, "consumer_group": group, "severity": severity, "finding_id": number}
    return of | {"from_ts": noon(day), "to_ts": noon(day), "topic": None, "broker_name": None, "broker_id": None}


def member(day: dt.date, client: str, group: str = "g") -> dict:
    span = {"from_ts": noon(day), "to_ts": noon(day) + dt.timedelta(hours=1)}
    return {"day": day, "consumer_group": group, "client_id": client, "ended": "silent"} | span


def described(day: dt.date, **properties: str) -> dict:
    return {"ts": noon(day), "recording": str(day), "broker_name": "b", "broker_id": 0, "properties": properties}


def test_findings_groups_and_settings_of_two_days(tmp_path, capsys):
    tables = {
        "gold.finding": [
            finding(MONDAY, "lag_grows", "g", "a"),
            finding(MONDAY, "lag_grows", "h", "b"),
            finding(MONDAY, "broker_down", "h", "f", severity="critical"),
            finding(TUESDAY, "lag_grows", "g", "c"),
            finding(TUESDAY, "lag_grows", "g", "d"),
            finding(TUESDAY, "consumer_lost", "g", "e"),
        ],
        "gold.member": [
            *(member(MONDAY, client) for client in "xy"),
            *(member(TUESDAY, client) for client in "xyz"),
            *(member(day, "x", "same") for day in (MONDAY, TUESDAY)),
        ],
        "silver.broker": [
            described(MONDAY, slaveReadEnable="false", brokerRole="ASYNC_MASTER", storePathRootDir="/a"),
            described(TUESDAY, slaveReadEnable="true", brokerRole="ASYNC_MASTER", storePathRootDir="/b"),
        ],
        "gold.judgement": [{"day": day, "decisions": 1} for day in (MONDAY, TUESDAY)],
    }
    night = Recorded(made_warehouse(tmp_path, tables), "c", noon(MONDAY), noon(TUESDAY))
    assert night.judged_days() == [MONDAY, TUESDAY]
    found = compare(night, MONDAY, TUESDAY)
    findings = found.findings.select("change", "kind", "consumer_group", "before", "after", "finding_id").rows()
    assert findings == [
        ("gone", "broker_down", "h", 1, 0, "f"),  # the most severe one
        ("new", "consumer_lost", "g", 0, 1, "e"),
        ("gone", "lag_grows", "h", 1, 0, "b"),
        ("recurs", "lag_grows", "g", 1, 2, "d"),
    ]
    assert found.as_plain()["counts"] == {"new": 1, "gone": 2, "recurs": 1}
    print_comparison(found)
    head, *_ = capsys.readouterr().out.splitlines()
    assert head == "c 2026-11-23 and 2026-11-24: 1 new, 2 gone, 1 recur"
    assert found.groups.select("consumer_group", "members_before", "members_after").rows() == [("g", 2, 3)]
    assert found.settings.rows() == [("b", 0, "slaveReadEnable", "false", "true")]


def test_a_day_does_not_differ_from_itself(tmp_path):
    tables = {"gold.finding": [finding(MONDAY, "lag_grows", "g", "a")], "gold.member": [member(MONDAY, "x")]}
    found = compare(Recorded(made_warehouse(tmp_path, tables), "c", noon(MONDAY), noon(MONDAY)), MONDAY, MONDAY)
    assert found.findings["change"].to_list() == ["recurs"]
    assert found.groups.is_empty()
    assert found.settings.is_empty()
