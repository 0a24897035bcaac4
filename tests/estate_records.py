"""The lines of a made-up estate, decoded."""

from __future__ import annotations

import gzip
from collections import defaultdict
from collections.abc import Collection
from pathlib import Path

from mqreplay.decode.kinds import KINDS


def decoded_lines(estate: Path, hours: Collection[str]) -> dict[str, list[dict]]:
    """Return the lines by kind; a line that is refused fails here.

    Of heartbeats and runtime tables only files of these ``hours`` are read: the other hours are like them.
    """
    found = defaultdict(list)
    for path in sorted(estate.glob("*.jsonl.gz")):
        stem, number, *_ = path.name.split(".")
        if stem in ("heartbeats", "broker_runtime") and number not in hours:
            continue
        found[stem] += map(KINDS[stem].decode, gzip.decompress(path.read_bytes()).splitlines())
    return found
