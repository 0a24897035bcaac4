"""Engines run the same tasks to the same tables, and the caller learns how a task failed."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from engines.engine_tasks import fail_on_three, kill_itself, kinds_of_errors, late_square
from mqreplay.decode.logs.log_line import UnusableLine
from mqreplay.engines.local import FEW_BYTES, LocalEngine
from mqreplay.lake.delta_table import UnreadableLog
from mqreplay.lake.table_versions import DamagedTable
from mqreplay.machine.crash import failure_of
from mqreplay.machine.places import conf_dir
from mqreplay.recorder.remoting.connection import CallFailed
from mqreplay.words.errors import ContractError, DecodeError, InputErrors, MqreplayError, OwnDiskError, RecordingFull
from tests_shared import ROOT, SAMPLE, assert_same_tables, table_rows, tables

CONF = conf_dir() / "sample.toml"
TESTS = Path(__file__).parents[1]
RECORDINGS = [str(SAMPLE / name) for name in ("orders-4.9.7", "bulk-5.3.3")]


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalEngine]:
    with LocalEngine(tmp_path_factory.mktemp("pool"), processes=2) as engine:
        yield engine


WITHOUT_JAVA = """
import shutil, sys
from mqreplay.cli.command_line import main
assert shutil.which("java") is None
status = main(sys.argv[1:], own_process=False)
assert not {"pyspark", "py4j", "delta"} & set(sys.modules)
sys.exit(status)
"""


@pytest.mark.long
@pytest.mark.parametrize("recordings", [RECORDINGS[1:], pytest.param(RECORDINGS, marks=pytest.mark.long)], ids=len)
def test_two_processes_without_java_and_pyspark_give_the_tables_of_one(
    night: Any, tmp_path: Path, recordings: list[str]
) -> None:
    root, conf = str(tmp_path / "warehouse"), tmp_path / "two.toml"
    conf.write_text(f"{CONF.read_text(encoding='utf-8')}\n[local]\nprocesses = 2\n", encoding="utf-8")
    command = ["nightly", *recordings, "--warehouse", root, "--conf", str(conf), "--engine", "local"]
    # Great Expectations imports pyspark if it is installed: here, and in the processes of the pool, it is not.
    for name in ("pyspark", "py4j", "delta"):
        (tmp_path / f"{name}.py").write_text("raise ImportError('not installed')\n", encoding="utf-8")
    search = os.pathsep.join([str(tmp_path), str(ROOT / "lib")])
    bare = {"PATH": str(tmp_path), "PYTHONPATH": search, "HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_JAVA, *command],
        env=bare,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    if recordings == RECORDINGS:
        assert_same_tables(root, night.root)
    for name in tables(root):
        assert table_rows(root, name, "grid-cluster") == table_rows(night.root, name, "grid-cluster"), name


def test_results_come_in_the_order_of_the_items_from_other_processes(pool: LocalEngine) -> None:
    found = list(pool.map(late_square, range(12), 100))
    assert [square for square, _ in found] == [item * item + 100 for item in range(12)]
    processes = {process for _, process in found}
    assert len(processes) == 2
    assert os.getpid() not in processes
    assert list(pool.map(late_square, [], 100)) == []


def test_one_process_is_that_of_the_caller(tmp_path: Path) -> None:
    with LocalEngine(tmp_path, processes=1) as engine:
        assert list(engine.map(late_square, [7, 6], 1)) == [(50, os.getpid()), (37, os.getpid())]
    assert list(tmp_path.iterdir()) == []


def test_little_is_read_without_other_processes_unless_they_are_asked_for(tmp_path: Path, pool: LocalEngine) -> None:
    with LocalEngine(tmp_path) as engine:
        for size, is_here in ((FEW_BYTES, True), (FEW_BYTES + 1, len(os.sched_getaffinity(0)) == 1)):
            engine.expect(size)
            [(_, process)] = engine.map(late_square, [7], 1)
            assert (process == os.getpid()) is is_here
    pool.expect(1)
    [(_, process)] = pool.map(late_square, [7], 1)
    assert process != os.getpid()


@pytest.mark.parametrize(
    "error",
    [
        ContractError("rows lack queue_id"),
        DecodeError("torn", "ends within a value", 17),
        InputErrors(["a.toml: no such file", "b.toml: no such file"]),
        FileNotFoundError(2, "No such file or directory", "/r/pull_log.jsonl"),
        pl.exceptions.ComputeError("cannot cast"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_error_of_a_task_reaches_the_caller(pool: LocalEngine, error: Exception) -> None:
    with pytest.raises(type(error)) as raised:
        list(pool.map(fail_on_three, range(6), error))
    assert type(raised.value) is type(error)
    assert (str(raised.value), vars(raised.value)) == (str(error), vars(error))
    assert [square for square, _ in pool.map(late_square, [1, 2], 0)] == [1, 4], "the engine goes on"


MADE_WITH: dict[type[MqreplayError], tuple[Any, ...]] = {
    DecodeError: ("torn", "a detail", 3),
    InputErrors: (["a", "b"],),
    RecordingFull: ("a folder", "a detail", True),
    CallFailed: ("timeout", "a detail"),
    OwnDiskError: ("a folder", "a detail"),
    UnusableLine: ("no_date", "lines of a form", "a detail"),
    DamagedTable: ("what happened", "what to do"),
    UnreadableLog: ("a location", "a reason"),
}


@pytest.mark.parametrize("kind", kinds_of_errors())
def test_every_error_passes_between_processes(kind: type[MqreplayError]) -> None:
    made = kind(*MADE_WITH.get(kind, ("a text",)))
    copy = pickle.loads(pickle.dumps(made))
    assert type(copy) is kind
    assert (str(copy), vars(copy)) == (str(made), vars(made))


def test_a_killed_task_ends_the_map_and_has_a_name(tmp_path: Path) -> None:
    with LocalEngine(tmp_path, processes=2) as engine, pytest.raises(BrokenProcessPool) as raised:
        list(engine.map(kill_itself, range(6), None))
    failure, cause = failure_of(raised.value)
    assert failure is not None
    assert failure.happened == "a Python worker was killed"
    assert "terminated abruptly" in cause
    assert list(tmp_path.iterdir()) == []


WAITING = """
import sys
from pathlib import Path
from mqreplay.engines.local import LocalEngine
from engines.engine_tasks import wait_for_ever
with LocalEngine(Path(sys.argv[1]), processes=2) as engine:
    list(engine.map(wait_for_ever, [0, 1], sys.argv[2]))
"""


def test_processes_end_when_their_parent_is_killed(tmp_path: Path) -> None:
    shared, began = tmp_path / "shared", tmp_path / "began"
    for folder in (shared, began):
        folder.mkdir()
    paths = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "lib"), str(TESTS)])}
    with subprocess.Popen([sys.executable, "-c", WAITING, str(shared), str(began)], env=paths) as parent:
        try:
            assert soon(lambda: len(list(began.iterdir())) == 2, 60)
            started = children(parent.pid)
            assert {int(path.name) for path in began.iterdir()} <= started
        finally:
            parent.send_signal(signal.SIGKILL)
    try:
        assert soon(lambda: not any(map(runs, started)), 10)
    finally:
        for process in filter(runs, started):
            os.kill(process, signal.SIGKILL)


def soon(condition: Any, seconds: float) -> bool:
    """Whether the condition comes true within these seconds."""
    until = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > until:
            return False
        time.sleep(0.05)
    return True


def children(process: int) -> set[int]:
    found = Path(f"/proc/{process}/task").glob("*/children")
    return {int(child) for listed in found for child in listed.read_text().split()}


def runs(process: int) -> bool:
    """Whether the process is there, and not only its exit status."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
