"""What several tests ask of the sample recordings, read without mqreplay."""

from __future__ import annotations

import gzip
from pathlib import Path

SAMPLE = Path(__file__).parents[1] / "data" / "sample"


def rows_of(recording: str) -> dict[str, int]:
    """Lines of each JSONL file of a sample recording."""
    counts = {}
    for path in sorted((SAMPLE / recording).glob("*.jsonl.gz")):
        with gzip.open(path, "rb") as lines:
            counts[path.name] = sum(1 for line in lines if line.strip())
    return counts
