"""The rows that tables must hold, worked out from the bytes of the present files. No Spark, and no code of mqreplay."""

from __future__ import annotations

import datetime as dt
import gzip
import hashlib
import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

Place = tuple[str, str]  # a recording's name, and a path inside it
Files = Mapping[Place, bytes]
Row = dict[str, Any]  # column -> value, without columns that are null; instants are epoch ms

LINE_TABLES = {"pull_log": "silver.pull", "offset_commits": "silver.offset_commit", "heartbeats": "silver.heartbeat"}
FAMILIES = {"consumerOffset.json": "consumer_offset", "topics.json": "topics"}
TABLES = (
    *LINE_TABLES.values(),
    "silver.offset_change",
    "silver.snapshot",
    "silver.topic_config",
    "bronze.source_file",
    "bronze.quarantine",
)
UNQUOTED_KEY = re.compile(rb"([{,])(\d+):")


def expected_tables(files: Files) -> dict[str, list[Row]]:
    """The rows of TABLES, for these files and no others."""
    tables: dict[str, list[Row]] = {name: [] for name in TABLES}
    for kind in LINE_TABLES:
        _add_lines(tables, kind, {place: data for place, data in files.items() if kind_of(place[1]) == kind})
    sources = {path.split("/")[1] for _, path in files if path.startswith("snapshots/")}
    for source in sources:
        _Source(source).add(tables, {p: d for p, d in files.items() if p[1].startswith(f"snapshots/{source}/")})
    for place, data in files.items():
        if kind_of(place[1]) == "other":
            tables["bronze.source_file"].append(_ledger_row(place, data, "not_read"))
    return tables


def kind_of(path: str) -> str:
    """The kind that the ledger gives a file of this path."""
    parts = path.split("/")
    if parts[0] == "snapshots":
        return FAMILIES[parts[3].removesuffix(".bak")]
    stem = parts[0].split(".")[0]
    return stem if stem in LINE_TABLES else "other"


def sha256(data: bytes) -> str:
    """The digest of a file or a line, in hex."""
    return hashlib.sha256(data).hexdigest()


def _ledger_row(place: Place, data: bytes, status: str, rows_in: int = 0, out: int = 0, refused: int = 0) -> Row:
    return {
        "recording": place[0],
        "path": place[1],
        "kind": kind_of(place[1]),
        "sha256": sha256(data),
        "bytes": len(data),
        "status": status,
        "rows_in": rows_in,
        "rows_out": out,
        "rows_quarantined": refused,
        "rows_duplicate": rows_in - out - refused,
    }


def _quarantine_row(place: Place, data: bytes, content: bytes, line_number: int = 0, key: str = "") -> Row:
    return {
        "recording": place[0],
        "path": place[1],
        "kind": kind_of(place[1]),
        "source_digest": sha256(data)[:32],
        "line_number": line_number,
        "detail_key": key,
        "content": content,
    }


def _add_lines(tables: dict[str, list[Row]], kind: str, files: Files) -> None:
    by_bytes: dict[bytes, list[Place]] = defaultdict(list)
    for place, data in sorted(files.items()):
        by_bytes[data].append(place)
    owned: set[str] = set()
    for data in sorted(by_bytes, key=sha256):
        first, *others = by_bytes[data]
        good, bad = _read_lines(data)
        mine = {record_id: line for record_id, line in good.items() if record_id not in owned}
        owned.update(mine)
        digest = sha256(data)[:32]
        tables[LINE_TABLES[kind]] += [
            _columns(line) | {"record_id": record_id, "source_digest": digest} for record_id, line in mine.items()
        ]
        tables["bronze.quarantine"] += [_quarantine_row(first, data, line, number) for number, line in bad]
        lines = len(good) + len(bad)
        status = "refused" if bad and not good else "read"
        tables["bronze.source_file"].append(_ledger_row(first, data, status, lines, len(mine), len(bad)))
        tables["bronze.source_file"] += [_ledger_row(place, data, "duplicate") for place in others]


def _read_lines(data: bytes) -> tuple[dict[str, bytes], list[tuple[int, bytes]]]:
    """Whole lines by their record id, and the numbers of the others with their bytes."""
    text = gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data
    good: dict[str, bytes] = {}
    bad: list[tuple[int, bytes]] = []
    times: dict[bytes, int] = defaultdict(int)
    for number, line in enumerate(text.split(b"\n"), 1):
        if not line:
            continue
        try:
            json.loads(line)
        except ValueError:
            bad.append((number, line))
            continue
        times[line] += 1
        again = f"-{times[line]}" if times[line] > 1 else ""
        good[sha256(line)[:32] + again] = line
    return good, bad


def _columns(line: bytes) -> Row:
    row: Row = json.loads(line)
    header = row.pop("header", None)
    if header:
        row |= {"unregistered_consumer_group": header["consumerGroup"], "source": "heartbeat"}
    return row | {"day": day_of(row.get("request_ts", row.get("ts")))}


def day_of(ms: int) -> str:
    """The day of UTC of an instant."""
    return str(dt.datetime.fromtimestamp(ms / 1000, dt.UTC).date())


@dataclass
class _Source:
    """The snapshots of one broker, in time order: what is believed, and what changed."""

    name: str
    known: dict[str, dict[Any, Any]] = field(default_factory=dict)
    last_ts: dict[str, int] = field(default_factory=dict)
    orphans: set[str] = field(default_factory=set)

    def add(self, tables: dict[str, list[Row]], files: Files) -> None:
        """The same bytes in the same place of two recordings are one snapshot."""
        moments: dict[tuple[int, str], list[Place]] = defaultdict(list)
        seen: set[tuple[str, bytes]] = set()
        for place, data in sorted(files.items()):
            if (place[1], data) in seen:
                tables["bronze.source_file"].append(_ledger_row(place, data, "duplicate"))
                continue
            seen.add((place[1], data))
            moments[_instant(place), kind_of(place[1])].append(place)
        for _, places in sorted(moments.items()):
            whole = False
            for place in sorted(places, key=_is_bak):
                if whole and _is_bak(place):
                    tables["bronze.source_file"].append(_ledger_row(place, files[place], "superseded"))
                else:
                    whole = self._add_file(tables, place, files[place]) or whole

    def _add_file(self, tables: dict[str, list[Row]], place: Place, data: bytes) -> bool:
        """Whether the file is believed."""
        family = kind_of(place[1])
        try:
            entries, orphans, counter = READERS[family](data)
        except ValueError:
            tables["bronze.source_file"].append(_ledger_row(place, data, "refused", 1, 0, 1))
            tables["bronze.quarantine"].append(_quarantine_row(place, data, data[:4096]))
            return False
        known, before = self.known.get(family), self.last_ts.get(family)
        if _is_bak(place) and known is not None and (family == "topics" or not _is_ahead(entries, known)):
            tables["bronze.source_file"].append(_ledger_row(place, data, "superseded"))
            return False
        old = known or {}
        changed = [(key, old.get(key), value) for key, value in entries.items() if old.get(key) != value]
        changed += [(key, value, None) for key, value in old.items() if key not in entries]
        gone = sum(new is None for *_, new in changed)
        self.known[family], self.last_ts[family] = entries, _instant(place)
        new_orphans = set(orphans) - self.orphans
        self.orphans |= new_orphans
        broker_name, _, broker_id = self.name.rpartition("-")
        own = {"source_name": self.name, "broker_name": broker_name, "broker_id": int(broker_id)}
        own |= {"source_digest": sha256(data)[:32], "day": day_of(_instant(place))}
        for key, previous, new in changed:
            table, row = CHANGES[family](key, previous, new, before, _instant(place))
            tables[table].append(_without_nulls(own | row))
        count = len(entries) + len(orphans)
        row = {"ts": _instant(place), "file_name": place[1].rsplit("/", 1)[-1], "entries": count}
        row |= {"changed": len(changed), "data_version_counter": counter}
        tables["silver.snapshot"].append(_without_nulls(own | row))
        tables["bronze.quarantine"] += [_quarantine_row(place, data, k.encode(), key=k) for k in new_orphans]
        tables["bronze.source_file"].append(
            _ledger_row(place, data, "read", count + gone, len(changed), len(new_orphans))
        )
        return True


def _is_ahead(entries: Mapping[Any, int], known: Mapping[Any, int]) -> bool:
    return entries != known and all(entries.get(key, -1) >= offset for key, offset in known.items())


def _instant(place: Place) -> int:
    return int(place[1].split("/")[2])


def _is_bak(place: Place) -> bool:
    return place[1].endswith(".bak")


def _without_nulls(row: Row) -> Row:
    return {name: value for name, value in row.items() if value is not None}


Read = tuple[dict[Any, Any], list[str], int | None]


def _read_offsets(data: bytes) -> Read:
    table = json.loads(UNQUOTED_KEY.sub(rb'\1"\2":', data))["offsetTable"]
    named = {key: queues for key, queues in table.items() if "@" in key}
    entries = {
        (*key.split("@"), int(queue)): offset for key, queues in named.items() for queue, offset in queues.items()
    }
    return entries, sorted(table.keys() - named.keys()), None


def _read_topics(data: bytes) -> Read:
    read = json.loads(data)
    return read["topicConfigTable"], [], read["dataVersion"]["counter"]


READERS: dict[str, Callable[[bytes], Read]] = {"consumer_offset": _read_offsets, "topics": _read_topics}


def _offset_row(key: Any, previous: Any, new: Any, before: int | None, ts: int) -> tuple[str, Row]:
    topic, group, queue_id = key
    row = {"topic": topic, "consumer_group": group, "queue_id": queue_id}
    return "silver.offset_change", row | {
        "previous_offset": previous,
        "new_offset": new,
        "from_ts": before,
        "to_ts": ts,
    }


def _topic_row(key: str, previous: Any, new: Any, before: int | None, ts: int) -> tuple[str, Row]:
    change = "removed" if new is None else "first" if previous is None else "changed"
    row: Row = {"topic": key, "change": change, "ts": ts}
    if new is not None:
        row |= {"read_queue_nums": new["readQueueNums"], "write_queue_nums": new["writeQueueNums"]}
        row |= {"perm": new["perm"], "topic_sys_flag": 0, "order": False, "topic_filter_type": "SINGLE_TAG"}
    return "silver.topic_config", row


CHANGES = {"consumer_offset": _offset_row, "topics": _topic_row}


def differences(found: Iterable[Row], expected: Iterable[Row]) -> list[str]:
    """The rows that only one side has, as text; the same row twice is not the same as once."""
    left = [str(sorted(row.items())) for row in expected]
    extra = []
    for row in (str(sorted(row.items())) for row in found):
        if row in left:
            left.remove(row)
        else:
            extra.append(f"too much: {row}")
    return extra + [f"missing:  {row}" for row in left]
