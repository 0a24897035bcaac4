"""Only regular files of the recording are opened, even if they are replaced after they were listed."""

from __future__ import annotations

import os
import signal

import pytest

from mqreplay.ingest import opening
from mqreplay.ingest.lines import file_sha256
from mqreplay.ingest.opening import open_recorded


@pytest.fixture
def recording(tmp_path):
    folder = tmp_path / "recording"
    folder.mkdir()
    (folder / "pull_log.jsonl").write_text("{}\n")
    (tmp_path / "secret").write_text("secret\n")
    return folder


def content(path, root) -> bytes:
    with open_recorded(str(path), None if root is None else str(root)) as stream:
        return stream.read()


def test_a_link_must_stay_inside(recording, tmp_path):
    (recording / "inside").symlink_to("pull_log.jsonl")
    (recording / "outside").symlink_to(tmp_path / "secret")
    (tmp_path / "recording-2").mkdir()
    (tmp_path / "recording-2" / "near").write_text("secret\n")
    (recording / "near").symlink_to(tmp_path / "recording-2" / "near")
    (recording / "folder").symlink_to(tmp_path)
    assert content(recording / "inside", recording) == b"{}\n"
    for path in (recording / "outside", recording / "near", recording / "folder" / "secret"):
        with pytest.raises(OSError, match="leads out of the recording"):
            content(path, recording)
        assert content(path, None) == b"secret\n"


def test_the_recording_itself_may_be_a_link(recording, tmp_path):
    (tmp_path / "link").symlink_to(recording)
    assert content(tmp_path / "link" / "pull_log.jsonl", tmp_path / "link") == b"{}\n"


def test_a_link_that_is_swapped_in_between_looking_and_opening_is_seen(recording, tmp_path, monkeypatch):
    path = recording / "pull_log.jsonl"
    opens = os.open

    def swapped(name, flags):
        path.unlink()
        path.symlink_to(tmp_path / "secret")
        descriptor = opens(name, flags)
        path.unlink()
        path.write_text("{}\n")
        return descriptor

    monkeypatch.setattr(opening.os, "open", swapped)
    with pytest.raises(OSError, match="leads out of the recording"):
        content(path, recording)


@pytest.mark.parametrize("root", [True, False])
def test_what_is_no_file_is_neither_opened_nor_waited_for(recording, monkeypatch, root):
    os.mkfifo(recording / "pipe")
    (recording / "device").symlink_to("/dev/zero")
    opened = []
    opens = os.open
    monkeypatch.setattr(opening.os, "open", lambda name, flags: opened.append(name) or opens(name, flags))
    for path in (recording / "pipe", recording / "device", recording):
        with pytest.raises(OSError, match="not a file"):
            content(path, recording if root else None)
    assert opened == []


def test_a_pipe_that_takes_the_place_of_a_file_does_not_block(recording, monkeypatch):
    path = recording / "pull_log.jsonl"
    looks = os.stat

    def swapped(name, **given):
        found = looks(name, **given)
        if name == str(path) and not path.is_fifo():
            path.unlink()
            os.mkfifo(path)
        return found

    def waited(*_):
        raise TimeoutError("it blocks")

    monkeypatch.setattr(opening.os, "stat", swapped)
    before = signal.signal(signal.SIGALRM, waited)
    signal.alarm(10)
    try:
        with pytest.raises(OSError, match="not a file"):
            file_sha256(str(path), str(recording))
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def test_nothing_stays_open(recording):
    os.mkfifo(recording / "pipe")
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        with pytest.raises(OSError, match="out of the recording"):
            content("/etc/hostname", recording)
    assert len(os.listdir("/proc/self/fd")) == before
