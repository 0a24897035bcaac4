"""The lines of a recording told otherwise: in another order, doubled, split, or by a client whose clock is off."""

from __future__ import annotations

import gzip
import json
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from night.cut import INSTANTS
from reliability.queue_evidence import Row, decoded

Clock = Callable[[int], int]  # by how many ms a clock is off at an instant
Lines = dict[str, list[bytes]]  # by kind


def lines_of(path: Path) -> list[bytes]:
    data = path.read_bytes()
    text = gzip.decompress(data) if path.suffix == ".gz" else data
    return [line for line in text.split(b"\n") if line]


def read(lines: Lines, folder: Path, chance: random.Random | None = None) -> dict[str, list[Row]]:
    """Decode the lines as they lie in files: one a kind, or in an order, number and form that chance chooses."""
    rows = {}
    for kind, of_kind in lines.items():
        paths = []
        for number, part in enumerate(parts(of_kind, chance) if chance else [of_kind]):
            zipped = chance is not None and chance.random() < 0.5
            paths.append(folder / f"{kind}.{number:04}.jsonl{'.gz' if zipped else ''}")
            text = b"".join(line + b"\n" for line in part)
            paths[-1].write_bytes(gzip.compress(text, 1, mtime=0) if zipped else text)
        rows[kind] = decoded(paths, kind)
        for path in paths:
            path.unlink()
    return rows


def parts(lines: list[bytes], chance: random.Random) -> list[list[bytes]]:
    """The lines in some order, split anywhere, and some of them again in another file."""
    lines = list(lines)
    if chance.random() < 0.7:
        chance.shuffle(lines)
    ends = sorted(chance.choices(range(len(lines) + 1), k=chance.randrange(4)))
    found = [lines[a:b] for a, b in zip([0, *ends], [*ends, len(lines)], strict=True)]
    # No line twice in one file: in a file of its own, and none that the recording itself has twice.
    once = [line for line, count in Counter(lines).items() if count == 1]
    found.append(chance.sample(once, len(once) // chance.choice([2, 5, 20])))
    chance.shuffle(found)
    return found


def told_by(lines: Lines, client: str, clock: Clock) -> Lines:
    """The lines as a client tells them whose clock is off."""
    return {kind: [_told(line, client, clock) for line in of_kind] for kind, of_kind in lines.items()}


def _told(line: bytes, client: str, clock: Clock) -> bytes:
    if client.encode() not in line:
        return line
    told = json.loads(line)
    return json.dumps(told, separators=(",", ":")).encode() if changed_by(client, clock)(told) else line


def changed_by(client: str, clock: Clock) -> Callable[[Row], bool]:
    """As night/cut.py takes a change: every instant that the client tells."""

    def change(told: Row) -> bool:
        if told.get("client_id") != client:
            return False
        for name in INSTANTS:
            if told.get(name):
                told[name] += clock(told[name])
        for queue in told.get("queues") or []:
            if queue.get("last_pull_ts"):
                queue["last_pull_ts"] += clock(queue["last_pull_ts"])
        return True

    return change
