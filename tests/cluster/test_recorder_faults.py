"""Faults of a recorder: it is killed or suspended, its disk is full, the wall clock steps, no server answers."""

from __future__ import annotations

import errno
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from cluster.clients import client_processes, wait_until
from cluster.clock_steps import ClockSteps
from cluster.clusters import Cluster, running_cluster
from cluster.recorders import Recorder, lines_of, recorder
from reliability.file_faults import NEVER_AGAIN, FileFaults, compile_layer

CUT_S = 60
HOUR_S = 3600
pytestmark = pytest.mark.long


@pytest.fixture(scope="module", params=["5.3.3", "4.9.7"])
def cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("cluster")
    with (
        running_cluster(folder, request.param, {"die-1": 0}) as cluster,
        client_processes(cluster, "one") as (client,),
    ):
        client.create_topic("coins", {"die-1": 2})
        client.consumer("counters", {"coins": "*"})
        client.send("coins", "coin-1")
        yield cluster


def test_a_killed_recorder_goes_on_in_the_same_folder(cluster: Cluster, tmp_path: Path) -> None:
    out = tmp_path / "recording"
    with recorder(cluster.name_servers, out, "--every", "1s") as running:
        _wait_for_polls(running, 5)
        running.kill()
    before = lines_of(out, "broker_runtime")
    assert len(before) >= 5
    with recorder(cluster.name_servers, out, "--every", "1s") as running:
        _wait_for_polls(running, len(before) + 5)
        running.finish()
    assert lines_of(out, "broker_runtime")[: len(before)] == before
    assert [line["kind"] for line in lines_of(out, "recorder_events")].count("start") == 2


def test_a_full_disk_gives_one_line_and_the_recording_goes_on(cluster: Cluster, tmp_path: Path) -> None:
    out = tmp_path / "recording"
    faults = FileFaults(compile_layer(tmp_path), tmp_path / "faults", out)
    with recorder(cluster.name_servers, out, "--every", "1s", env=faults.environment) as running:
        _wait_for_polls(running, 5)
        faults.fail(errno.ENOSPC, faults.count)
        wait_until(lambda: "disk is full" in running.output(), "the recorder says that the disk is full")
        time.sleep(5)
        assert running.process.poll() is None, running.output()
        written = len(running.lines("broker_runtime"))
        faults.fail(errno.ENOSPC, NEVER_AGAIN)
        _wait_for_polls(running, written + 3)
        running.finish()
    assert running.output().count("disk is full") == 1, running.output()
    assert "Traceback" not in running.output()


def test_a_stepped_clock_does_not_move_the_times(cluster: Cluster, tmp_path: Path) -> None:
    clock = ClockSteps(tmp_path / "clock")
    out = tmp_path / "recording"
    begin_ms = time.time() * 1000
    with recorder(cluster.name_servers, out, "--every", "1s", env=clock.environment) as running:
        _wait_for_polls(running, 5)
        clock.step(HOUR_S)
        wait_until(lambda: _events(running, "clock_step") == 1, "the recorder notes the step")
        _wait_for_polls(running, len(running.lines("broker_runtime")) + 5)
        clock.step(0)
        wait_until(lambda: _events(running, "clock_step") == 2, "the recorder notes the step back")
        running.finish()
    end_ms = time.time() * 1000
    steps = [line["count"] for line in running.lines("recorder_events") if line["kind"] == "clock_step"]
    assert [round(step / 1000) for step in steps] == [HOUR_S, -HOUR_S]
    times = [line["ts"] for line in running.lines("broker_runtime")]
    assert times == sorted(times)
    assert begin_ms - 1000 <= times[0] <= times[-1] <= end_ms + 1000


def test_a_suspended_recorder_notes_what_it_missed(cluster: Cluster, tmp_path: Path) -> None:
    with recorder(cluster.name_servers, tmp_path / "recording", "--every", "1s") as running:
        _wait_for_polls(running, 5)
        running.process.send_signal(signal.SIGSTOP)
        begin_ms = round(time.time() * 1000)
        time.sleep(15)
        end_ms = round(time.time() * 1000)
        running.process.send_signal(signal.SIGCONT)
        wait_until(lambda: _events(running, "skipped") > 0, "the recorder notes the polls that it did not make")
        running.finish()
    skipped = [line for line in running.lines("recorder_events") if line["kind"] == "skipped"]
    assert min(line["from_ts"] for line in skipped) <= begin_ms + 2000
    assert max(line["to_ts"] for line in skipped) >= end_ms - 2000


def test_servers_that_do_not_answer_for_a_minute_are_evidence(cluster: Cluster, tmp_path: Path) -> None:
    """As in a network that drops all packets: connections stay, and nothing is answered."""
    with recorder(cluster.name_servers, tmp_path / "recording", "--every", "1s") as running:
        _wait_for_polls(running, 5)
        for name in cluster.servers:
            cluster.pause(name)
        cut_ms = round(time.time() * 1000)
        try:
            time.sleep(CUT_S)
        finally:
            for name in cluster.servers:
                cluster.resume(name)
        mended_ms = round(time.time() * 1000)

        def answers_again() -> bool:
            lines = running.lines("broker_runtime")
            return lines[-1]["ts"] > mended_ms and lines[-1]["table"] is not None

        wait_until(answers_again, "the broker's answers are recorded again")
        running.finish()
    lines = running.lines("broker_runtime")
    silent = [line for line in lines if cut_ms + 1000 < line["ts"] < mended_ms - 5000]
    assert silent
    assert all(line["table"] is None and line["error"] for line in silent)
    assert "Traceback" not in running.output()


def _wait_for_polls(running: Recorder, count: int) -> None:
    def polled() -> bool:
        assert running.process.poll() is None, running.output()
        return len(running.lines("broker_runtime")) >= count

    wait_until(polled, f"{count} polls are recorded")


def _events(running: Recorder, kind: str) -> int:
    return sum(line["kind"] == kind for line in running.lines("recorder_events"))
