"""The same night in other engines: `python tools/bench/peers.py --peer polars|duckdb|plain --recording DIR --out DIR`.

Prints one line of JSON: seconds of wall clock and CPU of each stage, the peak of resident memory of all processes,
rows and hashes of the tables, and whether they are what the recording's answers.json says. --out is made anew; plain
Python writes no table and needs none. With --equal A B, instead, whether two warehouses (mqreplay's too) hold the same
rows.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import shutil
import sys
import time
from pathlib import Path
from typing import Any

BEGAN = time.perf_counter()
sys.path.insert(0, str(Path(__file__).parents[2] / "lib"))


def main() -> int:
    """The command line; 1 if the tables are not as they should be."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", choices=("polars", "duckdb", "plain"))
    parser.add_argument("--recording", type=Path, metavar="DIR")
    parser.add_argument("--out", type=Path, metavar="DIR")
    parser.add_argument("--snapshots", default="carry", choices=("carry", "brute", "lines"), help="how they are read")
    parser.add_argument("--workers", type=int, default=os.cpu_count(), help="processes, or threads")
    parser.add_argument("--equal", nargs=2, type=Path, metavar="DIR")
    given = parser.parse_args()
    os.environ["POLARS_MAX_THREADS"] = "1" if given.peer == "polars" else str(given.workers)
    equal = importlib.import_module("peers.equal")
    if given.equal:
        told = equal.compare(*given.equal)
        print(json.dumps(told))
        return 0 if told["equal"] else 1
    stages = importlib.import_module("peers.stages").Stages()
    peer = importlib.import_module(f"peers.{given.peer}_peer")
    told: dict[str, object] = {"peer": given.peer, "snapshots": given.snapshots, "workers": given.workers}
    if given.peer == "plain":
        found = peer.run(given.recording, stages)
        told |= {"snapshots": "lines", "workers": 1}
        return _told(told | _used(stages) | found)
    shutil.rmtree(given.out, ignore_errors=True)
    given.out.mkdir(parents=True)
    peer.run(given.recording, given.out, given.workers, stages, given.snapshots)
    used = _used(stages)  # before the check, which is no part of the night
    return _told(told | used | equal.checked(given.out, given.recording / "answers.json"))


def _used(stages: Any) -> dict[str, object]:
    """Return seconds of all and of each stage, of wall clock and of processors, and the peak of memory."""
    cpu = importlib.import_module("peers.stages").cpu_seconds()
    return {"total_s": round(time.perf_counter() - BEGAN, 3), "cpu_s": round(cpu, 3), **stages.told()}


def _told(told: dict[str, object]) -> int:
    print(json.dumps(told))
    return 0 if told["right"] else 1


if __name__ == "__main__":
    sys.exit(main())
