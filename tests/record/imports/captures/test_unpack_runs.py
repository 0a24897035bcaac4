"""Runs that are killed, meet a full disk, or write into one folder."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
from io import StringIO

import pytest

from decode.capture.wire import BROKER, Talk, command, framed, heartbeat, pcap, registration
from mqreplay.cli.command_line import main
from mqreplay.errors import InputError
from mqreplay.record.imports.captures.unpack import JOURNAL, unpack
from record.imports.captures.small_captures import CAPTURE
from tests_shared import ROOT

PATHS = os.environ | {"PYTHONPATH": str(ROOT / "lib")}


def names_in(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_link_to_a_capture_is_one(small, tmp_path):
    (tmp_path / "wire.pcap").symlink_to(small)
    unpack([str(tmp_path / "wire.pcap")], str(tmp_path / "out"), StringIO())
    assert (tmp_path / "out" / "pull_log.jsonl.gz").exists()


@pytest.fixture
def small(tmp_path):
    """A capture with records of three kinds."""
    talk, asking = Talk(), Talk("10.0.0.9:50000", "10.0.0.5:9876")
    sent = [asking.ask(registration("b", 0, BROKER, 1, "Orders")), talk.ask(heartbeat("c@1", 1))]
    sent += [talk.ask(command(105, 2, ext={"topic": "t"})), talk.ask(command(11, 3, ext={"topic": "t"}))]
    path = tmp_path / "small.pcap"
    path.write_bytes(pcap(framed(sent)))
    return path


KILLED = """
import os, sys
from io import StringIO
from pathlib import Path
from mqreplay.record.imports.captures.unpack import unpack

left = int(sys.argv[3])

def die(event, args):
    global left
    if event in ("os.rename", "os.remove", "open") and ("unfinished" in str(args[0]) or "jsonl" in str(args[0])):
        left -= 1
        if left < 0:
            os.kill(os.getpid(), 9)

sys.addaudithook(die)
unpack([sys.argv[1]], sys.argv[2], StringIO())
"""


def test_a_run_that_was_killed_anywhere_is_made_anew(small, tmp_path):
    whole = tmp_path / "whole"
    unpack([str(small)], str(whole), StringIO())
    assert names_in(whole) == ["brokers.json", "heartbeats.jsonl.gz", "pull_log.jsonl.gz", "routes.jsonl.gz"]
    died = 0
    for left in range(100):
        folder = tmp_path / f"killed{left}"
        status = subprocess.run(
            [sys.executable, "-c", KILLED, small, folder, str(left)], env=PATHS, check=False
        ).returncode
        died += status == -9
        unfinished = any(name.endswith(".unfinished") for name in names_in(folder))
        if status == 0:
            break
        for name in names_in(folder):
            if not name.endswith(".unfinished"):
                assert (folder / name).read_bytes() == (whole / name).read_bytes(), "never a half file"
        if unfinished or not names_in(folder):
            (folder / "consume_log.jsonl.gz").write_bytes(b"somebody's")
            unpack([str(small)], str(folder), StringIO())
            assert (folder / "consume_log.jsonl.gz").read_bytes() == b"somebody's"
            (folder / "consume_log.jsonl.gz").unlink()
        assert {n: (folder / n).read_bytes() for n in names_in(folder)} == {
            n: (whole / n).read_bytes() for n in names_in(whole)
        }
    assert died == left > 15


def test_brokers_json_that_is_there_is_kept(small, tmp_path):
    folder = tmp_path / "out"
    folder.mkdir()
    (folder / "brokers.json").write_bytes(b"a recorder's")
    out = StringIO()
    unpack([str(small)], str(folder), out)
    assert out.getvalue().endswith("note: brokers.json already exists and is kept\n")
    assert (folder / "brokers.json").read_bytes() == b"a recorder's"


def test_a_file_that_somebody_put_there_since_a_run_was_killed_stays(small, tmp_path):
    folder = tmp_path / "out"
    folder.mkdir()
    (folder / "routes.jsonl.gz").write_bytes(b"a recorder's")
    other = os.lstat(small)
    identity = [other.st_dev, other.st_ino, other.st_size, other.st_mtime_ns]
    (folder / JOURNAL).write_text(json.dumps({"routes.jsonl.gz": [1, 2, 3, 4], "../small.pcap": identity}))
    with pytest.raises(InputError, match="has files of routes already"):
        unpack([str(small)], str(folder), StringIO())
    assert (folder / "routes.jsonl.gz").read_bytes() == b"a recorder's"
    assert names_in(folder) == ["routes.jsonl.gz"]
    assert small.exists()


def test_two_runs_at_once_into_one_folder(small, tmp_path):
    folder = tmp_path / "out"
    folder.mkdir()
    held = os.open(folder, os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_EX)
    with pytest.raises(InputError, match="another unpack writes into"):
        unpack([str(small)], str(folder), StringIO())
    os.close(held)
    unpack([str(small)], str(folder), StringIO())


FULL = """
import resource, signal, sys
from mqreplay.cli.command_line import main

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[3]), int(sys.argv[3])))
sys.exit(main(["unpack", sys.argv[1], "--out", sys.argv[2]]))
"""


@pytest.mark.parametrize(("of_sample", "most"), [(False, 0), (False, 20), (True, 40_000)])
def test_a_disk_without_room(small, tmp_path, of_sample, most):
    # A file may have so many bytes: EFBIG where a full disk gives ENOSPC, while it is written or when it is closed.
    done = subprocess.run(
        [sys.executable, "-c", FULL, CAPTURE if of_sample else small, tmp_path / "out", str(most)],
        env=PATHS,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1, done.stderr
    assert "failed: File too large; no file was kept" in done.stderr
    assert names_in(tmp_path / "out") == []
    unpack([str(small)], str(tmp_path / "out"), StringIO())


def test_a_folder_that_is_a_file(tmp_path, capsys):
    (tmp_path / "out").write_text("")
    assert main(["unpack", str(CAPTURE), "--out", str(tmp_path / "out")]) == 2
    assert "out is not a writable folder: File exists" in capsys.readouterr().err
