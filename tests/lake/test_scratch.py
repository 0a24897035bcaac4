"""Temporary files are in one folder per process; the next process removes the folder of a killed one."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mqreplay.lake import scratch as module
from mqreplay.lake.scratch import MARKER, PARTS, remove_dead, scratch
from mqreplay.words.errors import InputError

LIB = Path(__file__).parents[2] / "lib"
MINE = f"mqreplay-{os.getuid()}-"
USE = """
import sys
from mqreplay.lake.scratch import scratch
(scratch().part("spark") / "block").write_text("shuffle")
print(scratch().folder, flush=True)
sys.stdin.read()
"""


@contextmanager
def process(parent: Path) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """A process that uses its folder below ``parent`` until its stdin ends."""
    env = {**os.environ, "TMPDIR": str(parent), "PYTHONPATH": str(LIB)}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", USE], env=env, **pipes) as running:
        assert running.stdout is not None
        yield running, Path(running.stdout.readline().rstrip("\n"))


@pytest.fixture
def parent(tmp_path: Path) -> Path:
    """A TMPDIR with blanks and other letters in its name."""
    folder = tmp_path / "temporary files é"
    folder.mkdir()
    return folder


def test_folder_is_of_one_user_and_gone_with_the_process(parent: Path) -> None:
    with process(parent) as (_, folder):
        assert (folder.parent, folder.stat().st_mode & 0o777) == (parent, 0o700)
        assert {path.name for path in folder.iterdir()} == {*PARTS, MARKER}
        assert remove_dead(parent) == []
        assert (folder / "spark" / "block").exists()
    assert list(parent.iterdir()) == []


def test_what_a_killed_process_left_is_removed_by_the_next(parent: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(parent))
    with process(parent) as (_, alive):
        with process(parent) as (killed, dead):
            killed.send_signal(signal.SIGKILL)
        assert (dead / "spark" / "block").exists()
        with process(parent) as (_, folder):
            assert sorted(parent.iterdir()) == sorted([alive, folder])


def test_what_a_child_still_holds_is_not_removed(parent: Path) -> None:
    """As Java, which gets the lock and ends a moment after Python."""
    with process(parent) as (killed, dead):
        killed.send_signal(signal.SIGKILL)
    handle = os.open(dead / MARKER, os.O_RDWR)
    fcntl.flock(handle, fcntl.LOCK_EX)
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, pass_fds=(handle,)):
        os.close(handle)
        assert remove_dead(parent) == []
    assert remove_dead(parent) == [dead]


def test_what_is_not_provably_ours_stays(parent: Path) -> None:
    victim = parent.parent / "victim"
    made = {name: parent / f"{MINE}{name}" for name in ("unmarked", "open", "fifo", "linked", "foreign")}
    for folder in (victim, *made.values()):
        folder.mkdir(mode=0o700)
        (folder / "precious").touch()
    for name in ("open", "foreign"):
        (made[name] / MARKER).touch()
    (victim / MARKER).touch()
    made["open"].chmod(0o777)
    os.mkfifo(made["fifo"] / MARKER)
    (made["linked"] / MARKER).symlink_to(victim / MARKER)
    (parent / f"{MINE}link").symlink_to(victim)
    (parent / f"{MINE}file").touch()
    (parent / f"mqreplay-{os.getuid()}").symlink_to(victim)
    if os.getuid() == 0:
        os.chown(made["foreign"], 65534, 65534)
    else:
        made["foreign"].chmod(0o750)
    before = sorted(parent.rglob("*")), sorted(victim.iterdir())
    assert remove_dead(parent) == []
    with process(parent) as (_, folder):
        assert folder.stat().st_mode & 0o777 == 0o700
    assert (sorted(parent.rglob("*")), sorted(victim.iterdir())) == before


def test_a_removal_that_breaks_off_is_finished_by_the_next(parent: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with process(parent) as (killed, dead):
        killed.send_signal(signal.SIGKILL)
    with monkeypatch.context() as patched:
        patched.setattr(module.Path, "rmdir", lambda self: (_ for _ in ()).throw(OSError("killed")))
        patched.setattr(module.Path, "unlink", lambda self, missing_ok=False: (_ for _ in ()).throw(OSError("killed")))
        assert remove_dead(parent) == []
    assert [path.name for path in dead.iterdir()] == [MARKER]
    assert remove_dead(parent) == [dead]


def test_a_process_that_may_not_remove_its_folder_leaves_it_to_the_next(parent: Path, monkeypatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(parent))
    made = scratch.__wrapped__()
    with monkeypatch.context() as patched:
        patched.setattr(module.Path, "rmdir", lambda self: (_ for _ in ()).throw(PermissionError("confined")))
        module._remove_own(made.folder, os.getpid())
    assert [path.name for path in made.folder.iterdir()] == [MARKER]
    os.close(made.lock)
    assert remove_dead(parent) == [made.folder]


@pytest.mark.parametrize("name", ["a,b", "a${env:HOME}", "a\nb", os.fsdecode(b"\xe9")])
def test_names_that_spark_cannot_use_are_refused_in_one_line(name: str, tmp_path: Path, monkeypatch) -> None:
    (tmp_path / name).mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / name))
    with pytest.raises(InputError, match="choose another") as error:
        scratch.__wrapped__()
    assert str(error.value).isprintable()
    assert list((tmp_path / name).iterdir()) == []


def test_a_folder_that_takes_no_files_is_refused_in_one_line(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))
    with pytest.raises(InputError, match=r"takes no temporary files: No such file.*set TMPDIR"):
        scratch.__wrapped__()
