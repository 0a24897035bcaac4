"""Findings and their evidence as rows of tables, and the text of `mqreplay explain`."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

from evidence_keys import evidence_of
from mqreplay.cli.findings_command import print_explanation

MIDNIGHT = dt.datetime(2026, 11, 21, tzinfo=dt.UTC)
SECOND = dt.timedelta(seconds=1)


def finding(**differs: Any) -> dict[str, Any]:
    row = {"finding_id": "f1", "kind": "broker_down", "day": MIDNIGHT.date(), "from_ts": MIDNIGHT, "to_ts": MIDNIGHT}
    return row | {"severity": "info"} | differs


def record(table: str, *record_ids: str) -> list[dict[str, Any]]:
    return [evidence_of(table, record_id=each) for each in record_ids]


def printed(root: Path, finding_id: str, capsys: Any, limit: int | None = None) -> str:
    print_explanation(str(root), finding_id, None, as_json=False, limit=limit)
    return capsys.readouterr().out
