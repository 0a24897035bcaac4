"""`mqreplay explain` of a finding that `nightly --watch` reports as open."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from answers.explained_rows import MIDNIGHT, SECOND, finding, printed, record
from made_warehouse import made_warehouse
from mqreplay.answers.explanation import explain
from mqreplay.cli.findings_command import print_explanation
from mqreplay.settings import FindingSettings, Settings

WATCHED = {
    "finding_id": "0pen",
    "kind": "broker_down",
    "severity": "critical",
    "opened_ts": MIDNIGHT,
    "first_seen_ts": MIDNIGHT + 9 * SECOND,
    "last_seen_ts": MIDNIGHT + 60 * SECOND,
    "closed_ts": None,
    "closed_reason": None,
    "undetermined_since": None,
    "summary": "It is down.",
    "evidence": record("silver.pull", "p"),
    "evidence_count": 1,
}


def test_an_open_finding_is_explained_by_its_rule_and_says_since_when(tmp_path: Path, capsys: Any) -> None:
    closed = WATCHED | {"finding_id": "over", "closed_ts": MIDNIGHT, "closed_reason": "no evidence of it for 120 s"}
    silent = WATCHED | {"finding_id": "silent", "undetermined_since": MIDNIGHT + 30 * SECOND}
    made_warehouse(tmp_path, {"gold.open_finding": [WATCHED, closed, silent]})
    shown = printed(tmp_path, "0p", capsys)
    assert shown.startswith("critical broker_down           open since 2026-11-21 00:00:00 UTC  0pen\n")
    text = " ".join(shown.split())
    assert "Watch Open. First found at 2026-11-21 00:00:09 UTC, last evidence at 2026-11-21 00:01:00 UTC." in text
    assert "It is provisional until the nightly run." in text
    assert "Rule Somebody asked a broker and got an error" in text
    assert "Evidence: 0 of 1 row the tables have these rows after the nightly run: explain it then" in text
    assert "whether it goes on is not known." in " ".join(printed(tmp_path, "silent", capsys).split())
    shown = printed(tmp_path, "over", capsys)
    assert " open " not in shown.splitlines()[0]
    assert "Watch       Closed at 2026-11-21 00:00:00 UTC: no evidence of it for 120 s." in shown
    print_explanation(str(tmp_path), "0pen", None, as_json=True)
    watch = json.loads(capsys.readouterr().out)["watch"]
    assert (watch["open_since"], watch["closed_ts"]) == ("2026-11-21T00:00:00.000Z", None)


def test_the_settings_say_when_an_open_finding_is_over(tmp_path: Path) -> None:
    end = MIDNIGHT + 61 * SECOND
    rows = dict.fromkeys(("rows_in", "rows_out", "rows_quarantined", "rows_duplicate"), 0)
    recorded = rows | {"path": "p", "status": "read", "last_ts": MIDNIGHT + 200 * SECOND}
    judged = finding(finding_id="0pen", follows_from=None, to_ts=end)
    tables = {"gold.open_finding": [WATCHED], "gold.finding": [judged], "bronze.source_file": [recorded]}
    made = made_warehouse(tmp_path, tables)
    longer = Settings(findings=FindingSettings(unseen_down_s=300))
    assert [explain(made, "0pen", None, settings=each).is_open for each in (None, longer)] == [False, True]


def test_a_finding_of_the_nightly_run_may_still_be_open(tmp_path: Path, capsys: Any) -> None:
    judged = finding(finding_id="0pen", summary="It was down.", follows_from=None)
    made_warehouse(tmp_path, {"gold.open_finding": [WATCHED], "gold.finding": [judged]})
    shown = printed(tmp_path, "0pen", capsys)
    assert "It was down." in shown
    assert "open since" in shown
    assert "provisional" not in shown


@pytest.mark.parametrize(
    ("of_night", "note"),
    [
        ({"broker_name": "b"}, "Open. First found .* The nightly run has it as finding night.$"),
        (
            {"broker_name": "b", "to_ts": MIDNIGHT + 60 * SECOND},
            "Not open .* The nightly run has it as finding night.$",
        ),
        ({"broker_name": "z"}, "Not open any more. First .* has judged this time, and has no such finding.$"),
        ({"finding_id": "0pen", "to_ts": MIDNIGHT}, "Not open any more. .* judged this time, and has its end.$"),
        (None, "Open. First found .* Watch has reported nothing since: whether it goes on .* until the nightly run.$"),
    ],
)
def test_what_nightly_runs_know_of_an_open_finding(
    tmp_path: Path, capsys: Any, of_night: dict[str, Any] | None, note: str
) -> None:
    tables: dict[str, list[dict[str, Any]]] = {"gold.open_finding": [WATCHED | {"broker_name": "b"}]}
    if of_night is not None:
        file = {"rows_in": 1, "rows_out": 1, "rows_quarantined": 0, "rows_duplicate": 0, "rows_expired": 0}
        tables["bronze.source_file"] = [file | {"first_ts": MIDNIGHT, "last_ts": MIDNIGHT + 3600 * SECOND}]
        tables["gold.judgement"] = [{"day": MIDNIGHT.date()}]
        lasts = {"finding_id": "night", "to_ts": MIDNIGHT + 3590 * SECOND, "follows_from": None}
        tables["gold.finding"] = [finding(**(lasts | of_night))]
    made_warehouse(tmp_path, tables)
    text = printed(tmp_path, "0pen", capsys)
    watch = " ".join(text[: text.index("\nSummary") if "\nSummary" in text else None].split("Watch  ")[1].split())
    assert re.match(note, watch), watch
    assert (" open since " in text.splitlines()[0]) == note.startswith("Open")
