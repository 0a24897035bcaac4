"""Recordings derived from a recording: a part of it, in another order, or with a wrong clock.

    python tests/night/cut.py data/sample/orders-4.9.7 /tmp/small --group stuck-group --since 30 --until 200

Lines stay as they were recorded, byte by byte, but where a change of them is asked for; the source is only read.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import re
import shutil
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path
from typing import Any

Change = Callable[[dict[str, Any]], bool]
ENTRY = re.compile(rb'"([^"@]+)@([^"]+)":\{[^}]*\},?')
INSTANTS = ("ts", "request_ts", "response_ts")


def cut(
    source: Path,
    to: Path,
    groups: Collection[str] | None = None,
    from_ms: int | None = None,
    to_ms: int | None = None,
    *,
    every: int = 1,
    kinds: Collection[str] | None = None,
    change: Change | None = None,
    shuffled: bool = False,
) -> Path:
    """Writes a part of a recording to the folder ``to``, which must not be there yet, and gives it back.

    Kept are these consumer groups, epoch milliseconds, every n-th snapshot, and of the JSONL files these kinds (by
    their name; brokers.json only with all of them). None keeps all. ``change`` is called with each line.
    """
    to.mkdir(parents=True)
    for path in jsonl_files(source):
        stem = path.name.split(".")[0]
        if kinds is None or stem in kinds:
            kept = _changed(_kept(_lines(path), groups, from_ms, to_ms), change)
            for name, written in _reordered(list(kept), stem).items() if shuffled else [(stem, kept)]:
                _write(to / f"{name}.jsonl.gz", written)
    if kinds is None and (source / "brokers.json").exists():
        shutil.copy(source / "brokers.json", to)
    _cut_snapshots(source, to, groups, (from_ms, to_ms), every)
    return to


def shifted(client_id: str, by_ms: int) -> Change:
    """A change: the clock of a client was so far ahead, in all that it told."""

    def change(told: dict[str, Any]) -> bool:
        if told.get("client_id") != client_id:
            return False
        for name in INSTANTS:
            if told.get(name):
                told[name] += by_ms
        for queue in told.get("queues") or []:
            if queue.get("last_pull_ts"):
                queue["last_pull_ts"] += by_ms
        return True

    return change


def first_instant(folder: Path) -> int:
    """Epoch milliseconds of the recording's first snapshot."""
    return min(int(path.name) for path in (folder / "snapshots").glob("*/*") if path.is_dir())


def jsonl_files(folder: Path) -> list[Path]:
    """The recording's files of lines, gzipped or not."""
    return sorted(path for path in folder.iterdir() if path.name.endswith((".jsonl", ".jsonl.gz")))


def _lines(path: Path) -> Iterator[bytes]:
    data = path.read_bytes()
    text = gzip.decompress(data) if path.name.endswith(".gz") else data
    return (line for line in text.split(b"\n") if line)


def _write(path: Path, lines: Iterable[bytes]) -> None:
    data = b"".join(line + b"\n" for line in lines)
    if data:
        path.write_bytes(gzip.compress(data, 1, mtime=0))


def _reordered(lines: list[bytes], stem: str) -> dict[str, list[bytes]]:
    """The lines in no order, a quarter of them twice, in two files: the second says again a part of the first."""
    chance = random.Random(stem)
    lines = lines + chance.sample(lines, len(lines) // 4)
    chance.shuffle(lines)
    half = len(lines) // 2
    return {f"{stem}.0001": lines[:half], f"{stem}.0002": lines[half:] + lines[: half // 10]}


def _changed(lines: Iterable[bytes], change: Change | None) -> Iterator[bytes]:
    for line in lines:
        told = json.loads(line) if change else {}
        yield json.dumps(told, separators=(",", ":")).encode() if change and change(told) else line


def _kept(
    lines: Iterable[bytes], groups: Collection[str] | None, from_ms: int | None, to_ms: int | None
) -> Iterator[bytes]:
    for line in lines:
        told = json.loads(line)
        if _within(told.get("request_ts", told.get("ts")), from_ms, to_ms):
            about = _groups(told)
            if groups is None or not about or not about.isdisjoint(groups):
                yield line


def _within(ts: int, from_ms: int | None, to_ms: int | None) -> bool:
    return (from_ms is None or ts >= from_ms) and (to_ms is None or ts <= to_ms)


def _groups(told: dict[str, Any]) -> set[str]:
    """The consumer groups that a line is about; none for what is about a broker or a topic."""
    parts = [told.get(name) for name in ("header", "ext", "body")]
    header, ext, body = (part if isinstance(part, dict) else {} for part in parts)
    named = [told.get("consumer_group"), header.get("consumerGroup"), ext.get("consumerGroup"), ext.get("group")]
    named += [data["groupName"] for data in body.get("consumerDataSet") or []]
    named += re.findall(r'"consumerGroup":"([^"]+)"', told.get("request") or "")
    return {name for name in named if name}


def _cut_snapshots(
    source: Path, to: Path, groups: Collection[str] | None, bounds: tuple[int | None, int | None], every: int
) -> None:
    seen: dict[tuple[str, str], int] = {}
    for path in sorted((source / "snapshots").glob("*/*/*")):
        origin, moment = path.parts[-3:-1]
        if not _within(int(moment), *bounds):
            continue
        seen[origin, path.name] = number = seen.get((origin, path.name), -1) + 1
        if number % every == 0:
            target = to / "snapshots" / origin / moment / path.name
            target.parent.mkdir(parents=True, exist_ok=True)
            offsets = path.name.startswith("consumerOffset")
            target.write_bytes(_of_groups(path.read_bytes(), groups) if offsets else path.read_bytes())


def _of_groups(data: bytes, groups: Collection[str] | None) -> bytes:
    """A consumerOffset.json without the entries of other groups."""
    if groups is None:
        return data
    wanted = {group.encode() for group in groups}
    left = ENTRY.sub(lambda entry: entry[0] if entry[2] in wanted else b"", data)
    return re.sub(rb",(\s*\})", rb"\1", left)


def main(words: list[str] | None = None) -> None:
    """Cuts a recording as the command line says."""
    read = argparse.ArgumentParser(description="Cuts a recording to some groups, kinds and seconds.")
    read.add_argument("source", type=Path)
    read.add_argument("to", type=Path)
    read.add_argument("--group", action="append", metavar="NAME")
    read.add_argument("--kind", action="append", metavar="NAME")
    read.add_argument("--since", type=float, metavar="SECONDS")
    read.add_argument("--until", type=float, metavar="SECONDS")
    read.add_argument("--every", type=int, default=1, metavar="N", help="every n-th snapshot")
    given = read.parse_args(words)
    began = first_instant(given.source)
    since, until = (None if s is None else began + int(s * 1000) for s in (given.since, given.until))
    cut(given.source, given.to, given.group, since, until, every=given.every, kinds=given.kind)


if __name__ == "__main__":
    main()
