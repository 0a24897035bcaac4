"""Time in which no task ran, out of an event log."""

from __future__ import annotations

import json

import pytest

from bench.driver_share import covered, driver_share


def test_spans_that_overlap_count_once():
    assert covered([(0, 2), (1, 3), (5, 6), (5.5, 5.7)]) == 4


def test_the_share_of_a_log(tmp_path):
    tasks = [(1000, 3000), (2000, 4000), (9000, 10000)]
    events = [{"Event": "SparkListenerApplicationStart", "Timestamp": 0}]
    events += [{"Event": "SparkListenerTaskEnd", "Task Info": {"Launch Time": a, "Finish Time": b}} for a, b in tasks]
    events += [{"Event": "SparkListenerJobStart", "Job ID": job} for job in range(3)]
    log = tmp_path / "eventlog_v2_local-1"
    log.mkdir()
    (log / "events_1_local-1").write_text("\n".join(map(json.dumps, events)))
    (log / ".events_1_local-1.crc").write_bytes(b"\xff\x00")
    assert driver_share(tmp_path) == {"wall_s": 10.0, "task_s": 4.0, "driver_share": 0.6, "jobs": 3}


def test_no_log_is_said(tmp_path):
    with pytest.raises(SystemExit, match="no event log"):
        driver_share(tmp_path)
