"""The explanation of a finding: what it is linked to, and how it is printed."""

from __future__ import annotations

import datetime as dt
import json
import re
from pathlib import Path
from typing import Any

import pytest

from evidence_keys import evidence_of
from made_warehouse import made_warehouse
from mqreplay.cli.explain import MOST_EFFECTS, print_explanation
from mqreplay.cli.explanation import MOST_NAMED, Explanation, explain, explanation_of
from mqreplay.errors import InputError, InputErrors
from mqreplay.lake.warehouse import Warehouse
from tests_shared import ROOT

MIDNIGHT = dt.datetime(2026, 11, 21, tzinfo=dt.UTC)
SECOND = dt.timedelta(seconds=1)


def finding(**differs: Any) -> dict[str, Any]:
    row = {"finding_id": "f1", "kind": "broker_down", "day": MIDNIGHT.date(), "from_ts": MIDNIGHT, "to_ts": MIDNIGHT}
    return row | {"severity": "info"} | differs


def record(table: str, *record_ids: str) -> list[dict[str, Any]]:
    return [evidence_of(table, record_id=each) for each in record_ids]


def explained(tmp_path: Path, tables: dict[str, list[dict[str, Any]]], *findings: dict[str, Any]) -> Explanation:
    return explanation_of(made_warehouse(tmp_path, {**tables, "gold.finding": list(findings)}), "f1", None)


def test_an_explanation_has_its_cause_and_its_effects_each_from_their_last_day(tmp_path: Path) -> None:
    day_before = MIDNIGHT.date() - dt.timedelta(days=1)
    explanation = explained(
        tmp_path,
        {},
        finding(follows_from="cause"),
        finding(day=day_before, follows_from=None),
        finding(finding_id="cause"),
        finding(finding_id="e2", follows_from="f1", from_ts=MIDNIGHT + SECOND),
        finding(finding_id="e1", follows_from="f1", summary="last"),
        finding(finding_id="e1", follows_from="f1", summary="first", day=day_before),
        finding(finding_id="e3", follows_from="f1", day=day_before),
        finding(finding_id="e3", follows_from=None),
        finding(finding_id="e4", follows_from="f1", cluster="other"),
    )
    assert explanation.cause is not None
    assert explanation.cause["finding_id"] == "cause"
    assert [(row["finding_id"], row["summary"]) for row in explanation.effects] == [("e1", "last"), ("e2", "x")]


def step(seconds: float, name: str, **differs: Any) -> dict[str, Any]:
    base = {"outage_ts": MIDNIGHT, "broker_name": "b", "broker_id": 0, "step": name, "ts": MIDNIGHT + seconds * SECOND}
    base |= {"day": MIDNIGHT.date(), "happened": True, "judgement": None, "reason": "r", "step_id": f"{seconds} {name}"}
    base |= dict.fromkeys(("expected_to", "before_ts", "namesrv_addr", "client_id", "consumer_group", "amount"))
    return base | differs


def test_an_outage_is_explained_by_its_timeline(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    of_broker = {"broker_name": "b", "broker_id": 0, "to_ts": MIDNIGHT + 60 * SECOND}
    steps = [step(9, "answers_again"), step(0, "stopped_answering"), step(0, "stopped_answering", broker_id=1)]
    steps += [step(0, "stopped_answering", outage_ts=MIDNIGHT - SECOND), step(0, "stopped_answering", broker_name="c")]
    tables = {"gold.failover_step": [row | {"step_id": str(i)} for i, row in enumerate(steps)]}
    explanation = explained(tmp_path, tables, finding(**of_broker))
    assert explanation.timeline == [
        ("00:00:00.000", "the broker stopped answering: r"),
        ("00:00:09.000", "the broker answered again: r"),
    ]
    print_explanation(str(tmp_path), "f1", None, as_json=False)
    printed = capsys.readouterr().out
    assert "Timeline of the failover" in printed
    assert re.search("00:00:09.000 +the broker answered again: r", printed)
    print_explanation(str(tmp_path), "f1", None, as_json=True)
    whole = json.loads(capsys.readouterr().out)
    assert whole["timeline"][0] == {"when": "00:00:00.000", "what": "the broker stopped answering: r"}


@pytest.mark.parametrize(
    ("kind", "seconds", "lines"), [("slow_failover", 90, 1), ("slow_failover", -1, 0), ("orphan_offset_key", 0, 0)]
)
def test_a_late_failover_has_the_timeline_of_the_outage_before(
    tmp_path: Path, kind: str, seconds: int, lines: int
) -> None:
    of_broker = {"kind": kind, "broker_name": "b", "broker_id": 0, "from_ts": MIDNIGHT + seconds * SECOND}
    tables = {"gold.failover_step": [step(0, "stopped_answering")]}
    assert len(explained(tmp_path, tables, finding(**of_broker)).timeline) == lines


def test_a_finding_of_a_package_that_is_gone_is_explained_without_its_rule(tmp_path: Path) -> None:
    explanation = explained(tmp_path, {}, finding(kind="of_a_package"))
    assert explanation.rule.startswith("The package that defines this kind of finding is not installed here")


def test_an_id_names_one_finding(tmp_path: Path) -> None:
    findings = [finding(finding_id=id_) for id_ in ("ab", "ac")] + [finding(finding_id="ab", cluster="other")]
    made_warehouse(tmp_path, {"gold.finding": findings})
    assert explain(str(tmp_path), "ac", None).finding["finding_id"] == "ac"
    assert explain(str(tmp_path), "ab", "other").finding["cluster"] == "other"
    with pytest.raises(InputErrors, match="2 findings have ids that begin with ab; give more of the id") as several:
        explain(str(tmp_path), "ab", None)
    assert several.value.messages[1:] == [
        f"ab  {cluster}  broker_down  2026-11-21 00:00:00 UTC" for cluster in ("c", "other")
    ]
    with pytest.raises(InputError, match="no finding has an id that begins with x; `mqreplay findings --warehouse /"):
        explain(str(tmp_path), "x", None)
    with pytest.raises(InputError, match="no finding has an id"):
        explanation_of(Warehouse(str(tmp_path / "none")), "a", None)
    with pytest.raises(InputError, match="does not exist"):
        explain(str(tmp_path / "none"), "a", None)


def test_many_findings_whose_ids_begin_alike_are_not_all_listed(tmp_path: Path) -> None:
    made_warehouse(tmp_path, {"gold.finding": [finding(finding_id=f"a{n:02}") for n in range(MOST_NAMED + 3)]})
    with pytest.raises(InputErrors) as several:
        explain(str(tmp_path), "a", None)
    assert len(several.value.messages) == 1 + MOST_NAMED + 1
    assert several.value.messages[-1] == "... and 3 more"


def test_the_json_of_an_explanation_is_what_the_page_describes(tmp_path: Path, capsys: Any) -> None:
    row = finding(
        from_ts=MIDNIGHT + dt.timedelta(milliseconds=5),
        follows_from=None,
        evidence=[evidence_of("bronze.quarantine", path="p"), evidence_of("silver.consume", record_id="a")],
        evidence_count=7,
    )
    refused = {"path": "p", "content": b"\xff{", "code": "torn", "reason": "it is cut"}
    consumed = {"record_id": "a", "ts": MIDNIGHT, "day": MIDNIGHT.date()}
    made_warehouse(tmp_path, {"gold.finding": [row], "bronze.quarantine": [refused], "silver.consume": [consumed]})
    print_explanation(str(tmp_path), "f1", None, as_json=True)
    printed = json.loads(capsys.readouterr().out)
    page = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    described = re.findall(r"^\| `([a-z_]+)` \|", page, re.MULTILINE)
    assert [name for name in described if name in printed] == list(printed)
    assert printed["finding"]["from_ts"] == "2026-11-21T00:00:00.005Z"
    assert not {"evidence", "evidence_count"} & printed["finding"].keys()
    assert (printed["evidence_total"], len(printed["evidence"])) == (7, 2)
    first, last = printed["evidence"]
    assert (first["table_name"], first["ts"], first["row"]["record_id"]) == (
        "silver.consume",
        "2026-11-21T00:00:00.000Z",
        "a",
    )
    assert (last["ts"], last["who"], last["what"]) == (None, "p", "torn: it is cut")
    assert last["row"]["content"] == "\ufffd{"


def test_a_printed_explanation_says_how_many_rows_and_effects_are_not_shown(tmp_path: Path, capsys: Any) -> None:
    rows = [{"record_id": f"r{n}", "ts": MIDNIGHT, "day": MIDNIGHT.date()} for n in range(9)]
    cause = finding(
        follows_from=None, evidence=record("silver.consume", *(row["record_id"] for row in rows)), evidence_count=1315
    )
    effects = [finding(finding_id=f"e{n:02}", follows_from="f1") for n in range(MOST_EFFECTS + 5)]
    made_warehouse(tmp_path, {"gold.finding": [cause, *effects], "silver.consume": rows})
    print_explanation(str(tmp_path), "f1", None, as_json=False)
    shown = capsys.readouterr().out
    assert "2026-11-21 00:00:00 UTC" in shown
    assert "Evidence: 9 of 1,315 rows" in shown
    assert f"Effects: {MOST_EFFECTS} of {MOST_EFFECTS + 5} findings" in shown
    print_explanation(str(tmp_path), "f1", None, as_json=False, limit=3)
    assert "Evidence: 3 of 1,315 rows" in capsys.readouterr().out
    print_explanation(str(tmp_path), "e00", None, as_json=False)
    shown = capsys.readouterr().out
    assert "Evidence: none" in shown
    assert re.search(r"Follows from\s+info\s+broker_down", shown)
    with pytest.raises(InputError, match="--limit is -1"):
        print_explanation(str(tmp_path), "f1", None, as_json=False, limit=-1)
