"""Tiny recordings that change as a person or a recorder changes them. Every operation is noted in words."""

from __future__ import annotations

import gzip
import json
import shutil
from dataclasses import dataclass, field
from pathlib import Path

from reliability.plain_model import Files, Place, kind_of

MINUTE, DAY = 60_000, 86_400_000
MIDNIGHT = 1_795_305_600_000  # epoch ms, 2026-11-22 UTC; lines and snapshots lie on both sides of it
BROKERS = ("broker-a-0", "broker-b-0")
KINDS = ("pull_log", "offset_commits", "heartbeats")
LINES = 10  # different lines of each kind
STATES = 7  # different contents of a consumerOffset.json
MOMENTS = 8
BROKEN = b'{"request_ts":17953'  # what a recorder leaves that dies within a line


def line(kind: str, number: int) -> bytes:
    """The line of this kind and number; lines of the same number speak of the same minute."""
    ms, broker_name = MIDNIGHT + (number - LINES // 2) * 10 * MINUTE, BROKERS[number % 2][:-2]
    queue = {"client_id": f"c{number % 3}", "consumer_group": "g", "topic": "T", "queue_id": number % 2}
    queue["broker_name"] = broker_name
    told = {
        "pull_log": {"request_ts": ms, "response_ts": ms + 20, **queue, "broker_id": 0, "queue_offset": number},
        "offset_commits": {"ts": ms, "kind": "UPDATE", **queue, "commit_offset": number},
        "heartbeats": {"ts": ms, "kind": "UNREGISTER_CLIENT", "client_id": f"c{number}", "broker_name": broker_name}
        | {"header": {"consumerGroup": "g"}},
    }
    return json.dumps(told[kind], separators=(",", ":")).encode()


def lines(kind: str, numbers: list[int], *, broken: bool = False, zipped: bool = False) -> bytes:
    """A file of these lines, as a recorder writes it."""
    data = b"".join(line(kind, number) + b"\n" for number in numbers) + (BROKEN + b"\n" if broken else b"")
    return gzip.compress(data, 1, mtime=0) if zipped else data


def offsets(state: int) -> bytes:
    """A consumerOffset.json as a broker writes it: offsets rise, fall and vanish, and one key names no group."""
    table = {"T@g": {0: 100 + 7 * state, 1: 50 - (state == 3)}, "U@g": {0: 5}} | ({"V@g": {0: 1}} if state % 2 else {})
    if state == 4:
        del table["U@g"]
    if state >= 5:
        table["orphan"] = {0: 1}
    return _as_broker(table)


def _as_broker(table: dict[str, dict[int, int]]) -> bytes:
    keys = (f'"{key}":{{{",".join(f"{q}:{o}" for q, o in queues.items())}}}' for key, queues in table.items())
    return ('{"offsetTable":{' + ",".join(keys) + "}}").encode()


def topics(state: int) -> bytes:
    """A topics.json."""
    table = {name: _topic(name, 4 + state) for name in (("T", "U") if state % 3 else ("T",))}
    return json.dumps({"dataVersion": {"counter": state}, "topicConfigTable": table}).encode()


def _topic(name: str, queues: int) -> dict[str, object]:
    return {"topicName": name, "readQueueNums": queues, "writeQueueNums": 4, "perm": 6}


def torn(data: bytes, percent: int) -> bytes:
    """The file cut short: as much of it as a writer had written."""
    return data[: len(data) * percent // 100]


def snapshot_path(broker: str, moment: int, recording: int, file_name: str) -> str:
    """No two recordings copy a broker's file in the same millisecond. The second one is of the day before."""
    ms = MIDNIGHT + (moment - MOMENTS // 2) * 20 * MINUTE + recording * 1000 - (DAY if recording == 1 else 0)
    return f"snapshots/{broker}/{ms}/{file_name}"


@dataclass
class Recordings:
    """Folders under one parent, their files as bytes, what each path held before, and a log of all operations."""

    parent: Path
    names: list[str] = field(default_factory=list)
    files: dict[Place, bytes] = field(default_factory=dict)
    earlier: dict[Place, list[bytes]] = field(default_factory=dict)
    changed: set[str] = field(default_factory=set)  # recordings that no run was given since they changed
    given: set[str] = field(default_factory=set)  # recordings that a run was given
    log: list[str] = field(default_factory=list)

    def add(self) -> str:
        """Make a folder with one file in it."""
        name = f"night-{len(self.names)}"
        self.names.append(name)
        self.log.append(f"make recording {name}")
        self.put((name, "notes.txt"), name.encode(), "a file of no known kind")
        return name

    def put(self, place: Place, data: bytes, what: str) -> None:
        """Write a file, or another content in its place."""
        if self.files.get(place) == data:
            return
        path = self.parent.joinpath(*place)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        self.log.append(f"{'change' if place in self.files else 'write'} {'/'.join(place)}: {what}")
        if place in self.files:
            self.earlier.setdefault(place, []).append(self.files[place])
        self.files[place] = data
        self.changed.add(place[0])

    def remove(self, place: Place) -> None:
        """Delete a file."""
        self.parent.joinpath(*place).unlink()
        self.earlier.setdefault(place, []).append(self.files.pop(place))
        self.changed.add(place[0])
        self.log.append(f"delete {'/'.join(place)}")

    def rename(self, place: Place, path: str) -> None:
        """Give a file another name in the same recording."""
        to = place[0], path
        self.parent.joinpath(*place).rename(self.parent.joinpath(*to))
        self.files[to] = self.files.pop(place)
        self.changed.add(place[0])
        self.log.append(f"rename {'/'.join(place)} to {path}")

    def move(self, name: str) -> None:
        """Give a whole recording another folder."""
        to = f"{name.split('.')[0]}.{len(self.log)}"
        shutil.move(self.parent / name, self.parent / to)
        self.names[self.names.index(name)] = to
        self.files = {(to if r == name else r, path): data for (r, path), data in self.files.items()}
        self.earlier = {(to if r == name else r, path): data for (r, path), data in self.earlier.items()}
        for names in (self.changed, self.given):
            if name in names:
                names.remove(name)
                names.add(to)
        self.changed.add(to)
        self.log.append(f"move recording {name} to {to}")

    def ran(self, names: list[str]) -> None:
        """Note that a run was given these recordings."""
        self.given.update(names)
        self.changed.difference_update(names)

    def known_files(self) -> Files:
        """The files of every recording that a run was given."""
        return {place: data for place, data in self.files.items() if place[0] in self.given}

    def line_files(self) -> list[Place]:
        """The JSONL files, in order."""
        return sorted(place for place in self.files if kind_of(place[1]) in KINDS)

    def snapshots(self) -> list[Place]:
        """The snapshot files, in order."""
        return sorted(place for place in self.files if place[1].startswith("snapshots/"))

    def elsewhere(self, place: Place) -> bool:
        """Whether another recording has a file of the same path."""
        return any(path == place[1] and name != place[0] for name, path in self.files)
