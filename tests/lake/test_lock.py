"""One run at a time on a warehouse, and no lock that outlives its run."""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from mqreplay.lake import lock
from mqreplay.lake.lock import LOCK_FILE, warehouse_lock
from mqreplay.words.errors import InputError, WarehouseLocked

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HOLD = """
import sys, time
from mqreplay.lake.lock import warehouse_lock
with warehouse_lock(sys.argv[1]):
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def holder(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that holds the lock of tmp_path."""
    lib = str(Path(__file__).parents[2] / "lib")
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)],
        env={**os.environ, "PYTHONPATH": lib},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


def test_another_run_is_named(holder: subprocess.Popen[str], tmp_path: Path) -> None:
    began = time.monotonic()
    with pytest.raises(WarehouseLocked) as error, warehouse_lock(str(tmp_path)):
        pass
    assert time.monotonic() - began < 10, "it must not wait for the holder, who never ends"
    said = str(error.value)
    assert f"process {holder.pid} on {socket.gethostname()} since 20" in said
    assert "UTC" in said


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_lock_of_a_dead_run_is_taken_over(holder: subprocess.Popen[str], tmp_path: Path, how: signal.Signals) -> None:
    holder.send_signal(how)
    holder.wait()
    with warehouse_lock(str(tmp_path)):
        said = (tmp_path / ".mqreplay.lock").read_text()
        assert f'"pid": {os.getpid()}' in said


def test_lock_ends_with_its_block_and_with_an_error(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="inside"), warehouse_lock(str(tmp_path)):
        raise RuntimeError("inside")
    with (
        warehouse_lock(str(tmp_path)),
        pytest.raises(WarehouseLocked, match="is in use"),
        warehouse_lock(str(tmp_path)),
    ):
        pass
    with warehouse_lock(str(tmp_path)):
        pass


def test_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="choose another with --warehouse"), warehouse_lock(str(tmp_path / "file")):
        pass


def test_a_removed_lock_file_admits_nobody(holder: subprocess.Popen[str], tmp_path: Path) -> None:
    (tmp_path / LOCK_FILE).unlink()
    with pytest.raises(WarehouseLocked), warehouse_lock(str(tmp_path)):
        pass


def test_a_file_system_that_locks_no_folders_has_the_lock_of_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As NFS, whose answer to the lock of a folder stands in for it here."""
    flock = fcntl.flock

    def as_nfs(handle: int, how: int) -> None:
        if stat.S_ISDIR(os.fstat(handle).st_mode):
            raise OSError(errno.EBADF, "Bad file descriptor")
        flock(handle, how)

    monkeypatch.setattr(fcntl, "flock", as_nfs)
    with (
        warehouse_lock(str(tmp_path)),
        pytest.raises(WarehouseLocked, match="is in use"),
        warehouse_lock(str(tmp_path)),
    ):
        pass


def test_a_file_system_without_locks_is_one_clear_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(handle: int, how: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with (
        pytest.raises(InputError, match=r"cannot be locked: No locks available; choose"),
        warehouse_lock(str(tmp_path)),
    ):
        pass


JAVA = """
import fcntl, os, sys, time
handle = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
fcntl.lockf(handle, fcntl.LOCK_EX)
print("held", flush=True)
time.sleep(float(sys.argv[2]))
"""


@pytest.mark.first_case
@pytest.mark.parametrize("lives_s", [1, 60], ids=["ends soon", "goes on"])
def test_java_of_a_killed_run_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lives_s: float) -> None:
    """A process with the lock that Java takes (a record lock) stands in for Java, whose driver is gone."""
    monkeypatch.setattr(lock, "JAVA_ENDS_S", 3)
    command = [sys.executable, "-c", JAVA, str(tmp_path / lock.JAVA_LOCK_FILE), str(lives_s)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as java:
        assert java.stdout is not None
        java.stdout.readline()
        if lives_s > 3:
            with (
                pytest.raises(WarehouseLocked, match="Java process of a run that was killed"),
                warehouse_lock(str(tmp_path)),
            ):
                pass
        else:
            with warehouse_lock(str(tmp_path)):
                assert java.poll() is not None
        java.kill()


def test_java_holds_the_warehouse_as_long_as_the_run(tmp_path: Path, spark: SparkSession) -> None:
    with warehouse_lock(str(tmp_path)) as held:
        held.share_with_java(spark)
        handle = os.open(tmp_path / lock.JAVA_LOCK_FILE, os.O_RDWR)
        with pytest.raises(BlockingIOError):
            fcntl.lockf(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    fcntl.lockf(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(handle)


def test_after_ctrl_c_java_holds_the_warehouse_until_it_ends(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may be in a commit, which nobody can take back."""
    monkeypatch.setattr(lock, "JAVA_ENDS_S", 0)
    with suppress(KeyboardInterrupt), warehouse_lock(str(tmp_path)) as held:
        held.share_with_java(spark)
        raise KeyboardInterrupt
    with pytest.raises(WarehouseLocked, match="Java process"), warehouse_lock(str(tmp_path)):
        pass
    held.release_java()
    with warehouse_lock(str(tmp_path)):
        pass
