"""Two runs on one warehouse: one works and the other exits 3. A reader beside a run sees each table before or after it.

The runs are real `mqreplay` processes. The second starts so long after the first that it meets it while it takes the
lock, starts its tasks, decodes or commits. The reader opens every table again and again, by delta-rs and by polars.
"""

from __future__ import annotations

import os
import random
import re
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import polars
import pytest
from deltalake import DeltaTable

from mqreplay.settings import load_settings
from reliability import recording_folders as made
from tests_shared import ROOT, run, tables

SHORT, LONG = 1, 30
NIGHT_EVERY = 10  # of the long trials: a whole night, whose gold tables are read too
DONE, BROKEN, LOCKED = 0, 1, 3
ALL_READ = "files, none new or changed"  # a run says it that has nothing to do
MOST_S = 300  # no run may take longer
# Between taking the lock and writing down who holds it lies a moment.
BUSY = re.compile(r"mqreplay: warehouse \S+ is in use by (?:process (\d+) on \S+ since [^;]+|another process); .+")
# Written more than once by a run: a reader sees a committed version, but not only that before or after the run.
OFTEN = {"bronze.step"}
DAY = re.compile(r"'day': (?:None|datetime\.date\([^)]*\))")
PROGRESS = re.compile(r" +\d+\.\d s  .+")

Rows = list[str]


def start(step: str, recording: Path, warehouse: Path) -> subprocess.Popen[str]:
    """A run as a user starts it."""
    command = [sys.executable, "-m", "mqreplay.cli", step, str(recording), "--warehouse", str(warehouse)]
    pipe = subprocess.PIPE
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "lib")}
    return subprocess.Popen(
        [*command, "--cluster", "c", "--engine", "local"],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=pipe,
        stderr=pipe,
        text=True,
    )


def rows_of(path: Path, version: int | None = None) -> tuple[int, Rows]:
    """A table's version and its rows, by delta-rs."""
    table = DeltaTable(str(path), version=version)
    return table.version(), sorted(map(str, table.to_pyarrow_table().to_pylist()))


def state_of(warehouse: Path) -> dict[str, Rows]:
    """The rows of each table that is there."""
    names = tables(str(warehouse))
    return {name: rows_of(warehouse.joinpath(*name.split(".")))[1] for name in names}


@dataclass
class Reader:
    """Reads all tables in turn until it is stopped: what it read, by table and version, and what failed."""

    warehouse: Path
    read: dict[tuple[str, int], Rows] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)
    rounds: int = 0

    def go_on(self, stopped: threading.Event) -> None:
        """One more round after the stop: the last versions are read too."""
        while True:
            last = stopped.is_set()
            for log in sorted(self.warehouse.glob("*/*/_delta_log")):
                if (log / f"{0:020}.json").exists():
                    self._read(log.parent)
            self.rounds += 1
            if last:
                return

    def _read(self, path: Path) -> None:
        name = f"{path.parent.name}.{path.name}"
        try:
            version, rows = rows_of(path)
            if self.read.setdefault((name, version), rows) != rows:
                self.failed.append(f"{name} version {version} was read twice, with other rows")
            polars.read_delta(str(path))
        except Exception as error:
            self.failed.append(f"{name}: {type(error).__name__}: {error}")


@contextmanager
def reading(warehouse: Path) -> Iterator[Reader]:
    """A reader that works for the length of the block."""
    reader, stopped = Reader(warehouse), threading.Event()
    thread = threading.Thread(target=reader.go_on, args=(stopped,))
    thread.start()
    try:
        yield reader
    finally:
        stopped.set()
        thread.join()


def refusal(stderr: str) -> re.Match[str]:
    """The one line that a run says beside its progress."""
    said = [line for line in stderr.splitlines() if not PROGRESS.fullmatch(line)]
    assert len(said) == 1, stderr
    busy = BUSY.fullmatch(said[0])
    assert busy is not None, stderr
    return busy


def compete(step: str, recording: Path, warehouse: Path, after_s: float) -> float:
    """Start two runs, the second so long after the first; give the seconds that the work took.

    One of them does the work and the other exits 3 at once, with one line that names the first.
    """
    began = time.monotonic()
    runs = [start(step, recording, warehouse)]
    time.sleep(after_s)
    at_work = runs[0].poll() is None
    runs.append(start(step, recording, warehouse))
    told, took_s = [], []
    for one in runs:
        told.append(one.communicate(timeout=MOST_S))
        took_s.append(time.monotonic() - began)
    # The night has broken expectations.
    codes = [DONE if one.returncode == BROKEN and step == "nightly" else one.returncode for one in runs]
    if codes == [DONE, DONE] and (not at_work or ALL_READ in told[1][1]):
        return took_s[0]  # the first one had ended before the second one took the lock
    assert sorted(codes) == [DONE, LOCKED], (after_s, codes, told)
    refused = codes.index(LOCKED)
    out, err = told[refused]
    assert out == ""
    busy = refusal(err)
    assert busy[1] in (None, str(runs[1 - refused].pid))
    return took_s[1 - refused]


def whole(rows: Rows) -> dict[str, Rows]:
    """All rows as one part."""
    return {"": rows}


def by_day(rows: Rows) -> dict[str, Rows]:
    """The rows of each day."""
    parts: dict[str, Rows] = {}
    for row in rows:
        parts.setdefault(DAY.search(row)[0], []).append(row)
    return parts


def assert_complete(reader: Reader, before: dict[str, Rows], after: dict[str, Rows]) -> None:
    """Nothing failed; each version read is as it was committed, and is a table as it was before the run or after it."""
    assert not reader.failed, reader.failed[:5]
    for (name, version), rows in reader.read.items():
        if name not in OFTEN:
            # Days of gold are committed one by one.
            parts = by_day if name.startswith("gold.") else whole
            found, old, new = parts(rows), parts(before.get(name, [])), parts(after[name])
            for part in {*found, *old, *new}:
                are_whole = found.get(part, []) in (old.get(part, []), new.get(part, []))
                assert are_whole, f"{name} version {version} is half of a run's work"
        assert rows_of(reader.warehouse.joinpath(*name.split(".")), version)[1] == rows, f"{name} version {version}"


def grow(recording: made.Recordings, number: int) -> None:
    """New files, and a corrected one: rows come, and rows are replaced. No line is in two files."""
    (name,) = recording.names
    first = 2 * number
    for kind in made.KINDS:
        recording.put((name, f"{kind}.{number:04}.jsonl"), made.lines(kind, [first, first + 1]), "new lines")
    recording.put((name, "pull_log.0900.jsonl"), made.lines("pull_log", [1000 + number]), "a corrected line")
    for broker in made.BROKERS:
        path = made.snapshot_path(broker, number, 0, "consumerOffset.json")
        recording.put((name, path), made.offsets(number % 3), "new offsets")


def trials(folder: Path, numbers: range) -> int:
    """Go through these trials on one warehouse; give the rounds that the readers made beside runs."""
    recordings, warehouse, rounds = made.Recordings(folder), folder / "warehouse", 0
    recording = folder / recordings.add()
    took = 3.0
    for number in numbers:
        grow(recordings, number)
        night = number % NIGHT_EVERY == NIGHT_EVERY - 1
        chance = random.Random(number)
        after_s = 0.0 if chance.random() < 0.2 else chance.uniform(0, took * 0.9)
        before = state_of(warehouse)
        with reading(warehouse) as reader:
            took_now = compete("nightly" if night else "ingest", recording, warehouse, after_s)
        took = took if night else took_now
        after = state_of(warehouse)
        assert after["silver.pull"] != before.get("silver.pull"), "the run did the work"
        assert_complete(reader, before, after)
        rounds += reader.rounds
    return rounds


def test_one_of_two_runs_works_and_a_reader_sees_complete_versions(tmp_path: Path) -> None:
    assert trials(tmp_path, range(SHORT)) > 2 * SHORT, "the reader was there"


@pytest.mark.long
def test_one_of_two_runs_works_each_time(tmp_path: Path) -> None:
    assert trials(tmp_path, range(LONG)) > 2 * LONG


def test_no_version_holds_a_record_twice(tmp_path: Path) -> None:
    """A line that stands in two files is one record in every version that a reader may open, not only in the last."""
    recordings = made.Recordings(tmp_path)
    place, warehouse = recordings.add(), tmp_path / "warehouse"
    for number in range(2):
        recordings.put((place, f"pull_log.{number:04}.jsonl"), made.lines("pull_log", [number, number + 1]), "lines")
        folders = [str(tmp_path / place)]
        run("ingest", str(warehouse), load_settings(), lambda text: None, recordings=folders, cluster="c")
    assert twice_in_some_version(warehouse / "silver" / "pull") == {}


def twice_in_some_version(path: Path) -> dict[int, set[str]]:
    """By version of the table, the records that it holds more than once."""
    found = {}
    for version in range(DeltaTable(str(path)).version() + 1):
        ids = Counter(DeltaTable(str(path), version=version).to_pyarrow_table()["record_id"].to_pylist())
        if twice := {record_id for record_id, count in ids.items() if count > 1}:
            found[version] = twice
    return found


def test_a_run_that_finds_the_lock_held_starts_no_java(tmp_path: Path) -> None:
    """Whoever holds the lock, the run ends before Spark starts and writes nothing."""
    recordings = made.Recordings(tmp_path)
    recording, warehouse = tmp_path / recordings.add(), tmp_path / "warehouse"
    grow(recordings, 0)
    hold = "import sys, time; from mqreplay.lake.lock import warehouse_lock\n"
    hold += "with warehouse_lock(sys.argv[1]):\n    print('held', flush=True)\n    time.sleep(300)"
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "lib")}
    holder = subprocess.Popen(
        [sys.executable, "-c", hold, str(warehouse)], env=environment, stdout=subprocess.PIPE, text=True
    )
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        # Java that cannot start would be told of, with another exit status.
        environment["JAVA_HOME"] = environment["PATH"] = str(tmp_path / "no-java")
        before = sorted(path.name for path in warehouse.rglob("*"))
        command = [sys.executable, "-m", "mqreplay.cli", "ingest", str(recording), "--warehouse", str(warehouse)]
        run = subprocess.run(
            [*command, "--engine", "spark"],
            env=environment,
            capture_output=True,
            text=True,
            timeout=MOST_S,
        )
    finally:
        holder.kill()
        holder.communicate()
    assert (run.returncode, run.stdout) == (LOCKED, "")
    assert int(refusal(run.stderr)[1]) == holder.pid
    assert sorted(path.name for path in warehouse.rglob("*")) == before
