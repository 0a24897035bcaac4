"""Write a recording as it was written: the lines and files of each minute at its end."""

from __future__ import annotations

import datetime as dt
import gzip
import json
import shutil
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from mqreplay.decode.recording.files import RECORD_TABLES
from night.cut import INSTANTS, jsonl_files

POLLED = "consumerOffset.jsonl.gz"
MINUTE_MS = 60_000


def at(ms: int) -> dt.datetime:
    """The instant of epoch milliseconds."""
    return dt.datetime.fromtimestamp(ms / 1000, dt.UTC)


class Feed:
    """A recording that is written again, into the folder ``to``."""

    def __init__(self, source: Path, to: Path) -> None:
        """Read the recording in ``source``."""
        self.to = to
        self.lines: dict[str, list[tuple[int, bytes]]] = defaultdict(list)
        for path in jsonl_files(source):
            stem = path.name.split(".")[0]
            if stem in RECORD_TABLES:
                self.lines[f"{stem}.jsonl.gz"] += _written(path)
        self.files: list[tuple[int, Path]] = []
        for path in sorted((source / "snapshots").glob("*/*/*")):
            place = path.relative_to(source)
            if path.name == POLLED:
                self.lines[str(place)] += _written(path)
            else:
                self.files.append((int(place.parts[2]), place))
        self._source = source
        for lines in self.lines.values():
            lines.sort(key=lambda line: line[0])
        self.files.sort()
        to.mkdir(parents=True)
        if (source / "brokers.json").exists():
            shutil.copy(source / "brokers.json", to)

    @property
    def reach(self) -> tuple[int, int]:
        """The first and the last instant at which something was written, in epoch ms."""
        times = [lines[i][0] for lines in self.lines.values() for i in (0, -1)]
        return min(times), max(times + [ts for ts, _ in self.files])

    def until(self, ms: int) -> None:
        """Write all that was written until then: a gzip member for each file, as a recorder does."""
        for name, lines in self.take(ms):
            path = self.to / name
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("ab") as file:
                file.write(gzip.compress(b"".join(lines), 1, mtime=0))
        for place in self.take_files(ms):
            (self.to / place).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(self._source / place, self.to / place)

    def take(self, ms: int) -> list[tuple[str, list[bytes]]]:
        """Return the lines of each file until then, and leave the others."""
        made = []
        for name, lines in self.lines.items():
            number = next((i for i, (ts, _) in enumerate(lines) if ts > ms), len(lines))
            if number:
                made.append((name, [line for _, line in lines[:number]]))
                self.lines[name] = lines[number:]
        return made

    def take_files(self, ms: int) -> list[Path]:
        """Return the paths of the copied files until then, and leave the others."""
        taken = [place for ts, place in self.files if ts <= ms]
        self.files = self.files[len(taken) :]
        return taken


def _written(path: Path) -> Iterator[tuple[int, bytes]]:
    data = path.read_bytes()
    for line in (gzip.decompress(data) if path.suffix == ".gz" else data).splitlines():
        if line:
            record = json.loads(line)
            yield max(record.get(name) or 0 for name in INSTANTS), line + b"\n"
