"""The floor under every engine: how long a recording's bytes take to be read, and to be gunzipped, on one core.

`python tools/bench/limit.py --recording DIR [--runs N]` prints one line of JSON: seconds, MB and MB/s, best of the
runs; the first warms the page cache. Nothing is parsed and nothing is kept.
"""

from __future__ import annotations

import argparse
import json
import os
import time
import zlib
from pathlib import Path

CHUNK = 1 << 20


def read(paths: list[str], buffer: bytearray) -> int:
    """Reads every byte; gives how many there were."""
    total, into = 0, memoryview(buffer)
    for path in paths:
        file = os.open(path, os.O_RDONLY)
        while got := os.readv(file, [into]):
            total += got
        os.close(file)
    return total


def gunzip(paths: list[str], buffer: bytearray) -> int:
    """Reads and inflates every gzipped file, a piece at a time; gives how many bytes came out."""
    total, into = 0, memoryview(buffer)
    for path in paths:
        inflate = zlib.decompressobj(31)
        file = os.open(path, os.O_RDONLY)
        while got := os.readv(file, [into]):
            total += len(inflate.decompress(into[:got]))
        os.close(file)
    return total


def fastest(work, runs: int) -> dict[str, float]:  # type: ignore[no-untyped-def]
    """Seconds, MB and MB/s of the fastest of some runs."""
    seconds, size = float("inf"), 0
    for _ in range(runs):
        began = time.perf_counter()
        size = work()
        seconds = min(seconds, time.perf_counter() - began)
    return {"wall_s": round(seconds, 3), "mb": round(size / 1e6, 1), "mb_per_s": round(size / 1e6 / seconds)}


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recording", type=Path, required=True, metavar="DIR")
    parser.add_argument("--runs", type=int, default=3)
    given = parser.parse_args()
    snapshots = sorted(map(str, (given.recording / "snapshots").glob("*/*/*")))
    lines = sorted(map(str, given.recording.glob("*.jsonl.gz")))
    buffer = bytearray(CHUNK)
    told = {
        "read_snapshots": fastest(lambda: read(snapshots, buffer), given.runs),
        "read_lines": fastest(lambda: read(lines, buffer), given.runs),
        "gunzip_lines": fastest(lambda: gunzip(lines, buffer), given.runs),
    }
    floor = told["read_snapshots"]["wall_s"] + told["gunzip_lines"]["wall_s"]
    print(json.dumps({**told, "files": len(snapshots) + len(lines), "floor_s": round(floor, 3)}))


if __name__ == "__main__":
    main()
