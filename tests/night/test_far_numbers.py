"""Extreme numbers in any field of any kind do not end a run."""

from __future__ import annotations

import copy
import gzip
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mqreplay.decode.recording.files import RECORD_TABLES
from mqreplay.settings import load_settings
from night.cut import cut, first_instant
from tests_shared import SAMPLE, run

pytestmark = pytest.mark.long  # each is a night of its own
ENDS = (2**63 - 1, -(2**63), 2**31 - 1, -(2**31), -1, 0)
TIMES = ("ts", "request_ts")  # of another day, and looked at elsewhere
Path_ = tuple[str | int, ...]


@pytest.mark.parametrize(
    ("name", "after_ms"), [("bulk-5.3.3", 0), ("orders-4.9.7", 100_000), ("orders-4.9.7", 500_000)]
)
def test_a_night_with_such_lines_is_judged_to_its_end(tmp_path, name, after_ms):
    began = first_instant(SAMPLE / name) + after_ms
    recording = cut(SAMPLE / name, tmp_path / "recording", from_ms=began, to_ms=began + 120_000)
    assert sum(map(spoil, recording.glob("*.jsonl*"))) > 1000
    root = str(tmp_path / "warehouse")
    [outcome] = run("nightly", root, load_settings(), lambda what: None, recordings=[str(recording)])
    assert outcome.judgements["gold.pull_route"]["agree"] > 100
    assert outcome.quarantined > 100, "numbers that no column holds"


def spoil(file: Path) -> int:
    """Puts copies of its lines behind them, each with one number at one of ENDS; gives how many."""
    if file.name.split(".")[0] not in RECORD_TABLES:
        return 0
    opened = gzip.open if file.suffix == ".gz" else open
    with opened(file, "rt") as stream:
        lines = [json.loads(line) for line in stream]
    spoilt, done = [], Counter[Path_]()
    for line in lines[len(lines) // 3 :]:
        for place in numbers(line):
            names = tuple(part for part in place if isinstance(part, str))
            done[names] += 1
            if place[-1] not in TIMES and done[names] <= 4:
                spoilt += [with_number(line, place, end) for end in ENDS]
    with opened(file, "at") as stream:
        stream.writelines(json.dumps(line) + "\n" for line in spoilt)
    return len(spoilt)


def numbers(value: Any, place: Path_ = ()) -> Iterator[Path_]:
    """Where numbers stand; of a list the first two."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from numbers(inner, (*place, name))
    elif isinstance(value, list):
        for number, inner in enumerate(value[:2]):
            yield from numbers(inner, (*place, number))
    elif type(value) is int:
        yield place


def with_number(line: dict[str, Any], place: Path_, number: int) -> dict[str, Any]:
    made: Any = copy.deepcopy(line)
    inner = made
    for part in place[:-1]:
        inner = inner[part]
    inner[place[-1]] = number
    return made
