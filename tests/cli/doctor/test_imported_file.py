"""Files that only an import reads: logs and outputs of mqadmin."""

from __future__ import annotations

from pathlib import Path

import pytest

from mqreplay.cli.doctor.files import examine_file
from mqreplay.cli.doctor.verdict import Verdict
from mqreplay.words.errors import InputError

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
    assert "docs/symptoms.md#old-messages-come-again" in verdict.as_text()


def test_a_log_without_a_usable_line_is_wrong_and_says_why(tmp_path: Path) -> None:
    verdict = examined(tmp_path, "broker.log", "hello\n")
    assert not verdict.whole
    assert "none of its lines is in a layout of RocketMQ's logs" in verdict.as_text()


def test_outputs_of_mqadmin_are_counted_by_command(tmp_path: Path) -> None:
    table = "#Broker Name  #QID  #Min Offset  #Max Offset  #Last Updated\nbroker-a  0  0  7  2026-03-09 08:11:00,100\n"
    verdict = examined(tmp_path, "session.txt", f"$ mqadmin topicStatus -t orders\n{table}\n" * 2)
    assert verdict.facts["outputs"] == {"topicStatus": 1}
    assert "the same command is in it several times without a date between" in verdict.as_text(), "as import says"
    dated = f"$ date -u\nMon Mar  9 00:12:00 UTC 2026\n$ mqadmin topicStatus -t orders\n{table}\n"
    again = examined(tmp_path, "dated.txt", dated + dated.replace("00:12", "00:15"))
    assert again.facts["outputs"] == {"topicStatus": 2}


def test_any_other_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="neither its name nor its content"):
        examined(tmp_path, "notes.txt", "hello\n")


BROKER_CONF = "brokerClusterName=C\nbrokerName=broker-a\nbrokerId=1\n"
STACKS = "2021-11-04 10:00:00\nFull thread dump OpenJDK 64-Bit Server VM (25.292-b10 mixed mode):\n"


def test_a_configuration_is_what_an_import_says_it_is(tmp_path: Path) -> None:
    verdict = examined(tmp_path, "broker.conf", BROKER_CONF)
    assert (verdict.whole, verdict.kind) == (True, "import")
    assert "configuration of a broker, by its content" in verdict.as_text()


def test_a_file_that_no_decision_uses_is_named_with_what_to_give_instead(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"import does not use it: it is a thread dump of a JVM .*; give "):
        examined(tmp_path, "jstack.txt", STACKS)
    with pytest.raises(InputError, match="import does not use it: no decision uses it: a marker or checkpoint"):
        examined(tmp_path, "checkpoint", "")


def test_an_output_that_failed_says_so_and_points_to_a_symptom(tmp_path: Path) -> None:
    table = "#Broker Name  #QID  #Min Offset  #Max Offset  #Last Updated\nbroker-a  0  0  7  2026-03-09 08:11:00,100\n"
    failed = (
        "$ mqadmin consumerProgress -g pay\nCaused by: a.b.MQClientException: CODE: 17  DESC: No topic route info\n"
    )
    text = examined(tmp_path, "session.txt", f"$ mqadmin topicStatus -t orders\n{table}\n{failed}").as_text()
    assert "mqadmin consumerProgress -g pay failed: code 17: No topic route info" in text
    assert "docs/symptoms.md#the-lag-alarm-rings" in text
