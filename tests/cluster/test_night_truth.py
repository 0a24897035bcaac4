"""The truth of a made night: faults with their times, and sends counted by how they ended."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from cluster.night_truth import Truth


def written(truth: Truth, folder: Path) -> dict[str, Any]:
    truth.write(folder / "night.truth.json")
    found: dict[str, Any] = json.loads((folder / "night.truth.json").read_text())
    return found


def test_a_fault_that_lasts_has_its_end(tmp_path: Path) -> None:
    truth = Truth("harbour", "5.3.3")
    with truth.lasting("slave_stopped", broker_name="pier-c", broker_id=1):
        truth.fault("queues_added", topic="curd")
    lasting, moment = written(truth, tmp_path)["faults"]
    assert lasting["fault"] == "slave_stopped"
    assert lasting["broker_id"] == 1
    assert lasting["at"] <= moment["at"] <= lasting["until"]
    assert "until" not in moment


def test_sends_are_counted_by_topic_and_status(tmp_path: Path) -> None:
    truth = Truth("harbour", "5.3.3")
    for topic, status in (("ledger", "SEND_OK"), ("ledger", "FLUSH_SLAVE_TIMEOUT"), ("ledger", "SEND_OK")):
        truth.send(topic, status)
    sends = written(truth, tmp_path)["sends"]
    assert [(send["topic"], send["status"], send["count"]) for send in sends] == [
        ("ledger", "FLUSH_SLAVE_TIMEOUT", 1),
        ("ledger", "SEND_OK", 2),
    ]
    assert all(send["first"] <= send["last"] for send in sends)
