"""A recording of another night: every instant in it is moved by the same time.

    python tests/night/later.py data/sample/orders-4.9.7 /tmp/over-midnight --midnight-after 650

Logs, packet captures and output of mqadmin are left out: their times are text.
"""

from __future__ import annotations

import argparse
import gzip
import re
from pathlib import Path

from night.cut import first_instant, jsonl_files

DAY_MS = 86_400_000
NEAR_MS = 3 * DAY_MS  # numbers of 13 digits this near to the recording are instants in it
INSTANT = re.compile(rb"(?<!\d)\d{13}(?!\d)")


def moved(source: Path, to: Path, by_ms: int) -> Path:
    """Writes the recording, ``by_ms`` later, to the folder ``to``, and gives it back."""
    began = first_instant(source)

    def later(found: re.Match[bytes]) -> bytes:
        ms = int(found[0])
        return b"%d" % (ms + by_ms) if abs(ms - began) < NEAR_MS else found[0]

    copied = [path for path in source.glob("snapshots/**/*") if path.is_file()]
    for path in [*jsonl_files(source), *source.glob("*.json"), *copied]:
        place = INSTANT.sub(later, str(path.relative_to(source)).encode()).decode()
        data = path.read_bytes()
        zipped = path.suffix == ".gz"
        text = INSTANT.sub(later, gzip.decompress(data) if zipped else data)
        (to / place).parent.mkdir(parents=True, exist_ok=True)
        (to / place).write_bytes(gzip.compress(text, 1, mtime=0) if zipped else text)
    return to


def midnight_after(source: Path, seconds: float) -> tuple[int, int]:
    """By how much to move a recording for midnight to come so long after its first snapshot, and when that is (ms)."""
    began = first_instant(source)
    midnight = (began // DAY_MS + 1) * DAY_MS
    return midnight - int(seconds * 1000) - began, midnight


def main() -> None:
    """Moves a recording as the command line says."""
    read = argparse.ArgumentParser(description="Moves a recording in time, so that midnight comes in it.")
    read.add_argument("source", type=Path)
    read.add_argument("to", type=Path)
    read.add_argument("--midnight-after", type=float, required=True, metavar="SECONDS")
    given = read.parse_args()
    moved(given.source, given.to, midnight_after(given.source, given.midnight_after)[0])


if __name__ == "__main__":
    main()
