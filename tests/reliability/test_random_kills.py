"""Whole nights, killed at random moments: the next run, begun at once, makes the tables of one clean night."""

from __future__ import annotations

import os
import random
import shutil
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from mqreplay.words.errors import WarehouseLocked
from reliability.crash_recovery import RECOVERIES, Scenario, wrong_after
from reliability.file_faults import FileFaults, Operation
from reliability.histories import Histories
from reliability.recordings import State
from reliability.runs import BY_SPARK_ALONE, Run, outlived, started, wait_until

Kill = tuple[str, signal.Signals]

KILLS: list[Kill] = [("driver", signal.SIGKILL), ("worker", signal.SIGKILL), ("all", signal.SIGKILL)]
SIGNALS: list[Kill] = [("group", signal.SIGINT), ("driver", signal.SIGTERM)]
KILLS_OF_SPARK: list[Kill] = [*KILLS, ("java", signal.SIGKILL), *SIGNALS]
STATUS = {signal.SIGINT: 130, signal.SIGTERM: 143}
OPERATIONS = 3_100  # of the files of a night with this recording; a third of them are writes of silver
SECONDS = 0.5  # a kill comes up to so much later than the operation
LONG = 60
LOCKED_S = 90  # what is left of a killed run gives the lock back by then


@pytest.mark.long
def test_kill_in_a_night(library: Path, histories: dict[str, Histories], tmp_path: Path) -> None:
    # Ctrl-C reaches the whole group.
    assert not killed_night(library, histories["nightly"], tmp_path, Scenario("nightly", 0), "same", SIGNALS[0], 700)


@pytest.mark.parametrize("after_s", [0.05, 0.1])  # such a process has begun Python, and not yet its work
@pytest.mark.long
def test_interrupt_while_processes_of_the_pool_start(
    histories: dict[str, Histories], tmp_path: Path, after_s: float
) -> None:
    with histories["ingest"].recordings.placed(State(0)) as recording:
        command = ["ingest", recording, "--warehouse", str(tmp_path / "warehouse"), "--engine", "local"]
        with started(tmp_path / "run", command) as run:
            assert wait_until(lambda: run.pids("worker"))
            time.sleep(after_s)
            _send(run, *SIGNALS[0])
            assert run.wait() == STATUS[signal.SIGINT]
    assert run.errors() == ["mqreplay: interrupted; the next run continues where this one ended"]


@pytest.mark.long
@pytest.mark.parametrize("seed", range(LONG))
def test_kill_at_a_random_moment(library: Path, histories: dict[str, Histories], tmp_path: Path, seed: int) -> None:
    chance, every = random.Random(seed), [*KILLS, *SIGNALS]
    scenario, recovery = Scenario("nightly", seed % 2), RECOVERIES[seed // 2 % len(RECOVERIES)]
    kill, after = every[seed // 6 % len(every)], chance.randrange(OPERATIONS)
    assert not killed_night(library, histories["nightly"], tmp_path, scenario, recovery, kill, after)


@pytest.mark.long
@pytest.mark.parametrize("number", range(len(KILLS_OF_SPARK)))
def test_kill_in_a_night_by_spark(library: Path, histories: dict[str, Histories], tmp_path: Path, number: int) -> None:
    scenario, kill = Scenario("nightly", number % 2), KILLS_OF_SPARK[number]
    after = random.Random(number).randrange(OPERATIONS)
    assert not killed_night(library, histories["nightly"], tmp_path, scenario, "same", kill, after, engine="spark")


@pytest.mark.long
@pytest.mark.parametrize("engine", ["local", pytest.param("spark", marks=pytest.mark.long)])
def test_a_task_writes_after_its_driver_was_killed(
    library: Path, histories: dict[str, Histories], tmp_path: Path, engine: str
) -> None:
    """A task stands before a write of rows when its driver dies, the next run begins, and then the task may go on."""
    scenario, its = Scenario("ingest", 1), histories["ingest"]
    its.warehouse(scenario.before)  # made while no run has the recording
    with ExitStack() as held:
        with its.recordings.placed(scenario.killed) as night:
            run, layer = held.enter_context(_running(library, its, tmp_path, scenario, night, engine))
            of_pulls = layer.step_to(_writes_pulls, lambda: run.ended)
            assert of_pulls is not None, run.errors()
            assert of_pulls.pid != run.process.pid
            run.kill("driver")
            run.wait()
        threading.Timer(1, layer.release).start()
        wrong = _recovered(tmp_path / "warehouse", scenario, "same", its)
    assert not wrong


def _writes_pulls(operation: Operation) -> bool:
    return operation.path.startswith("silver/pull/cluster=")


def killed_night(
    library: Path,
    its: Histories,
    folder: Path,
    scenario: Scenario,
    recovery: str,
    kill: Kill,
    after: int,
    engine: str = "local",
) -> str:
    """Kill a night after so many operations, run the next one at once, and return what is wrong in words."""
    victim, how = kill
    its.warehouse(scenario.before)  # made while no run has the recording
    with ExitStack() as held:
        with its.recordings.placed(scenario.killed) as night:
            run, layer = held.enter_context(_running(library, its, folder, scenario, night, engine))
            while layer.count < after and not run.ended:
                time.sleep(0.01)
            time.sleep(random.Random(after).uniform(0, SECONDS))
            ended = run.ended
            _send(run, victim, how)
            status = run.wait()
        wrong = [_recovered(folder / "warehouse", scenario, recovery, its)]  # what is left of the run may still live
        said, left = run.errors(), outlived(run)
    # A worker may be killed while it has nothing to do.
    expected = {0, 4} if victim in ("java", "worker") else {STATUS.get(how, -how)}
    if not ended and status not in expected:
        wrong.append(f"exit status {status}, not {sorted(expected)}")
    if len(said) > 1 or any("Traceback" in line for line in said):
        wrong.append(f"{len(said)} lines on stderr: " + "\n".join(said[:20]))
    if left:
        wrong.append(f"processes {left} are still there")
    case = f"{scenario.step} of content {scenario.content} by {engine}, {how.name} to {victim}"
    case += f" after {after} operations, {recovery}"
    return f"{case}: {'; '.join(filter(None, wrong))}" if any(wrong) else ""


@contextmanager
def _running(
    library: Path, its: Histories, folder: Path, scenario: Scenario, night: str, engine: str
) -> Iterator[tuple[Run, FileFaults]]:
    warehouse = folder / "warehouse"
    if scenario.before:
        shutil.copytree(its.warehouse(scenario.before), warehouse)
    layer = FileFaults(library, folder / "layer", warehouse)
    command = [scenario.step, night, "--warehouse", str(warehouse), "--engine", engine]
    program = ["-c", BY_SPARK_ALONE] if engine == "spark" else None
    with started(folder / "run", command, layer.environment, program) as run:
        yield run, layer


def _send(run: Run, victim: str, how: signal.Signals) -> None:
    if victim == "group":
        os.killpg(run.process.pid, how)
    else:
        run.kill(victim, how)


def _recovered(root: Path, scenario: Scenario, recovery: str, histories: Histories) -> str:
    """Run again, as soon as the lock is free, and return what is wrong with the tables."""
    deadline = time.monotonic() + LOCKED_S
    while True:
        try:
            return wrong_after(root, scenario, recovery, histories)
        except WarehouseLocked as error:
            if time.monotonic() > deadline:
                return f"after {LOCKED_S} s: {error}"
            time.sleep(0.5)
