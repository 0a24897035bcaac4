"""The lock of a remote warehouse on a store: one run at a time, dead runs are followed, late runs write nothing."""

from __future__ import annotations

import datetime as dt
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mqreplay.lake import lease
from mqreplay.lake.contract import load_contracts
from mqreplay.lake.files import files_of, joined
from mqreplay.lake.lock import is_locked, warehouse_lock
from mqreplay.lake.storage import Storage, storage, use_storage
from mqreplay.lake.warehouse import Warehouse
from mqreplay.words.errors import StoreError, StoreUnavailable, WarehouseLocked
from storage.s3_server import S3Server

LEASE_S = 3
TABLE, DAY = "bronze.retention", dt.date(2026, 1, 2)
HOLD = """
import sys, time
from mqreplay.lake.lock import warehouse_lock
with warehouse_lock(sys.argv[1], 3):
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def root(s3_server: S3Server) -> Iterator[str]:
    """A remote warehouse that this process reaches."""
    before = storage()
    options = {name.lower(): value for name, value in s3_server.environment().items()}
    use_storage(Storage(tuple(sorted(options.items())), timeout_s=2, retries=1))
    yield f"s3://{s3_server.make_bucket()}/w"
    use_storage(before)


@pytest.fixture
def holder(root: str, s3_server: S3Server) -> Iterator[subprocess.Popen[str]]:
    """Another process that holds the warehouse."""
    env = {**os.environ, **s3_server.environment()}
    command = [sys.executable, "-c", HOLD, root]
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


def said_of_last(root: str) -> dict[str, Any]:
    folder = joined(root, lease.FOLDER)
    path = joined(folder, files_of(root).names(folder)[-1])
    said: dict[str, Any] = json.loads(files_of(root).read(path))
    return said


def test_a_second_run_learns_that_the_first_is_alive(root: str, holder: subprocess.Popen[str]) -> None:
    lines: list[str] = []
    began = time.monotonic()
    with (
        pytest.raises(WarehouseLocked, match=rf"is in use by process {holder.pid} on .* since .*; wait for it"),
        warehouse_lock(root, LEASE_S, lines.append),
    ):
        pass
    assert time.monotonic() - began < LEASE_S
    (line,) = lines
    assert "waiting to see whether that run is alive" in line
    assert is_locked(root)


def test_a_run_that_was_killed_here_is_followed_at_once(root: str, holder: subprocess.Popen[str]) -> None:
    holder.kill()
    holder.wait()
    assert not is_locked(root)
    began = time.monotonic()
    with warehouse_lock(root, LEASE_S):
        assert time.monotonic() - began < LEASE_S
        assert said_of_last(root)["pid"] == os.getpid()
    assert said_of_last(root)["ended"]


def test_a_dead_run_of_another_machine_is_followed_after_its_lease(
    root: str, holder: subprocess.Popen[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    holder.kill()
    holder.wait()
    monkeypatch.setattr(lease, "_process", lambda pid: ["another boot", "another namespace", str(pid)])
    began = time.monotonic()
    with warehouse_lock(root, LEASE_S):
        assert LEASE_S <= time.monotonic() - began < 3 * LEASE_S


def test_a_run_that_stood_still_writes_nothing_more(root: str, holder: subprocess.Popen[str]) -> None:
    holder.send_signal(signal.SIGSTOP)
    with warehouse_lock(root, LEASE_S):  # after the lease: it seems dead
        pass
    numbers = files_of(root).names(joined(root, lease.FOLDER))
    holder.send_signal(signal.SIGCONT)
    time.sleep(LEASE_S)
    assert files_of(root).names(joined(root, lease.FOLDER)) == numbers
    assert said_of_last(root)["pid"] == os.getpid()


@pytest.mark.long
def test_without_renewals_no_commit_is_made(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    warehouse = Warehouse(root, load_contracts())
    with warehouse_lock(root, LEASE_S):
        warehouse.replace_rows(TABLE, [("c", "gold", DAY)], None)
        monkeypatch.setattr(lease, "_last_number", lambda root: 1 / 0)  # as if the store did not answer
        time.sleep(LEASE_S)
        with pytest.raises(StoreUnavailable, match="could not be renewed in time, so this run writes nothing more"):
            warehouse.replace_rows(TABLE, [("c", "silver", DAY)], None)
        monkeypatch.undo()
    assert files_of(root).names(joined(warehouse.location(TABLE), "_delta_log")) == [f"{0:020d}.json", f"{1:020d}.json"]


def test_many_runs_after_each_other_leave_one_small_file(root: str) -> None:
    for _ in range(3):
        with warehouse_lock(root, LEASE_S):
            pass
    assert files_of(root).names(joined(root, lease.FOLDER)) == [f"{2:020d}.json"]


def test_a_number_that_was_removed_is_not_taken_again(root: str) -> None:
    for _ in range(2):
        with warehouse_lock(root, LEASE_S):
            pass
    late = lease.Lease(root, 0, LEASE_S)  # it listed the files long ago
    assert not late.take()
    assert files_of(root).names(joined(root, lease.FOLDER)) == [f"{1:020d}.json"]


def test_a_store_without_conditional_writes_is_refused(root: str, s3_server: S3Server) -> None:
    s3_server.front.ignores_conditions_in = Path(s3_server.folder)
    try:
        with pytest.raises(StoreError, match="no conditional writes"), warehouse_lock(root, LEASE_S):
            pass
    finally:
        s3_server.front.ignores_conditions_in = None
