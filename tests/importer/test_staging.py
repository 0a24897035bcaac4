"""A recording gets its name when all of it is on the disk; what a killed import left is removed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from importer.copied_files import tarball
from mqreplay.importer import staging

LINE = b"2026-11-21 00:00:00 INFO BrokerControllerScheduledThread1 - hello hello\n"


def test_all_is_synced_before_the_rename_and_the_name_after(tmp_path, monkeypatch):
    out, seen = tmp_path / "rec", []
    monkeypatch.setattr(os, "sync", lambda: seen.append((out.exists(), sorted(os.listdir(staging.staging_of(out))))))
    monkeypatch.setattr(staging, "sync", lambda path: seen.append((out.exists(), path)))
    with staging.staged(out) as folder:
        (folder / "brokers.json").write_text("{}")
    assert seen == [(False, ["brokers.json"]), (True, tmp_path)]


def started(source, out):
    command = [sys.executable, "-m", "mqreplay.cli", "import", str(source), "--out", str(out)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def content(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.long
@pytest.mark.parametrize("next_out", ["out", pytest.param("other", marks=pytest.mark.long)])
def test_the_next_import_removes_what_a_killed_one_left(next_out, tmp_path):
    night = tmp_path / "night"
    tarball(night)
    (night / "broker.log").write_bytes(LINE * 20_000)
    recordings = tmp_path / "recordings"
    unfinished = staging.staging_of(recordings / "out")
    killed = started(night, recordings / "out")
    while not any((unfinished / staging.SPOOL).glob("*")) and killed.poll() is None:
        time.sleep(0.01)
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    assert killed.returncode == -signal.SIGKILL
    assert any((unfinished / staging.SPOOL).iterdir())
    reports = []
    for out in (recordings / next_out, tmp_path / "undisturbed" / next_out):
        report, errors = (run := started(night, out)).communicate()
        assert (run.returncode, errors) == (0, b"")
        reports.append(report.replace(str(out).encode(), b"OUT"))
    assert os.listdir(recordings) == [next_out]
    assert content(recordings / next_out) == content(out)
    assert reports[0] == reports[1]


def test_an_import_beside_that_runs_keeps_its_files(tmp_path):
    with staging.staged(tmp_path / "one") as folder:
        (folder / "brokers.json").write_text("{}")
        with staging.staged(tmp_path / "two"):
            pass
    assert list(content(tmp_path / "one").values()) == [b"{}"]
