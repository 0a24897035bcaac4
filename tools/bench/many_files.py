"""What a file costs the driver: `mqreplay ingest` of very many very small snapshots, and the memory of its Python.

`python tools/bench/many_files.py [--sources 100] [--snapshots 2000] [--folder DIR]` makes the recording, once, and
prints seconds and the most memory that the driver's Python had.
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
from pathlib import Path

BEGAN_MS = 1_795_305_600_000
APART_MS = 5_000


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sources", type=int, default=100)
    parser.add_argument("--snapshots", type=int, default=2000, help="of each source")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir(), f"mqreplay-bench-{os.getuid()}"))
    given = parser.parse_args()
    recording = given.folder / f"files-{given.sources}-{given.snapshots}"
    if not recording.exists():
        made = recording.with_suffix(".making")
        shutil.rmtree(made, ignore_errors=True)
        make(made, given.sources, given.snapshots)
        made.rename(recording)
    files = given.sources * given.snapshots
    seconds, most = ingest(recording, given.folder / "files-warehouse")
    print(f"{files:,} files: {seconds:,.1f} s, the driver's Python at the most {most / 1e9:.2f} GB")


def make(folder: Path, sources: int, snapshots: int) -> None:
    """Snapshots of four queues, all of which move."""
    for source in range(sources):
        for number in range(snapshots):
            place = folder / "snapshots" / f"broker-{source:05d}-0" / str(BEGAN_MS + number * APART_MS)
            place.mkdir(parents=True)
            queues = {str(queue): number * (queue + 1) for queue in range(4)}
            (place / "consumerOffset.json").write_text(json.dumps({"offsetTable": {"Topic@group": queues}}))


def ingest(recording: Path, warehouse: Path) -> tuple[float, int]:
    """Seconds, and bytes."""
    shutil.rmtree(warehouse, ignore_errors=True)
    words = [sys.executable, "-m", "mqreplay.cli", "ingest", str(recording), "--warehouse", str(warehouse)]
    began, most = time.perf_counter(), 0
    run = subprocess.Popen([*words, "--cluster", "files"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while run.poll() is None:
        most = max(most, _resident(run.pid))
        time.sleep(0.2)
    if run.returncode:
        raise SystemExit(f"ingest ended with {run.returncode}")
    return time.perf_counter() - began, most


def _resident(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError):
        return 0


if __name__ == "__main__":
    main()
