"""A log that is larger than any output of mqadmin."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from mqreplay.importer.import_command import import_evidence
from mqreplay.importer.mqadmin import output_files

QUEUE = "MessageQueue [topic=t, brokerName=b, queueId=3]"


def test_it_is_read_and_not_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output_files, "MOST_TEXT", 1000)
    message = f"[persistAll] Group: g ClientId: c updateConsumeOffsetToBroker {QUEUE} 5"
    (tmp_path / "app.log").write_text(f"2026-03-09 08:11:00,000 INFO x - {message}\n" * 20)
    out = io.StringIO()
    import_evidence([str(tmp_path / "app.log")], str(tmp_path / "rec"), out, as_json=True)
    report = json.loads(out.getvalue())
    assert report["not_recognised"] == []
    assert report["lines"] == {"read": 20, "used": 20, "left_out": {}, "examples": {}}
