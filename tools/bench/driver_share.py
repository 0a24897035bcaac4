"""The share of a run's time in which no task ran: the driver alone, planning or committing; and its Spark jobs.

`python tools/bench/driver_share.py DIR` reads the event log in DIR (spark.eventLog.enabled, spark.eventLog.dir) and
prints one line of JSON: wall_s from the application's start to its last task, task_s in which some task ran, the share,
and how many jobs there were.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

Span = tuple[float, float]


def main() -> int:
    """The command line."""
    print(json.dumps(driver_share(Path(sys.argv[1]))))
    return 0


def driver_share(folder: Path) -> dict[str, float]:
    """Return wall_s, task_s, driver_share (0 to 1) and jobs of the run whose event log lies in ``folder``."""
    began, spans, jobs = 0.0, [], 0
    for event in _events(folder):
        if event["Event"] == "SparkListenerApplicationStart":
            began = event["Timestamp"] / 1000
        elif event["Event"] == "SparkListenerJobStart":
            jobs += 1
        elif event["Event"] == "SparkListenerTaskEnd":
            task = event["Task Info"]
            spans.append((task["Launch Time"] / 1000, task["Finish Time"] / 1000))
    if not spans:
        raise SystemExit(f"{folder} holds no event log with tasks")
    wall, busy = max(end for _, end in spans) - began, covered(spans)
    share = round(1 - busy / wall, 3)
    return {"wall_s": round(wall, 1), "task_s": round(busy, 1), "driver_share": share, "jobs": jobs}


def covered(spans: Iterable[Span]) -> float:
    """Seconds that lie in at least one of the spans."""
    total = reached = 0.0
    for start, end in sorted(spans):
        total += max(0.0, end - max(start, reached))
        reached = max(reached, end)
    return total


def _events(folder: Path) -> Iterator[dict[str, Any]]:
    for path in sorted(p for p in folder.rglob("*") if p.is_file() and p.suffix != ".crc"):
        for line in path.read_text(encoding="utf-8").splitlines():
            if line.startswith("{"):
                yield json.loads(line)


if __name__ == "__main__":
    sys.exit(main())
