"""One run of mqreplay as its user starts it, timed by what it says."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from pathlib import Path

from peers.usage import Usage

ROOT = Path(__file__).resolve().parents[2]
STAGES = re.compile(r"^\s*([\d.]+) s\s+(.*)$")
Said = list[tuple[float, str]]


def mqreplay(command: str, recording: Path, out: Path, *more: str) -> tuple[Said, dict[str, float]]:
    """Return what it said, with the seconds at which it did, its end last; and the figures of usage.Usage."""
    began = time.perf_counter()
    words = [sys.executable, "-m", "mqreplay.cli", command, str(recording), "--warehouse", str(out), *more]
    run = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, cwd=ROOT)
    usage = Usage(run.pid)
    told = []
    before = None  # what Python takes until it says its first word, from which it counts
    for line in run.stderr or ():
        before = time.perf_counter() - began if before is None else before
        if found := STAGES.match(line):
            told.append((before + float(found[1]), found[2]))
    status = run.wait()
    used = usage.over()
    if status not in (0, 1) or not told:
        raise SystemExit(f"{command} ended with {status}")
    told.append((time.perf_counter() - began, "end"))
    return told, used


def said(lines: Said, what: str) -> float:
    """The second of the first line that holds ``what``."""
    return next(seconds for seconds, text in lines if what in text)


def stages(lines: Said) -> dict[str, float]:
    """The seconds of each stage of a `mqreplay nightly` that replayed a day."""
    start = said(lines, "Spark ")
    replay, found, checked = (said(lines, what) for what in ("replaying", " replayed", "expectations run"))
    return {
        "session": start,
        "ingest": replay - start,
        "replay": found - replay,
        "validate": checked - found,
        "report": lines[-1][0] - checked,
        "all": lines[-1][0],
    }
