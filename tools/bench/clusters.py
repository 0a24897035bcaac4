"""Clusters at the same time: `python tools/bench/clusters.py [--clusters 20] [--workers 1,2,4,8] [--large DIR]`.

Runs the night of so many copies of 30 s of the sample, one after the other and as tasks, in one process, and prints the
CPU seconds of both. For each number of workers it prints what the tasks would take there: the driver's own seconds, and
those of the worker that is done last. Each worker has a core of its own and takes the next task when it is free. With
`--large` they are copies of a recording, and count as large ones: only their expectations and pages are tasks of the
second run, and the passes of their replays are tasks of both.
"""

from __future__ import annotations

import argparse
import heapq
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

from timed_tasks import TimingEngine

from mqreplay.engines.local import LocalEngine
from mqreplay.lake.scratch import scratch
from mqreplay.night import estate, nightly
from mqreplay.night.nightly_run import NightlyRun
from mqreplay.settings import load_settings

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))
from estate_recordings import copied, small_recording


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clusters", type=int, default=20)
    parser.add_argument("--workers", default="1,2,4,8", help="numbers of workers, with commas between")
    parser.add_argument("--large", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        names = [f"cluster-{number:03d}" for number in range(given.clusters)]
        first = Path(folder, names[0])
        made = copied(given.large, first, names[0]) if given.large else small_recording(first, names[0])
        recordings = [str(made)]
        recordings += [str(copied(Path(recordings[0]), Path(folder, name), name)) for name in names[1:]]
        with mock.patch.object(estate, "FEW", sys.maxsize), mock.patch.object(nightly, "judge_large", one_by_one):
            one, parts = seconds_of(f"{folder}/one-by-one", recordings)
        print(f"one after the other: {one + sum(map(sum, parts)):.1f} CPU s, of which {one:.1f} are the driver's")
        least, most_bytes = (1, -1) if given.large else (estate.FEW, estate.CLUSTER_BYTES)
        with mock.patch.multiple(estate, FEW=least, CLUSTER_BYTES=most_bytes):
            own, tasks = seconds_of(f"{folder}/tasks", recordings)
        print(f"as tasks: {own + sum(map(sum, tasks)):.1f} CPU s, of which {own:.1f} are the driver's")
        for workers in map(int, given.workers.split(",")):
            before = one + sum(makespan(each, workers) for each in parts)
            span = own + sum(makespan(each, workers) for each in tasks)
            print(f"{workers} workers: {span:.1f} s, one after the other {before:.1f} s")


def seconds_of(root: str, recordings: list[str]) -> tuple[float, list[Sequence[float]]]:
    """Return the driver's own CPU seconds of a night in this process, and those of the tasks of each Engine.map."""
    engines: list[TimingEngine] = []

    @contextmanager
    def timing(*_: object) -> Iterator[TimingEngine]:
        with LocalEngine(scratch().folder, processes=1) as engine:
            engines.append(TimingEngine(engine))
            yield engines[0]

    began = time.process_time()
    with mock.patch.object(nightly, "running_engine", timing):
        nightly.run("nightly", root, load_settings(), lambda _: None, recordings=recordings, engine="local")
    ended = time.process_time()
    tasks = [each.seconds for each in engines[0].passes]
    return ended - began - sum(map(sum, tasks)), tasks


def one_by_one(night: NightlyRun, clusters: Sequence[str], steps: Sequence[estate.Step]) -> list[str]:
    """As judge_large, without tasks for whole clusters."""
    for cluster in clusters:
        for step in steps:
            step(night, cluster)
    return []


def makespan(seconds: Sequence[float], workers: int) -> float:
    """Return when the last of some tasks ends.

    >>> makespan([3, 1, 2], 2), makespan([], 2)
    (3, 0)
    """
    free = [0.0] * workers
    for each in seconds:
        heapq.heappush(free, heapq.heappop(free) + each)
    return max(free)


if __name__ == "__main__":
    main()
