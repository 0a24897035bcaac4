"""Wall clock, CPU and memory of each stage of a run, children included."""

from __future__ import annotations

import os
import resource
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PAGE = os.sysconf("SC_PAGE_SIZE")
LOOK_S = 0.05


class Stages:
    """``with stages("name"):`` around each; `told` gives seconds and MB. Stages of one name add up."""

    def __init__(self) -> None:
        self._seconds: dict[str, list[float]] = {}
        self._peak = 0
        self._over = threading.Event()
        self._watch = threading.Thread(target=self._look, daemon=True)
        self._watch.start()

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        """Time what is done within, as a stage of that name."""
        wall, cpu = time.perf_counter(), cpu_seconds()
        yield
        spent = self._seconds.setdefault(name, [0.0, 0.0])
        spent[0] += time.perf_counter() - wall
        spent[1] += cpu_seconds() - cpu

    def _look(self) -> None:
        while not self._over.wait(LOOK_S):
            self._peak = max(self._peak, tree_rss())

    def told(self) -> dict[str, object]:
        """Stage -> wall_s and cpu_s; and peak_rss_mb of this process and its children together."""
        self._over.set()
        self._watch.join()
        own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024  # what was between two looks
        stages = {name: {"wall_s": round(w, 3), "cpu_s": round(c, 3)} for name, (w, c) in self._seconds.items()}
        return {"stages": stages, "peak_rss_mb": round(max(self._peak, own) / 1e6)}


def cpu_seconds() -> float:
    """User and system time of this process and of its children, those still running too."""
    ticks = os.sysconf("SC_CLK_TCK")
    return sum(sum(map(int, fields[11:15])) for fields in stats_of(os.getpid()).values()) / ticks


def tree_rss() -> int:
    """Resident bytes of this process and its descendants; what they share counts more than once."""
    return sum(int(fields[21]) for fields in stats_of(os.getpid()).values()) * PAGE


def stats_of(root: int) -> dict[int, list[str]]:
    """Return, of a process and all below it, the fields of /proc/PID/stat that follow the name."""
    found: dict[int, list[str]] = {}
    todo = [(root, b"")]
    while todo:
        pid, above = todo.pop()
        try:
            words = Path(f"/proc/{pid}/cmdline").read_bytes()
            if borrows(words, above):
                continue
            found[pid] = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            for task in Path(f"/proc/{pid}/task").iterdir():
                todo += [(int(child), words) for child in (task / "children").read_text().split()]
        except (FileNotFoundError, ProcessLookupError):
            continue
    return found


def borrows(words: bytes, above: bytes) -> bool:
    """Whether a child of these words is still on its parent's memory, and none of its own is to be counted.

    Java starts processes by vfork: until the child is another program it shows all of Java's memory once more.
    """
    return words == above and words.partition(b"\0")[0].endswith(b"java")
