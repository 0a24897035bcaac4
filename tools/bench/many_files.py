"""What a file costs the driver: an ingest of very many very small snapshots, and the same again without changes.

`python tools/bench/many_files.py [--sources 100] [--snapshots 2000] [--engine local] [--folder DIR]` makes the
recording, once, and prints for both runs the seconds, and the most memory of the driver's Python and of others.
With `--uri s3://BUCKET/PREFIX` it ingests the recording from there: copy it to that place before.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

BEGAN_MS = 1_795_305_600_000
APART_MS = 5_000
GROUPS = 4


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sources", type=int, default=100)
    parser.add_argument("--snapshots", type=int, default=2000, help="of each source")
    parser.add_argument("--engine", default="spark", choices=("spark", "local"))
    parser.add_argument("--uri", help="where a copy of the recording is")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir(), f"mqreplay-bench-{os.getuid()}"))
    given = parser.parse_args()
    recording = given.folder / f"files-{given.sources}-{given.snapshots}"
    if not given.uri and not recording.exists():
        made = recording.with_suffix(".making")
        shutil.rmtree(made, ignore_errors=True)
        make(made, given.sources, given.snapshots)
        made.rename(recording)
    warehouse = given.folder / "files-warehouse"
    shutil.rmtree(warehouse, ignore_errors=True)
    for run in ("first", "second"):
        seconds, peaks = ingest(given.uri or str(recording), warehouse, given.engine)
        others = ", ".join(f"{name} {most / 1e9:.2f} GB" for name, most in sorted(peaks.items()) if name != "driver")
        print(
            f"{given.sources * given.snapshots:,} files, {run} run: {seconds:,.1f} s, the driver's Python at the most "
            f"{peaks['driver'] / 1e9:.2f} GB; largest other processes: {others or 'none'}",
            flush=True,
        )


def make(folder: Path, sources: int, snapshots: int) -> None:
    """Snapshots of some groups with four queues each, of which most move."""
    for source in range(sources):
        for number in range(snapshots):
            place = folder / "snapshots" / f"broker-{source:05d}-0" / str(BEGAN_MS + number * APART_MS)
            place.mkdir(parents=True)
            table = {
                f"orders-{group}@payments-{group}": {str(q): number // (2 + group) * (q + 1) for q in range(4)}
                for group in range(GROUPS)
            }
            (place / "consumerOffset.json").write_text(json.dumps({"offsetTable": table}))


def ingest(recording: str, warehouse: Path, engine: str) -> tuple[float, dict[str, int]]:
    """Run the ingest; return the figures of `run_mqreplay`."""
    return run_mqreplay("ingest", recording, "--warehouse", str(warehouse), "--engine", engine, "--cluster", "files")


def run_mqreplay(command: str, *more: str) -> tuple[float, dict[str, int]]:
    """Seconds, and the most bytes of memory of the driver and, by name, of the largest other processes."""
    began, peaks = time.perf_counter(), defaultdict[str, int](int)
    run = subprocess.Popen([sys.executable, "-m", "mqreplay.cli", command, *more], stdout=subprocess.DEVNULL)
    while run.poll() is None:
        peaks["driver"] = max(peaks["driver"], _peak(run.pid))
        for child in _children(run.pid):
            name = _name(child)
            peaks[name] = max(peaks[name], _peak(child))
        time.sleep(0.2)
    if run.returncode:
        raise SystemExit(f"{command} ended with {run.returncode}")
    return time.perf_counter() - began, peaks


def _peak(pid: int) -> int:
    """The most resident memory of a process until now, in bytes."""
    for line in _proc(pid, "status").splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return 0


def _name(pid: int) -> str:
    return _proc(pid, "comm").strip()


def _children(pid: int) -> list[int]:
    found = []
    for child in map(int, _proc(pid, f"task/{pid}/children").split()):
        found += [child, *_children(child)]
    return found


def _proc(pid: int, name: str) -> str:
    try:
        return Path(f"/proc/{pid}/{name}").read_text()
    except OSError:  # it has ended
        return ""


if __name__ == "__main__":
    main()
