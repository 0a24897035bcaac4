"""Nights that are imported from a capture and clients' logs: a pull that both have is judged once."""

from __future__ import annotations

from collections import Counter
from io import StringIO
from pathlib import Path

import pytest

from mqreplay.record.imports.import_command import import_evidence
from night.made_nights import judge_folder
from record.imports.captures.hooked_nights import NIGHTS, unpacked

PULLS = {"hooked-4.9.7": 1225, "hooked-5.3.3": 1491}
ANSWERS = {
    "hooked-4.9.7": {"agree": 50, "undetermined": 12},
    "hooked-5.3.3": {"agree": 70, "undetermined": 14},
}


@pytest.mark.parametrize("name", NIGHTS)
def test_answers_to_pulls_differ_from_no_rule(name: str, tmp_path: Path) -> None:
    """Of 5.3.3, eight answers to a reset differed before: clients' logs lack the broker's remark, OFFSET_RESET."""
    night = unpacked(name, tmp_path / name)
    parts = [str(night.capture), str(night.folder / "logs")]
    import_evidence(parts, str(tmp_path / "recording"), StringIO())
    judged = judge_folder(tmp_path)
    answers = Counter(judged.table("gold.pull_answer")["judgement"])
    assert answers == ANSWERS[name]
    assert len(judged.table("silver.pull")) == PULLS[name]
