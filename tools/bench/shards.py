"""How evenly a night's work is dealt to tasks: `python tools/bench/shards.py --recording DIR [--engine local|spark]`.

Runs ingest and replay, and prints a line for each pass: how many tasks, the median and the maximum of their CPU
seconds, the ratio of the two, and the task with the maximum. A pass ends no sooner than its longest task: a large ratio
in a pass that takes long means that cores wait. A pass that runs again (another day, or clocks that were off) has a
line of its own. With `--rows ROWS`, tasks have about so many rows: a small recording is then dealt like a large one.
Below it prints what the same tasks would take on simulated workers, each of which has a core of its own and takes the
next task when it is free: the driver's own CPU seconds, and for each pass the time until its last task ends.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
from clusters import makespan

from mqreplay.engines.choice import ENGINES, running_engine
from mqreplay.engines.shards import SHARD_ROWS, Shard, deal, divided
from mqreplay.ingest.digests import KnownDigests
from mqreplay.ingest.listing import find_recordings
from mqreplay.ingest.records import LinesTask
from mqreplay.ingest.snapshots import PieceTask
from mqreplay.lake.buckets import buckets
from mqreplay.lake.lock import warehouse_lock
from mqreplay.lake.warehouse import Warehouse
from mqreplay.night.nightly_run import NightlyRun
from mqreplay.replay import queue_pass, survey_pass
from mqreplay.replay.day import BY_QUEUE
from mqreplay.replay.queue_tables import QUEUE_BUCKET
from mqreplay.settings import load_settings

# Workers import it under this name, from this folder.
os.environ["PYTHONPATH"] = os.pathsep.join([str(Path(__file__).resolve().parent), os.environ.get("PYTHONPATH", "")])
from timed_tasks import Pass, TimingEngine

WORKERS = (1, 2, 4, 8)
OF_QUEUES = ("judge_queues", "judge_deliveries")  # passes whose shards are of whole queues


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recording", type=Path, required=True, metavar="DIR")
    parser.add_argument("--engine", choices=ENGINES, default="local")
    parser.add_argument("--rows", type=int, default=SHARD_ROWS, help="of a task for queues")
    given = parser.parse_args()
    survey_pass.deal = partial(deal, most_rows=given.rows)
    queue_pass.divided = partial(divided, most_rows=given.rows)
    with tempfile.TemporaryDirectory() as root:
        began = time.process_time()
        passes = timed_night(given.recording, root, given.engine)
        driver = time.process_time() - began  # without tasks, which are other processes
        print(f"{'pass':20}{'tasks':>6}{'median s':>10}{'max s':>9}{'max / median':>14}  task of the maximum")
        for line in passes_table(passes, queues_by_bucket(Warehouse(root))):
            print(line)
        print("\n".join(workers_table(passes, driver)))


def workers_table(passes: list[Pass], driver: float) -> Iterator[str]:
    """Give a line for each number of simulated workers."""
    longest = sum(max(one.seconds, default=0) for one in passes)
    yield f"driver alone {driver:.1f} s, the longest task of each pass {longest:.1f} s"
    spans = {number: driver + sum(makespan(one.seconds, number) for one in passes if one.seconds) for number in WORKERS}
    for number, span in spans.items():
        yield f"{number} workers: {span:.1f} s, {spans[1] / span:.2f} times as fast as one; driver {driver / span:.0%}"


def timed_night(recording: Path, root: str, engine: str) -> list[Pass]:
    """Ingest and replay a recording into the warehouse ``root``; return the passes, in order."""
    settings, found = load_settings(), find_recordings([str(recording)])

    def progress(text: str) -> None:
        print(text, file=sys.stderr)

    with warehouse_lock(root) as lock, running_engine(engine, "shards", settings, lock, progress) as running:
        timing = TimingEngine(running)
        night = NightlyRun(timing, Warehouse(root), settings, progress)
        for ingested in night.ingest(night.of_clusters(KnownDigests(root).of_recordings(found), None)):
            night.replay(ingested.cluster)
    return timing.passes


def queues_by_bucket(warehouse: Warehouse) -> pl.Series:
    """Return the bucket of each queue of the warehouse."""
    columns = [name for part in QUEUE_BUCKET for name in part]
    tables = [warehouse.read(f"silver.{name}").select(columns) for name in BY_QUEUE]
    return buckets(pl.concat(tables).unique().collect(), QUEUE_BUCKET)


def passes_table(passes: list[Pass], queue_buckets: pl.Series) -> Iterator[str]:
    """Give a line for each pass."""
    for one in passes:
        if not one.items:
            continue
        median, most = statistics.median(one.seconds), max(one.seconds)
        ratio = f"{most / median:14.1f}" if median else f"{'':14}"
        number = one.seconds.index(most)
        task = described(one.items[number], queue_buckets if one.name in OF_QUEUES else None)
        yield f"{one.name:20}{len(one.items):6}{median:10.2f}{most:9.2f}{ratio}  {number + 1}: {task}"


def described(item: Any, queue_buckets: pl.Series | None) -> str:
    """Return in words what a task works on."""
    if isinstance(item, tuple):  # beside its table
        _, item = item
    if isinstance(item, LinesTask):
        files = "1 file" if len(item.files) == 1 else f"{len(item.files)} files"
        return f"{files} of {item.kind}, {sum(f.bytes for f, _ in item.files) / 1e6:.1f} MB"
    if isinstance(item, PieceTask):
        return f"snapshots of {item.source_name}"
    if not isinstance(item, Shard):
        return "some files of the day"
    words = f"{item.part and f'{item.part} of '}buckets {item.low} to {item.high}"
    if queue_buckets is None:
        return words
    queues = int(queue_buckets.is_between(item.low, item.high).sum())
    return f"{words}, {queues} {'queue' if queues == 1 else 'queues'}"


if __name__ == "__main__":
    main()
