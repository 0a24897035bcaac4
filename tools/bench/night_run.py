"""One run of mqreplay as its user starts it, with the times of the lines that it prints."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from pathlib import Path

from peers.usage import Usage

ROOT = Path(__file__).resolve().parents[2]
PROGRESS = re.compile(r"^\s*([\d.]+) s\s+(.*)$")
Lines = list[tuple[float, str]]


def mqreplay(command: str, recording: Path, out: Path, *more: str) -> tuple[Lines, dict[str, float]]:
    """Run a command; return its progress lines, each with its second, "end" last; and the figures of usage.Usage."""
    began = time.perf_counter()
    words = [sys.executable, "-m", "mqreplay.cli", command, str(recording), "--warehouse", str(out), *more]
    run = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, cwd=ROOT)
    usage = Usage(run.pid)
    lines: Lines = []
    errors: list[str] = []
    before = None  # Python's start, which the seconds of progress lines do not include
    for line in run.stderr or ():
        found = PROGRESS.match(line)
        if found is None:
            errors.append(line)
            continue
        before = time.perf_counter() - began - float(found[1]) if before is None else before
        lines.append((before + float(found[1]), found[2]))
    status = run.wait()
    used = usage.over()
    if status not in (0, 1) or not lines:
        raise SystemExit(f"{command} ended with {status}:\n{''.join(errors)[-2000:]}")
    lines.append((time.perf_counter() - began, "end"))
    return lines, used


def second_of(lines: Lines, text: str, default: float | None = None) -> float:
    """Return the second of the first line that contains ``text``. Raises SystemExit without such a line or default."""
    second = next((second for second, line in lines if text in line), default)
    if second is None:
        raise SystemExit(f"mqreplay did not print {text!r}")
    return second


def session_of(lines: Lines) -> float:
    """Return the seconds that Spark took to start, after the plan of the ingest; 0 for a run without Spark."""
    planned = second_of(lines, " to read")
    return second_of(lines, " runs on ", planned) - planned


def stages(lines: Lines) -> dict[str, float]:
    """Return the seconds of each stage of a `mqreplay nightly` that replayed one day."""
    session, end = session_of(lines), lines[-1][0]
    replaying, replayed, validated = (second_of(lines, text) for text in ("replaying", " replayed", "expectations run"))
    return {
        "session": session,
        "ingest": replaying - session,
        "replay": replayed - replaying,
        "validate": validated - replayed,
        "report": end - validated,
        "all": end,
    }
