"""The state of a sample at an instant, read from its files with the standard library alone, without mqreplay."""

from __future__ import annotations

import gzip
import json
import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

SILENT_MS = 90_000  # conf/local.toml
LATE_MS = 5_000  # what follows an UNREGISTER_CLIENT within this time belongs to it
Queue = tuple[str, str, str, int]  # consumer group, topic, broker, queue id
Member = tuple[str, str]
_NUMBER = re.compile(r"([{,])\s*(\d+)\s*:")


class PlainReading:
    """The files of a recording; instants are epoch ms."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def lines(self, name: str) -> Iterator[dict[str, Any]]:
        """Yield the objects of a JSONL file; none if the sample lacks it."""
        path = self.folder / f"{name}.jsonl.gz"
        if path.exists():
            with gzip.open(path, "rt", encoding="utf-8") as lines:
                for line in lines:
                    yield json.loads(line)

    @cached_property
    def sessions(self) -> dict[Member, list[tuple[int, int]]]:
        """From when to when each client was a member of a group."""
        acts: dict[Member, list[tuple[int, bool]]] = defaultdict(list)
        for line in self.lines("heartbeats"):
            if line["kind"] == "UNREGISTER_CLIENT" and line["header"].get("consumerGroup"):
                acts[line["header"]["consumerGroup"], line["client_id"]].append((line["ts"], True))
            for group in (line.get("body") or {}).get("consumerDataSet", ()):
                acts[group["groupName"], line["client_id"]].append((line["ts"], False))
        seconds = (("rebalance_log", "ts"), ("offset_commits", "ts"), ("pull_log", "request_ts"))
        for name, ts in seconds:
            for line in self.lines(name):
                acts[line["consumer_group"], line["client_id"]].append((line[ts] // 1000 * 1000, False))
        for line in self.lines("assignments"):
            if line["queues"]:
                acts[line["consumer_group"], line["client_id"]].append((line["ts"] // 1000 * 1000, False))
        return {member: _sessions(sorted(of)) for member, of in acts.items()}

    @cached_property
    def broadcasting(self) -> set[str]:
        """The groups whose members do not share queues, by what their clients state."""
        beats = (line.get("body") or {} for line in self.lines("heartbeats"))
        groups = (group for beat in beats for group in beat.get("consumerDataSet", ()))
        return {group["groupName"] for group in groups if group["messageModel"] == "BROADCASTING"}

    def members(self, at: int) -> set[Member]:
        """Return the members at an instant."""
        return {member for member, spans in self.sessions.items() if any(a <= at <= b for a, b in spans)}

    @cached_property
    def views(self) -> dict[Member, list[tuple[int, list[tuple[str, str, int]]]]]:
        """The queues that each client reported, at each time."""
        found: dict[Member, list[tuple[int, int, list[tuple[str, str, int]]]]] = defaultdict(list)
        for line in self.lines("assignments"):
            held = [(q["topic"], q["broker_name"], q["queue_id"]) for q in line["queues"] if not q["dropped"]]
            found[line["consumer_group"], line["client_id"]].append((line["ts"], len(held), held))
        return {member: [(ts, held) for ts, _, held in sorted(of)] for member, of in found.items()}

    def owners(self, at: int) -> dict[Queue, set[str]]:
        """Return who held each queue: by a client's last report within its session."""
        owners: dict[Queue, set[str]] = defaultdict(set)
        for (group, client), views in self.views.items():
            last = bisect_right([ts for ts, _ in views], at) - 1
            if last < 0 or group in self.broadcasting:
                continue
            ts, held = views[last]
            # Most signs of life are known to the second.
            if any(a <= ts + 1000 and ts <= b and at < b for a, b in self.sessions[group, client]):
                for topic, broker, queue_id in held:
                    owners[group, topic, broker, queue_id].add(client)
        return owners

    @cached_property
    def offsets(self) -> dict[Queue, list[tuple[int, str, int | None]]]:
        """What set the offset of each group and queue in its master: instant, "copy", "commit" or "pull", offset."""
        found: dict[Queue, list[tuple[int, str, int | None]]] = defaultdict(list)
        for line in self.lines("offset_commits"):
            if line["kind"] == "UPDATE" and line["broker_id"] == 0 and not line["response_code"] and not line["error"]:
                found[_queue(line)].append((line["ts"], "commit", line["commit_offset"]))
        for line in self.lines("pull_log"):
            if line["sys_flag"] & 1 and line["commit_offset"] > 0 and line["broker_id"] == 0:
                found[_queue(line)].append((line["request_ts"], "pull", line["commit_offset"]))
        for folder in (self.folder / "snapshots").glob("*-0"):
            broker = folder.name.removesuffix("-0")
            before: dict[Queue, int] = {}
            for copy in sorted(folder.glob("*/consumerOffset.json"), key=lambda path: int(path.parent.name)):
                table = _offset_table(copy, broker)
                for queue in table.keys() | before.keys():
                    if table.get(queue) != before.get(queue):
                        found[queue].append((int(copy.parent.name), "copy", table.get(queue)))
                before = table
        return {queue: sorted(of, key=lambda each: (each[0], each[1], each[2] or -1)) for queue, of in found.items()}

    def committed(self, at: int) -> dict[Queue, int | None]:
        """Return the offset of each group and queue in its master."""
        found = {}
        for queue, of in self.offsets.items():
            last = bisect_right([ts for ts, _, _ in of], at) - 1
            if last >= 0:
                found[queue] = of[last][2]
        return found


def _queue(line: dict[str, Any]) -> Queue:
    return line["consumer_group"], line["topic"], line["broker_name"], line["queue_id"]


def _sessions(acts: list[tuple[int, bool]]) -> list[tuple[int, int]]:
    """Return from when to when a client was a member, by its acts in order; True: it unregistered."""
    spans: list[list[int]] = []
    left: int | None = None  # the last UNREGISTER_CLIENT of the session
    last = 0
    for ts, gone in acts:
        back = left is not None and not gone and ts - left > LATE_MS
        if not spans or ts - last > SILENT_MS or back:
            spans.append([ts, ts])
            left = None
        if gone:
            left = max(ts, left or 0)
        spans[-1][1] = ts if left is None else left
        last = ts
    return [(a, b) for a, b in spans]


def _offset_table(path: Path, broker: str) -> dict[Queue, int]:
    table = json.loads(_NUMBER.sub(r'\1"\2":', path.read_text(encoding="utf-8")))
    found = {}
    for key, offsets in table.get("offsetTable", {}).items():
        topic, _, group = key.partition("@")
        for queue_id, offset in offsets.items():
            found[group, topic, broker, int(queue_id)] = offset
    return found
