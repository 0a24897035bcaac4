"""A small recorded night without Spark: its files decoded by mqreplay's decoders, as the events of queues.

This is what queue_events.py makes of the silver tables, from files: lines that stand in two files count once,
as ingest has it (test_any_order.py holds that against the tables).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa

from mqreplay.decode.kinds import KINDS
from mqreplay.evidence.offsets.queue_events import CHANGE_ROW, COMMIT_ROW, PULL_ROW, STATS_ROW, QueueEvents
from mqreplay.ingest.diffs import Source
from mqreplay.ingest.entries import Moves, SnapshotFile
from mqreplay.ingest.lines import LineReader
from mqreplay.ingest.repeats import Repeats
from queue_recordings import EVENTS

Row = dict[str, Any]
TOLD_OF_QUEUES = ("pull_log", "offset_commits", "topic_stats")


def decoded(paths: Iterable[Path], kind: str) -> list[Row]:
    """The records of some files of one kind: each line once, however many files it is in."""
    records: dict[str, Row] = {}
    for path in paths:
        reader, repeats = LineReader(str(path), KINDS[kind].decode), Repeats()
        rows = [(record_id, row) for _, record_id, row in reader]
        records.update(zip(repeats.named([record_id for record_id, _ in rows]), (row for _, row in rows), strict=True))
        assert not reader.refused, (path, reader.refused)
    return list(records.values())


def changes(folder: Path) -> list[Row]:
    """The offsets that changed from snapshot to snapshot of each broker in a recording."""
    rows: list[Row] = []
    for place in sorted(path for path in (folder / "snapshots").iterdir() if path.is_dir()):
        files = [
            SnapshotFile(str(path), str(path), "consumer_offset", path.name, int(path.parent.name))
            for path in place.glob("*/consumerOffset.json*")
        ]
        broker_name, _, broker_id = place.name.rpartition("-")
        source = Source(place.name, broker_name, int(broker_id), None)
        for item in source.read_all(files):
            if isinstance(item, Moves):
                rows += _moved(source, item)
    return rows


def _moved(source: Source, moves: Moves) -> Iterator[Row]:
    for at in range(len(moves)):
        topic, group, _, queue_id = source.keys.keys[moves.entry[at]]
        yield {
            "broker_name": source.broker_name,
            "broker_id": source.broker_id,
            "topic": topic,
            "consumer_group": group,
            "queue_id": queue_id,
            "at": moves.ts,
            "also_at": moves.from_ts,
            "committed": None if moves.gone is not None and moves.gone[at] else int(moves.new[at]),
            "previous_offset": None if moves.came is not None and moves.came[at] else int(moves.previous[at]),
        }


def queue_events(lines: Mapping[str, list[Row]], changed: list[Row]) -> QueueEvents:
    """The events of these records; instants of records are epoch ms."""
    sent = [row for row in lines["offset_commits"] if row["kind"] == "UPDATE" and row["commit_offset"] is not None]
    known = {row["consumer_group"] for row in sent if row["error"] is None}
    events = chain(
        (_change(row, known) for row in changed),
        (row | {"what": COMMIT_ROW, "at": row["ts"], "committed": row["commit_offset"], "counts": row["error"] is None}
         for row in sent),
        map(_pull, lines["pull_log"]),
        chain.from_iterable(map(_stats, lines["topic_stats"])),
    )  # fmt: skip
    return QueueEvents(_table(events))


def _change(row: Row, known: set[str]) -> Row:
    stands_in = row["broker_id"] == 0 and row["committed"] is not None and row["consumer_group"] not in known
    return row | {"what": CHANGE_ROW, "counts": stands_in}


def _pull(row: Row) -> Row:
    answered = row["next_begin_offset"] if row["response_code"] is not None else None
    told = {"at": row["request_ts"], "also_at": row["response_ts"], "next_begin_offset": answered}
    return (
        row | told | {"what": PULL_ROW, "committed": row["commit_offset"] if (row["commit_offset"] or 0) > 0 else None}
    )


def _stats(row: Row) -> Iterator[Row]:
    if row["broker_id"] == 0:
        for topic, broker_name, queue_id, low, high, _ in row["offsets"] or []:
            ends = {"min_offset": low, "max_offset": high, "broker_id": 0, "at": row["ts"], "what": STATS_ROW}
            yield {"broker_name": broker_name, "topic": topic, "queue_id": queue_id} | ends


def _table(rows: Iterable[Row]) -> pa.Table:
    columns: dict[str, list[Any]] = {name: [] for name in EVENTS.names}
    for row in rows:
        for name, column in columns.items():
            value = row.get(name)
            column.append(value * 1000 if name in ("at", "also_at") and value is not None else value)
    return pa.table([pa.array(columns[f.name], f.type) for f in EVENTS], schema=EVENTS)
