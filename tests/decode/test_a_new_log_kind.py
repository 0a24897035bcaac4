"""docs/development/a-new-log-kind.md: its two files are all that a night needs."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from page_files import files_of, run
from tests_shared import ROOT

FILES = files_of("docs/development/a-new-log-kind.md")
COMMAND = ["-m", "mqreplay.cli.command_line"]


@pytest.mark.long
def test_two_files_bring_a_kind_of_log_into_the_night(tmp_path: Path) -> None:
    for folder in ("lib", "schemas", "conf"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    ours = [name for name in FILES if "/" in name]
    for name in ours:
        assert not (tmp_path / name).exists()
        (tmp_path / name).write_text(FILES[name], encoding="utf-8")
    assert len(ours) == 2
    recording, warehouse = tmp_path / "recording", str(tmp_path / "warehouse")
    recording.mkdir()
    (recording / "disk_usage.jsonl").write_text(FILES["disk_usage.jsonl"], encoding="utf-8")
    night = ["nightly", str(recording), "--warehouse", warehouse, "--cluster", "c", "--engine", "local"]
    done = run([*COMMAND, *night], tmp_path / "lib")
    assert done.returncode == 0, done.stdout + done.stderr  # with the expectations of the contract

    def rows(query: str) -> list[dict[str, Any]]:
        made = run([*COMMAND, "sql", query, "--warehouse", warehouse, "--format", "json"], tmp_path / "lib")
        assert made.returncode == 0, made.stderr
        return [json.loads(line) for line in made.stdout.splitlines()]

    assert rows("SELECT broker_name, used_bytes FROM silver.disk_usage") == [
        {"broker_name": "broker-a", "used_bytes": 7_000_000}
    ]
    assert rows("SELECT kind, rows_in, rows_out, rows_quarantined FROM bronze.source_file") == [
        {"kind": "disk_usage", "rows_in": 2, "rows_out": 1, "rows_quarantined": 1}
    ]
    assert rows("SELECT code FROM bronze.quarantine") == [{"code": "wrong_type"}]


def test_its_examples_run(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "lib", tmp_path / "lib", ignore=shutil.ignore_patterns("__pycache__"))
    module = "lib/mqreplay/decode/disk_usage.py"
    (tmp_path / module).write_text(FILES[module], encoding="utf-8")
    done = run(["-m", "doctest", "-v", str(tmp_path / module)], tmp_path / "lib")
    assert "1 passed" in done.stdout, done.stdout + done.stderr
    script = (
        "from mqreplay.report.evidence_words import WORDINGS, what;"
        "from mqreplay.decode.recording.advice import label_of;"
        "row = {'broker_name': 'b', 'broker_id': 0, 'used_bytes': 7000};"
        "print(label_of('disk_usage'), '|', what(WORDINGS['silver.disk_usage'], row))"
    )
    done = run(["-c", script], tmp_path / "lib")
    assert done.stdout == "disk usage of the brokers | 7,000 bytes used, on b-0\n", done.stderr
