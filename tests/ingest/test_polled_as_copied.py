"""Polled offsets move the tables as copies of consumerOffset.json do: drawn tables, real nights, files in any order."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.polled_recordings import (
    NAME,
    START,
    change,
    copied,
    everything,
    members,
    moves,
    polled,
    read,
    snapshots,
    whole,
)
from mqreplay.decode.consumer_offset import decode_consumer_offset
from mqreplay.ingest.diffs import Source
from mqreplay.ingest.entries import Moves, SnapshotFile
from mqreplay.ingest.polled import read_source
from mqreplay.recorder.record_files import offset_line
from mqreplay.words.errors import DecodeError
from tests_shared import SAMPLE

S = 1_000


queues = st.dictionaries(st.sampled_from("0123"), st.integers(0, 3), max_size=4)
tables = st.dictionaries(st.sampled_from(["T@g", "U@g", "%RETRY%g@g", "a@b@c"]), queues, max_size=4)


@given(st.lists(st.tuples(tables, st.booleans()), min_size=1, max_size=8))
def test_polled_tables_move_as_copies_of_them_do(tmp_path_factory: pytest.TempPathFactory, states: list) -> None:
    """The same moves, snapshots and refused keys as of a consumerOffset.json at each moment."""
    folder = tmp_path_factory.mktemp("r")
    lines, copies, before = [], [], None
    for at, (given_table, is_whole) in enumerate(states):
        table = {key: offsets for key, offsets in given_table.items() if offsets}
        ts = START + at * S
        if before is None or is_whole:
            lines.append(whole(ts, table))
        else:
            changed = {k: {q: o for q, o in qs.items() if before.get(k, {}).get(q) != o} for k, qs in table.items()}
            gone = {k: [int(q) for q in qs if q not in table.get(k, {})] for k, qs in before.items()}
            lines.append(change(ts, {k: v for k, v in changed.items() if v}, {k: v for k, v in gone.items() if v}))
        before = table
        path = folder / "snapshots" / "b-0" / str(ts) / "consumerOffset.json"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps({"offsetTable": table}))
        copies.append(SnapshotFile(str(path), str(path), "consumer_offset", path.name, ts))
    path = folder / "snapshots" / "b-0" / str(START) / NAME
    path.write_bytes(members(lines))
    assert told(copies) == told([SnapshotFile(str(path), str(path), "consumer_offset", NAME, START)])


def told(listed: list[SnapshotFile]) -> tuple[list, list, list]:
    source = Source("b-0", "b", 0, None)
    rows = list(read_source(source, listed))
    found = []
    for move in rows:
        if isinstance(move, Moves) and len(move):
            none = [False] * len(move)
            came, gone = (none if given is None else given.tolist() for given in (move.came, move.gone))
            keys = [source.keys.keys[number] for number in move.entry]
            pairs = zip(keys, move.previous.tolist(), move.new.tolist(), came, gone, strict=True)
            found += sorted((move.ts, move.from_ts, key, *values) for key, *values in pairs)
    others = [row for row in rows if not isinstance(row, Moves)]
    snapshot = [(row["ts"], row["entries"], row["changed"]) for row in others if row["out"] == "snapshot"]
    return found, snapshot, sorted(str(row["detail_key"]) for row in others if row["out"] == "quarantine")


@pytest.mark.parametrize("name", ["bulk-5.3.3", "orders-4.9.7"])
def test_a_real_night_gives_the_same_offsets_polled_as_copied(tmp_path: Path, name: str) -> None:
    """The whole copies of consumerOffset.json of a real cluster, as the recorder would have written them."""
    for source in sorted((SAMPLE / name / "snapshots").iterdir()):
        before, first, lines = None, None, []
        for path in sorted(source.glob("*/consumerOffset.json"), key=lambda path: int(path.parent.name)):
            with suppress(DecodeError):
                table = table_of(path.read_bytes())
                ts = int(path.parent.name)
                line = {"ts": ts} | offset_line(before, table)
                before, first = table, first or ts
                lines.append(json.dumps(line).encode())
                copy = tmp_path / "copied" / path.relative_to(SAMPLE / name)
                copy.parent.mkdir(parents=True)
                copy.write_bytes(path.read_bytes())
        if first is not None:
            polled(tmp_path / "polled", lines, first, source.name)
    read(tmp_path / "c", tmp_path / "copied")
    read(tmp_path / "p", tmp_path / "polled")
    assert moves(tmp_path / "p") == moves(tmp_path / "c") != []
    assert snapshots(tmp_path / "p") == snapshots(tmp_path / "c")


def table_of(data: bytes) -> dict[str, dict[int, int]]:
    got = decode_consumer_offset(data)
    table: dict[str, dict[int, int]] = {}
    for key, queue_id, offset in zip(got.key, got.queue_id, got.offset, strict=True):
        table.setdefault(key, {})[queue_id] = offset
    return table


grid = st.integers(-9, 60).map(lambda number: START + 20 * S * number)


@settings(max_examples=settings.default.max_examples // 6)  # each is three runs
@given(
    hours=st.dictionaries(grid, st.lists(st.integers(1, 9), min_size=1, max_size=6), min_size=1, max_size=3),
    copies=st.lists(grid, max_size=5, unique=True),
    data=st.data(),
)
@pytest.mark.long
def test_in_whatever_order_files_come_the_tables_are_those_of_one_run(
    tmp_path_factory: pytest.TempPathFactory, hours: dict[int, list[int]], copies: list[int], data: st.DataObject
) -> None:
    root = tmp_path_factory.mktemp("order")
    (root / "r").mkdir()
    copied(root / "r", START - 1_000 * S, {"T@g": {"0": 1}})
    for ts in copies:
        copied(root / "r", ts, {"T@g": {"0": (ts - START) // S}})
    listed = {path: path.read_bytes() for path in (root / "r").rglob("consumerOffset.json")}
    for first, steps in hours.items():
        ts, lines = first, [whole(first, {"T@g": {"0": first % 1_000, "1": 5}})]
        for step in steps:
            ts += 20 * S * step
            lines.append(change(ts, {"T@g": {"0": (ts - START) // S % 777}}))
        path = polled(root / "r", lines, first)
        listed[path] = path.read_bytes()
    every = sorted(listed)[1:]
    for _ in range(2):
        for path in every:
            state = data.draw(st.sampled_from(["whole", "gone", "begun"]))
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(listed[path])
            if state == "gone":
                path.unlink()
            elif state == "begun" and path.name == NAME:
                path.write_bytes(b"\x1f\x8b".join(listed[path].split(b"\x1f\x8b")[:2]))
        read(root / "w", root / "r")
    for path in every:
        path.write_bytes(listed[path])
    read(root / "w", root / "r")
    read(root / "once", root / "r")
    assert everything(root / "w") == everything(root / "once")
