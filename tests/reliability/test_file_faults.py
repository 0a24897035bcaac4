"""The file layer itself: a process without Spark, stopped, failed and killed at its operations."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from reliability.file_faults import FileFaults

PROGRAM = """
import os, sys
folder = sys.argv[1]
os.makedirs(f"{folder}/table")
try:
    with open(f"{folder}/table/new", "wb", buffering=0) as file:
        written = file.write(b"abcd")
        if written < 4:
            file.write(b"abcd"[written:])
    os.chdir(folder)
    os.rename("table/new", "table/done")
    print(open(f"{folder}/table/done").read())
except OSError as error:
    print(error.errno)
"""
CALLS = ["mkdir", "mkdir", "open64", "write", "write second half", "rename"]


@pytest.fixture
def layer(library: Path, tmp_path: Path) -> FileFaults:
    return FileFaults(library, tmp_path / "layer", tmp_path / "watched")


def start(layer: FileFaults) -> subprocess.Popen[str]:
    env = {**os.environ, **layer.environment}
    command = [sys.executable, "-c", PROGRAM, str(layer.below)]
    return subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True)


def test_each_change_is_an_operation(layer: FileFaults) -> None:
    with start(layer) as process:
        seen = []
        while (operation := layer.step(lambda: process.poll() is not None)) is not None:
            seen.append(operation)
            if operation.call == "write second half":
                assert (layer.below / "table" / "new").read_bytes() == b"ab"
        assert process.stdout is not None
        assert process.stdout.read() == "abcd\n"
    assert [one.call for one in seen][-5:] == CALLS[-5:]
    assert [one.number for one in seen] == list(range(1, len(seen) + 1)) == list(range(1, layer.count + 1))
    assert [one.path for one in seen][-4:] == ["table/new", "table/new", "table/new", "table/done"]
    assert layer.failed == 0


@pytest.mark.parametrize(
    ("call", "error", "count", "said"),
    [
        ("open64", errno.EMFILE, 1, errno.EMFILE),
        ("write", errno.ENOSPC, None, errno.ENOSPC),
        ("write second half", errno.ENOSPC, None, errno.ENOSPC),  # after a short write
        ("write second half", errno.EIO, 1, "abcd"),  # the program writes the rest
        ("write", errno.EMFILE, None, errno.EMFILE),  # files that are read count, too
        ("rename", errno.EROFS, 1, errno.EROFS),
    ],
)
def test_it_fails(layer: FileFaults, call: str, error: int, count: int | None, said: int | str) -> None:
    with start(layer) as process:
        operation = layer.step_to(lambda one: one.call == call, lambda: process.poll() is not None)
        assert operation is not None
        layer.fail(error, operation.number, count)
        layer.release()
        assert process.stdout is not None
        assert process.stdout.read() == f"{said}\n"
    assert layer.failed > 0


def test_a_killed_process_stops_no_other(layer: FileFaults) -> None:
    with start(layer) as killed:
        assert layer.step_to(lambda one: one.call == "open64", lambda: killed.poll() is not None) is not None
        killed.send_signal(signal.SIGKILL)
    layer.release()
    (layer.below / "table").rmdir()
    layer.below.rmdir()
    with start(layer) as other:
        assert other.stdout is not None
        assert other.stdout.read() == "abcd\n"
