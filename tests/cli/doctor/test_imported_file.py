"""Files that only an import reads: logs and outputs of mqadmin."""

from __future__ import annotations

from pathlib import Path

import pytest

from mqreplay.cli.doctor.files import examine_file
from mqreplay.cli.doctor.verdict import Verdict
from mqreplay.errors import InputError

LESS = (
    "[NOTIFYME]update consumer offset less than store. clientHost=10.0.0.3:35702, key=t@g, queueId=2, "
    "requestOffset=5, storeOffset=9"
)


def examined(folder: Path, name: str, text: str) -> Verdict:
    (folder / name).write_text(text, encoding="utf-8")
    return examine_file(str(folder / name))


@pytest.mark.parametrize("name", ["broker.log", "notes.txt", "tail.out"])
def test_a_log_says_how_many_lines_an_import_uses(tmp_path: Path, name: str) -> None:
    verdict = examined(tmp_path, name, f"2026-03-09 08:11:00 WARN x - {LESS}\n08:12:00 {LESS}\nhello\n")
    assert (verdict.whole, verdict.kind) == (True, "log")
    lines = verdict.facts["lines"]
    assert isinstance(lines, dict)
    assert (lines["read"], lines["used"]) == (3, 1)
    assert "without a date" in verdict.as_text()


def test_a_log_without_a_usable_line_is_wrong_and_says_why(tmp_path: Path) -> None:
    verdict = examined(tmp_path, "broker.log", "hello\n")
    assert not verdict.whole
    assert "no line of a RocketMQ log" in verdict.as_text()


def test_outputs_of_mqadmin_are_counted_by_command(tmp_path: Path) -> None:
    table = "#Broker Name  #QID  #Min Offset  #Max Offset  #Last Updated\nbroker-a  0  0  7  2026-03-09 08:11:00,100\n"
    verdict = examined(tmp_path, "session.txt", f"$ mqadmin topicStatus -t orders\n{table}\n" * 2)
    assert verdict.facts["outputs"] == {"topicStatus": 2}


def test_any_other_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="neither its name nor its content"):
        examined(tmp_path, "notes.txt", "hello\n")
