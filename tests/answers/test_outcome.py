"""What a run leaves for whoever started it, read from the tables."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

from made_warehouse import CLUSTER, made_warehouse
from mqreplay.answers.outcome import Outcome, outcome_of
from mqreplay.lake.warehouse import Warehouse

FIRST, LAST = dt.date(2026, 11, 20), dt.date(2026, 11, 21)
AT = dt.datetime(2026, 11, 21, 2, 0, 0, 123_456, tzinfo=dt.UTC)


def test_a_warehouse_without_tables_has_an_empty_outcome(tmp_path: Path) -> None:
    found = outcome_of(Warehouse(str(tmp_path)), CLUSTER)
    assert {each["state"] for each in found.coverage} == {"none"}
    found.coverage = []
    assert found == Outcome(CLUSTER)


def test_rows_of_the_cluster_are_counted(tmp_path: Path) -> None:
    files = [{"path": str(n), "status": status} for n, status in enumerate(["read", "ignored", "read"])]
    judged = [("agree", 3, FIRST), ("differ", 1, FIRST), ("agree", 4, LAST)]
    tables = {
        "bronze.source_file": [
            {"rows_in": 1, "rows_out": 1, "rows_quarantined": 0, "rows_duplicate": 0} | row
            for row in (*files, {"path": "9", "status": "read", "cluster": "d"})
        ],
        "bronze.quarantine": [{"line_number": n} for n in range(3)] + [{"cluster": "d"}],
        "gold.judgement": [
            {"decision": "gold.allocation", "judgement": word, "decisions": n, "day": day} for word, n, day in judged
        ],
        "gold.validation_result": [
            {"expectation": "b", "passed": False, "day": LAST, "unexpected_count": 2},
            {"expectation": "a", "passed": False, "day": LAST},
            {"expectation": "a", "passed": True, "day": LAST, "run_id": "y"},
            {"expectation": "z", "passed": False, "day": None},
        ],
    }
    found = outcome_of(made_warehouse(tmp_path, tables), CLUSTER)
    assert found.files == {"read": 2, "ignored": 1}
    assert found.quarantined == 3
    assert found.judgements == {"gold.allocation": {"agree": 7, "differ": 1}}
    assert found.expectations == 4
    assert [(row["day"], row["expectation"], row["unexpected_count"]) for row in found.failed_expectations] == [
        (None, "z", None),
        ("2026-11-21", "a", None),
        ("2026-11-21", "b", 2),
    ]


def test_findings_are_worst_first_and_their_instants_are_text_in_utc(tmp_path: Path) -> None:
    later = AT + dt.timedelta(minutes=1)
    rows = [
        {"finding_id": "i", "severity": "info", "from_ts": AT, "to_ts": None},
        {"finding_id": "w", "severity": "warning", "from_ts": later},
        {"finding_id": "over", "severity": "info", "from_ts": AT, "day": FIRST, "summary": "for 9 s"},
        {"finding_id": "over", "severity": "critical", "from_ts": AT, "day": LAST, "summary": "for 99 s"},
        {"finding_id": "v", "severity": "warning", "from_ts": AT},
        {"finding_id": "u", "severity": "warning", "from_ts": None},
        {"finding_id": "other", "severity": "critical", "from_ts": AT, "cluster": "d"},
    ]
    evidence = [{"table_name": "silver.topic_config", "topic": "T", "ts": AT}]
    rows[0]["evidence"] = evidence
    found = outcome_of(made_warehouse(tmp_path, {"gold.finding": rows}), CLUSTER).findings
    assert [f["finding_id"] for f in found] == ["over", "u", "v", "w", "i"]
    assert found[0]["summary"] == "for 99 s"
    assert (found[-1]["from_ts"], found[-1]["to_ts"]) == ("2026-11-21T02:00:00.123Z", None)
    assert found[-1]["evidence"] == [evidence[0] | {"ts": "2026-11-21T02:00:00.123Z"}]
    assert not {"cluster", "day"} & found[0].keys()
