"""The explanation of a finding: what it is linked to, and how it is printed."""

from __future__ import annotations

import datetime as dt
import doctest
import json
import re
from pathlib import Path
from typing import Any

import pytest

from answers.explained_rows import MIDNIGHT, SECOND, finding, printed, record
from evidence_keys import evidence_of
from made_warehouse import made_warehouse
from mqreplay.answers import explanation as explanation_module
from mqreplay.answers.explanation import Explanation, explain
from mqreplay.answers.findings import MOST_NAMED
from mqreplay.cli.findings_command import print_explanation
from mqreplay.lake.warehouse import Warehouse
from mqreplay.report.evidence_rows import EvidenceRow, EvidenceRows, sufficient
from mqreplay.terminal.explanation import MOST_DECISIONS, MOST_EFFECTS
from mqreplay.words.errors import InputError, InputErrors
from tests_shared import ROOT


def explained(tmp_path: Path, tables: dict[str, list[dict[str, Any]]], *findings: dict[str, Any]) -> Explanation:
    return explain(made_warehouse(tmp_path, {**tables, "gold.finding": list(findings)}), "f1", None)


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


def test_the_known_issues_of_a_finding_are_those_of_its_last_day(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    day, before = MIDNIGHT.date(), MIDNIGHT.date() - dt.timedelta(days=1)
    base = {"finding_id": "f1", "day": day, "component": "broker", "versions": ["4.9.3"], "url": "https://x/4215"}
    issues = [
        base | {"issue": 4215, "mended_in": "4.9.4", "title": "a fault", "advice": "Run `reset -g GROUP`."},
        base | {"issue": 1094, "mended_in": None, "title": "another one"},
        base | {"issue": 9, "day": before},
        base | {"issue": 8, "finding_id": "f2"},
        base | {"issue": 7, "cluster": "other"},
    ]
    explanation = explained(tmp_path, {"gold.known_issue": issues}, finding(consumer_group="pay"), finding(day=before))
    assert [issue["issue"] for issue in explanation.known_issues] == [1094, 4215]
    print_explanation(str(tmp_path), "f1", None, as_json=False)
    lines = " ".join(capsys.readouterr().out.split())
    assert (
        "Known issue apache/rocketmq#4215, mended in 4.9.4. It can explain this: a fault (broker 4.9.3). Run"
        " `reset -g pay`. https://x/4215"
    ) in lines
    assert "apache/rocketmq#1094, not mended in any checked release." in lines
    print_explanation(str(tmp_path), "f1", None, as_json=True)
    printed = json.loads(capsys.readouterr().out)["known_issues"]
    assert [(issue["issue"], issue["mended_in"]) for issue in printed] == [(1094, None), (4215, "4.9.4")]
    assert printed[1].keys() == {"issue", "url", "title", "component", "versions", "mended_in", "advice"}


def owner(client_id: str, queue_id: int, seconds: tuple[float, float], **differs: Any) -> dict[str, Any]:
    begin, end = (MIDNIGHT + each * SECOND for each in seconds)
    row = {"day": MIDNIGHT.date(), "consumer_group": "pay", "topic": "orders", "broker_name": "b", "source": "s"}
    return row | {"queue_id": queue_id, "client_id": client_id, "from_ts": begin, "to_ts": end} | differs


STUCK = {
    "kind": "stuck_queue",
    "consumer_group": "pay",
    "topic": "orders",
    "broker_name": "b",
    "queue_id": 0,
    "values": json.dumps({"offset": 30}),
}


def test_the_advice_has_the_known_names_and_does_not_lead_to_the_explanation_itself(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    servers = {"namesrvAddr": "10.0.0.1:9876;10.0.0.2:9876"}
    brokers = [
        {"broker_name": "b", "broker_id": n, "broker_addr": f"10.0.0.9:{n}", "properties": servers, "ts": MIDNIGHT}
        for n in range(2)
    ]
    owners = [owner("c1", 0, (-60, 5)), owner("c2", 0, (6, 60)), owner("c1", 1, (-60, 60))]
    file = {"kind": "consumer_offset", "path": "s", "status": "read", "rows_in": 1, "rows_out": 1}
    file |= {"rows_quarantined": 0, "rows_duplicate": 0, "first_ts": MIDNIGHT, "last_ts": MIDNIGHT + 60 * SECOND}
    tables = {"silver.broker": brokers, "gold.queue_owner": owners, "bronze.source_file": [file]}
    explanation = explained(tmp_path, tables, finding(**STUCK))
    by = f"-n '{servers['namesrvAddr']}'"
    assert f"`mqadmin queryMsgByOffset -t orders -b b -i 0 -o 30 {by}`" in explanation.advice()
    assert f"`mqadmin consumerStatus -g pay -i c1 -s {by}`" in explanation.advice()
    assert "Who held it: the evidence below." in explanation.advice()
    assert explanation.holders == {"c1": ["b/0"]}
    known = {"BROKER_ADDR": "10.0.0.9:0", "NAMESRV": servers["namesrvAddr"]}
    assert explanation.names.items() >= {**known, "TIME": str(int(MIDNIGHT.timestamp() * 1000))}.items()
    command = f"mqreplay at 2026-11-21T00:00:01 --group pay --warehouse {tmp_path}"
    assert explanation.next_command == command
    text = printed(tmp_path, "f1", capsys)
    assert f"The state then: {command}\n" in text
    assert "Held by     c1 (b/0)\n" in re.sub(" +\n", "\n", text)
    assert "mqreplay explain" not in text


def test_of_a_queue_that_nobody_held_it_is_said_and_unknown_owners_are_not_nobody(tmp_path: Path) -> None:
    nobody = explained(tmp_path / "a", {"gold.queue_owner": [owner("c1", 1, (-60, 60))]}, finding(**STUCK))
    assert nobody.holders == {}
    assert explained(tmp_path / "b", {}, finding(**STUCK)).holders is None


def test_evidence_is_what_led_to_the_event_and_rare_outcomes_come_first() -> None:
    def row(seconds: float, judgement: str) -> EvidenceRow:
        return EvidenceRow("gold.pull_route", MIDNIGHT + seconds * SECOND, "", "", {"judgement": judgement})

    rows = [*(row(n, "agree") for n in range(-5, 5)), row(7, "differ"), row(9, "differ")]
    assert sufficient(rows, MIDNIGHT, 3) == [row(0, "agree"), row(7, "differ"), row(9, "differ")]
    assert sufficient(rows, MIDNIGHT, 20) == rows
    explanation = Explanation(
        finding(to_ts=MIDNIGHT + 3 * SECOND), "", "", EvidenceRows(sufficient(rows, MIDNIGHT, 20))
    )
    assert [(title, len(of_part)) for title, of_part in explanation.evidence_parts()] == [
        ("What led to it", 6),
        ("While it lasted", 3),
        ("What came after", 3),
    ]


def test_a_limit_beyond_any_number_of_rows_shows_all(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made_warehouse(tmp_path, {"gold.finding": [finding()]})
    assert "Evidence: none" in printed(tmp_path, "f1", capsys, limit=10**30)


def test_a_warehouse_without_the_table_has_no_known_issues(tmp_path: Path) -> None:
    assert explained(tmp_path, {}, finding()).known_issues == []


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
    assert explain(Warehouse(str(tmp_path)), "ac", None).finding["finding_id"] == "ac"
    assert explain(Warehouse(str(tmp_path)), "ab", "other").finding["cluster"] == "other"
    with pytest.raises(InputErrors, match="2 findings have ids that begin with ab; give more of the id") as several:
        explain(Warehouse(str(tmp_path)), "ab", None)
    assert several.value.messages[1:] == [
        f"ab  {cluster}  broker_down  2026-11-21 00:00:00 UTC" for cluster in ("c", "other")
    ]
    with pytest.raises(InputError, match="no finding has an id that begins with x; `mqreplay findings --warehouse /"):
        explain(Warehouse(str(tmp_path)), "x", None)
    with pytest.raises(InputError, match="no finding has an id"):
        explain(Warehouse(str(tmp_path / "none")), "a", None)
    with pytest.raises(InputError, match="does not exist"):
        print_explanation(str(tmp_path / "none"), "a", None, as_json=False)


def test_many_findings_whose_ids_begin_alike_are_not_all_listed(tmp_path: Path) -> None:
    made_warehouse(tmp_path, {"gold.finding": [finding(finding_id=f"a{n:02}") for n in range(MOST_NAMED + 3)]})
    with pytest.raises(InputErrors) as several:
        explain(Warehouse(str(tmp_path)), "a", None)
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


def pulls(number: int) -> list[dict[str, Any]]:
    place = {"broker_name": "b", "broker_id": 0, "response_code": None, "response_name": None}
    return [
        place | {"record_id": f"{n:03}", "request_ts": MIDNIGHT + n * SECOND, "day": (MIDNIGHT + n * SECOND).date()}
        for n in range(-10, number - 10)
    ]


def test_all_rows_are_shown_where_the_rule_selects_them_and_no_others_are_promised(tmp_path: Path, capsys: Any) -> None:
    rows = [row | {"error": "timeout" if n % 3 else "refused"} for n, row in enumerate(pulls(60))]
    of_broker = {"broker_name": "b", "broker_id": 0, "to_ts": MIDNIGHT + 60 * SECOND, "follows_from": None}
    kept = record("silver.pull", *(row["record_id"] for row in rows[:5]))
    down = finding(**of_broker, evidence=kept, evidence_count=60)
    other = finding(**of_broker, finding_id="g1", kind="of_a_package", evidence=kept, evidence_count=60)
    made_warehouse(tmp_path, {"gold.finding": [down, other], "silver.pull": rows})
    lines = printed(tmp_path, "f1", capsys, 8).splitlines()
    at = lines.index("Evidence: 8 of 60 rows (--limit 60 shows all)")
    assert lines[at + 1 : at + 4] == [
        "  10 rows are from before the begin of the finding (00:00:00.000): a pull has the time of its request, and a"
        " broker may hold it for half a minute",
        "  40 x silver.pull             23:59:51.000 to 00:00:49.000  error: timeout",
        "  20 x silver.pull             23:59:50.000 to 00:00:47.000  error: refused",
    ]
    assert [line for line in lines[at + 4 :] if "silver.pull" not in line] == ["  What led to it", "  While it lasted"]
    assert len(lines[at + 4 :]) == 2 + 8
    assert "Evidence: 60 rows\n" in printed(tmp_path, "f1", capsys, 60)
    shown = printed(tmp_path, "g1", capsys, 2)
    assert "Evidence: 2 of 60 rows (--limit 5 shows more)\n" in shown
    assert "the finding names 5 rows, and only counts the others" in shown
    shown = printed(tmp_path, "g1", capsys)
    assert "Evidence: 5 of 60 rows\n" in shown
    print_explanation(str(tmp_path), "g1", None, as_json=True)
    whole = json.loads(capsys.readouterr().out)
    assert (whole["evidence_total"], whole["evidence_unnamed"]) == (60, 55)
    assert [group["count"] for group in whole["evidence_groups"]] == [3, 2]


def test_a_read_from_a_slave_says_how_far_behind_it_was(tmp_path: Path, capsys: Any) -> None:
    pull = {"request_ts": MIDNIGHT, "day": MIDNIGHT.date(), "cause": "suggested", "expected_broker_id": 1}
    routes = [pull | {"record_id": name, "actual_broker_id": 1} for name in ("known", "unknown")]
    judged = {"record_id": "known", "day": MIDNIGHT.date(), "diff_min": 1000, "diff_max": 2000, "memory": 500}
    row = finding(kind="slave_pull", follows_from=None, evidence=record("gold.pull_route", "known", "unknown"))
    tables = {"gold.finding": [row | {"evidence_count": 2}], "gold.pull_route": routes}
    made_warehouse(tmp_path, tables | {"gold.slave_suggestion": [judged]})
    lines = printed(tmp_path, "f1", capsys).splitlines()
    assert lines[-2].endswith(", 1,000 to 2,000 bytes behind, 500 in memory")
    assert lines[-1].endswith(", distance not known")


def test_decisions_are_counted_over_all_rows_the_most_frequent_first(tmp_path: Path, capsys: Any) -> None:
    base = {"day": MIDNIGHT.date(), "broker_name": "b", "pull_from_which_node": 0, "expected_broker_id": 1}
    rows = [
        base | {"record_id": f"{n:03}", "request_ts": MIDNIGHT + n * SECOND, "actual_broker_id": 1, "reason": reason}
        for n, reason in enumerate(["once", *["often"] * 7, *(f"r{n}" for n in range(MOST_DECISIONS))])
    ]
    keys = record("gold.pull_route", *(row["record_id"] for row in rows))
    down = finding(follows_from=None, evidence=keys, evidence_count=len(rows))
    made_warehouse(tmp_path, {"gold.finding": [down], "gold.pull_route": rows})
    shown = printed(tmp_path, "f1", capsys, 1)
    assert "Decisions by RocketMQ's rules\n  7 times: find_broker_address_in_subscribe" in shown
    assert "\n  and 2 others (--json has all)\n" in shown


def test_doctests() -> None:
    assert doctest.testmod(explanation_module)[:2] == (0, 1)
