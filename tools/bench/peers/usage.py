"""Peak memory and processor time of a command and of all processes below it."""

from __future__ import annotations

import os
import resource
import subprocess
import threading
from pathlib import Path

from .stages import stats_of

PAGE, TICKS = os.sysconf("SC_PAGE_SIZE"), os.sysconf("SC_CLK_TCK")
LOOK_S = 0.25


class Usage:
    """Watches a process from its start until `over`, which gives the two figures."""

    def __init__(self, pid: int) -> None:
        """``pid``: a child of this process."""
        self._pid, self._peak = pid, 0
        self._seconds: dict[tuple[int, int], float] = {}
        self._began = _of_children()
        self._over = threading.Event()
        self._watch = threading.Thread(target=self._watch_until_over, daemon=True)
        self._watch.start()

    def over(self) -> dict[str, float]:
        """Return the figures, once the process was waited for.

        Who is not waited for by its parent is known only as it was last seen; who lived between two looks only as far
        as it was waited for: the larger sum counts.
        """
        self._over.set()
        self._watch.join()
        waited_for = _of_children() - self._began
        return {"CPU s": max(waited_for, sum(self._seconds.values())), "peak MB": self._peak / 1e6}

    def _watch_until_over(self) -> None:
        while not self._over.wait(LOOK_S):
            found = stats_of(self._pid)
            self._peak = max(self._peak, sum(int(fields[21]) for fields in found.values()) * PAGE)
            for pid, fields in found.items():
                # A process id may come again: the start time tells them apart.
                self._seconds[pid, int(fields[19])] = sum(map(int, fields[11:13])) / TICKS


def watched(words: list[str], cwd: Path | None = None) -> tuple[subprocess.CompletedProcess[str], dict[str, float]]:
    """Run a command to its end; return what it printed, and its figures."""
    run = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=cwd)
    usage = Usage(run.pid)
    out, err = run.communicate()
    return subprocess.CompletedProcess(words, run.returncode, out, err), usage.over()


def _of_children() -> float:
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime
