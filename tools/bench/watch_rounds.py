"""Measures rounds of `nightly --watch` early and late in a long recording.

`python tools/bench/watch_rounds.py [RECORDING] [--minutes 22 100 600] [--lookback 15]` repeats a recorded night, lets
it grow minute by minute, and prints the user CPU seconds of the rounds that end in each of these minutes. Between them
the recording grows without rounds. Each group of rounds is longer than the window.
"""

from __future__ import annotations

import argparse
import datetime as dt
import gzip
import re
import resource
import statistics
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from mqreplay.engines.local import LocalEngine
from mqreplay.machine.places import sample_dir
from mqreplay.notices.watch import Watch
from mqreplay.settings import load_settings

sys.path.append(str(Path(__file__).parents[2] / "tests"))
from night.feed import Feed

MINUTE_MS = 60_000
INSTANT = re.compile(rb"(?<!\d)1\d{12}(?!\d)")
MEASURED = 5  # rounds at the end of a group


class Repeated:
    """A recording that repeats another one, into the folder ``to``."""

    def __init__(self, source: Path, to: Path) -> None:
        """Read the source once; each repetition is written from it."""
        self._source, self._to = source, to
        self._number = 0
        self._feed = Feed(source, to)
        self.begin, end = self._feed.reach
        self._period = end - self.begin + 1000
        self._lines, self._files = dict(self._feed.lines), list(self._feed.files)

    def until(self, ms: int) -> None:
        """Write all that was written until then."""
        while ms >= self.begin + (self._number + 1) * self._period:
            self._write(self.begin + self._period)
            self._number += 1
            self._feed.lines, self._feed.files = dict(self._lines), list(self._files)
        self._write(ms - self._number * self._period)

    def _write(self, ms: int) -> None:
        later = self._number * self._period

        def moved(data: bytes) -> bytes:
            return INSTANT.sub(lambda found: b"%d" % (int(found[0]) + later), data)

        for name, lines in self._feed.take(ms):
            path = self._to / moved(name.encode()).decode()
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("ab") as file:
                file.write(gzip.compress(moved(b"".join(lines)), 1, mtime=0))
        for place in self._feed.take_files(ms):
            path = self._to / moved(str(place).encode()).decode()
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(moved((self._source / place).read_bytes()))


def cpu_s() -> float:
    """Return the user CPU seconds of this process."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_utime


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recording", nargs="?", type=Path, default=sample_dir() / "orders-4.9.7")
    parser.add_argument("--minutes", type=int, nargs="+", default=[22, 100, 600])
    parser.add_argument("--lookback", type=int, default=15)
    given = parser.parse_args()
    settings = load_settings()
    settings = replace(settings, watch=replace(settings.watch, lookback_minutes=given.lookback))
    group = given.lookback + 2 + MEASURED
    with tempfile.TemporaryDirectory() as name, LocalEngine(Path(name), processes=1) as engine:
        folder = Path(name)
        recording = Repeated(given.recording, folder / "live")
        live = [str(folder / "live")]
        watch = Watch(str(folder / "w"), settings, live, "c", engine, folder / "watch", 60, print)
        for last in given.minutes:
            taken: list[tuple[float, int]] = []
            for minute in range(last - group + 1, last + 1):
                now = recording.begin + minute * MINUTE_MS
                recording.until(now)
                began = cpu_s()
                done = watch.round(dt.datetime.fromtimestamp(now / 1000, dt.UTC))
                if not done.nights:  # after midnight the night runs, too
                    taken.append((cpu_s() - began, done.lines))
            size = sum(path.stat().st_size for path in (folder / "live").rglob("*") if path.is_file()) / 1e6
            some = taken[-MEASURED:]
            print(
                f"minute {last - MEASURED + 1} to {last}: {statistics.median(s for s, _ in some):.2f} s of CPU a round,"
                f" {statistics.median(n for _, n in some):,.0f} new lines a round, recording of {size:,.0f} MB;"
                f" most expensive round {max(s for s, _ in taken[1:]):.2f} s;"
                f" at most {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024:,} MiB of memory",
                flush=True,
            )


if __name__ == "__main__":
    main()
