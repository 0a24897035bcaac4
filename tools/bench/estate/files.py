"""JSONL files, gzipped at level 1, one an hour or several: the same bytes for the same lines, whenever written."""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import BinaryIO

from .sizes import HOUR_MS, START_MS

GZIP = 31  # zlib's own header: no name, and 0 for the time
MOST_BYTES = 192 << 20  # of text in a file: about as large as recorders let theirs grow


class HourlyLines:
    """``stem``.HHPP.jsonl.gz: hour of the day, and part of the hour. Give lines in the order of their hours."""

    def __init__(self, folder: Path, stem: str) -> None:
        self.folder, self.stem = folder, stem
        self.hour, self.part, self.written, self.lines = -1, 0, 0, 0
        self._file: BinaryIO | None = None
        self._zip = zlib.compressobj(1, zlib.DEFLATED, GZIP)

    def write(self, at_ms: int, text: str, lines: int) -> None:
        """Adds whole lines, each with its line feed, to the file of the hour of ``at_ms`` (epoch ms)."""
        hour = min((at_ms - START_MS) // HOUR_MS, 23)
        if hour != self.hour or self.written > MOST_BYTES:
            self._open(hour)
        data = text.encode("ascii")
        self.written += len(data)
        self.lines += lines
        self._file.write(self._zip.compress(data))

    def _open(self, hour: int) -> None:
        self.close()
        self.part = self.part + 1 if hour == self.hour else 0
        self.hour, self.written = hour, 0
        self._zip = zlib.compressobj(1, zlib.DEFLATED, GZIP)
        self._file = (self.folder / f"{self.stem}.{hour:02d}{self.part:02d}.jsonl.gz").open("wb")

    def close(self) -> None:
        """Ends the file that is open, if any."""
        if self._file is not None:
            self._file.write(self._zip.flush())
            self._file.close()
            self._file = None
