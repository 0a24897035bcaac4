"""Damaged logs give records or counts, and never fail."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path

import pytest

from importer.logs.collected_logs import NIGHTS, imported
from mqreplay.decode.kinds import KINDS
from mqreplay.decode.logs.log_line import LOGS
from mqreplay.importer.files.layout import base_name
from mqreplay.importer.logs.line_count import OTHER
from tests_shared import SAMPLE


def fuzzed(count: int, seed: int, folder: Path) -> None:
    """Write logs with ``count`` damaged lines of the sample's."""
    rng = random.Random(seed)
    for night in NIGHTS:
        for path in sorted((SAMPLE / night / "logs").rglob("*.log.gz")):
            if base_name(str(path)).partition(".")[0] not in LOGS:
                continue
            with gzip.open(path) as stream:
                # Most lines have no fact in them.
                lines = [line for line in stream if len(line) > 120 or rng.random() < 0.1] or [b"2026-11-21 "]
            into = folder / night / path.parent.name
            into.mkdir(parents=True, exist_ok=True)
            picked = [lines[rng.randrange(len(lines))] for _ in range(count // 24)]
            (into / path.name.removesuffix(".gz")).write_bytes(b"".join(mutated(line, rng) for line in picked))


def mutated(line: bytes, rng: random.Random) -> bytes:
    data = bytearray(line)
    for _ in range(rng.choice((0, 1, 1, 2, 5))):
        at = rng.randrange(len(data)) if data else 0
        match rng.randrange(6):
            case 0:
                data[at : at + 1] = bytes([rng.randrange(256)])
            case 1:
                del data[at:]
            case 2:
                del data[at : at + rng.randrange(40)]
            case 3:
                data[at:at] = rng.choice(
                    [b"[", b"]", b"=", b", ", b"99999999999999999999", b"\xff", b"\0", b"-", b"\xd9\xa3"]
                )
            case 4:
                data[at:at] = line[rng.randrange(len(line)) :]
            case _:
                data[at : at + 4] = b"9999"
    return bytes(data)


def replayed_fuzz(count: int, seed: int, folder: Path) -> None:
    fuzzed(count, seed, folder)
    records, report = imported(folder)
    lines = report.lines
    assert lines.read == lines.used + sum(lines.left_out.values())
    assert sum(n for form, n in lines.left_out.items() if form != OTHER) > count // 100
    for stem, each in records.items():
        for record in each:
            KINDS[stem].decode(json.dumps(record).encode())


def test_damaged_logs_give_records_or_counts_and_never_fail(tmp_path: Path) -> None:
    replayed_fuzz(5_000, 22, tmp_path)


@pytest.mark.long
def test_many_damaged_logs_give_records_or_counts_and_never_fail(tmp_path: Path) -> None:
    for seed in range(10):
        replayed_fuzz(10_000, seed, tmp_path / str(seed))
