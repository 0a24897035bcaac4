"""Nights that are imported from a capture and clients' logs, or from logs alone: their answers to pulls."""

from __future__ import annotations

from collections import Counter
from io import StringIO
from pathlib import Path

import pytest

from importer.captures.hooked_nights import NIGHTS, unpacked
from mqreplay.importer.import_command import import_evidence
from night.made_nights import judge_folder

PULLS = {"hooked-4.9.7": 1225, "hooked-5.3.3": 1491}
ANSWERS = {
    "hooked-4.9.7": {"agree": 50, "undetermined": 12},
    "hooked-5.3.3": {"agree": 70, "undetermined": 14},
}


@pytest.mark.parametrize("name", NIGHTS)
@pytest.mark.first_case
def test_answers_to_pulls_differ_from_no_rule(name: str, tmp_path: Path) -> None:
    """Of 5.3.3, eight answers to a reset differed before: clients' logs lack the broker's remark, OFFSET_RESET."""
    night = unpacked(name, tmp_path / name)
    parts = [str(night.capture), str(night.folder / "logs")]
    import_evidence(parts, str(tmp_path / "recording"), StringIO())
    judged = judge_folder(tmp_path)
    answers = Counter(judged.table("gold.pull_answer")["judgement"])
    assert answers == ANSWERS[name]
    assert len(judged.table("silver.pull")) == PULLS[name]


RESET_LINES = """\
2026-11-26 21:08:00 INFO main - brokerName=die-1
2026-11-26 21:08:00 INFO main - brokerId=0
2026-11-26 21:08:00 INFO main - The broker[die-1, 127.0.0.1:60911] boot success. serializeType=JSON
2026-11-26 21:10:02 INFO AdminBrokerThread_4 - [reset-offset] reset offset started by 127.0.0.1:57522. \
topic=coin-struck, group=counters, timestamp=1795698587000, isForce=true
2026-11-26 21:10:02 INFO AdminBrokerThread_4 - Reset offset, topic=coin-struck, group=counters, queues=\
{"offsetTable":{{"brokerName":"die-1","queueId":0,"topic":"coin-struck"}:36,\
{"brokerName":"die-1","queueId":1,"topic":"coin-struck"}:36,\
{"brokerName":"die-1","queueId":2,"topic":"coin-struck"}:36,\
{"brokerName":"die-1","queueId":3,"topic":"coin-struck"}:37}}
"""


@pytest.mark.first_case
@pytest.mark.parametrize(
    ("broker_log", "counts"),
    [
        (None, {("die-1", "agree"): 2, ("die-1", "undetermined"): 4, ("die-2", "undetermined"): 4}),
        (RESET_LINES, {("die-1", "agree"): 6, ("die-2", "undetermined"): 4}),
    ],
)
def test_logs_of_clients_alone_show_no_wrong_answer(
    broker_log: str | None, counts: dict[tuple[str, str], int], tmp_path: Path
) -> None:
    """Two agree anyway: they are of pulls beyond the end of their queues. The log of die-1 shows its reset."""
    night = unpacked("hooked-5.3.3", tmp_path / "night")
    parts = [str(night.folder / "logs")]
    if broker_log is not None:
        file = tmp_path / "die-1" / "broker.log"
        file.parent.mkdir()
        file.write_text(broker_log)
        parts.append(str(file.parent))
    import_evidence(parts, str(tmp_path / "recording"), StringIO(), time_zone="+08:00")
    answers = judge_folder(tmp_path).table("gold.pull_answer")
    assert Counter(answers.select("broker_name", "judgement").rows()) == counts
