"""One run at a time on a warehouse, and no lock that outlives its run. No Spark."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from mqreplay.errors import InputError, WarehouseLocked
from mqreplay.lake.lock import warehouse_lock

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
