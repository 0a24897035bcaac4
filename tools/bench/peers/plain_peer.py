"""The night in plain Python: one process, the standard library and RocketMQ's rules of mqreplay.core, a row at a time.

No table is written, for no standard library writes Delta: rows are counted, and what was found is held against the
known answers. What is not in it: the smaller tables, and breaks other than rewinds and what vanished.
"""

from __future__ import annotations

import bisect
import gzip
import json
from collections.abc import Iterator
from pathlib import Path

from .recording import Source, lines_of, sources
from .routes import SLACK_MS, Addrs, judge, route_of
from .stages import Stages

UNSEEN = -1  # an answer that came, or may have come, unseen
Change = tuple[str, str, int, int | None, int | None, int]  # topic, group, queue, offset before and after, when


def changes_of(source: Source) -> Iterator[Change]:
    """The offsets of a broker that differ from the copy before; only lines that differ are taken apart."""
    data, lines = b"", dict[bytes, bytes]()
    for ts, path in zip(source.moments, source.paths, strict=True):
        now = Path(path).read_bytes()
        if now == data:
            continue
        data = now
        taken = dict(line.split(b'":{', 1) for line in now.split(b"\n") if b'":{' in line and b"@" in line)
        for key, text in taken.items():
            if lines.get(key) != text:
                yield from _moved(key, lines.get(key, b""), text, ts)
        for key in lines.keys() - taken.keys():
            yield from _moved(key, lines[key], b"", ts)
        lines = taken


def _moved(key: bytes, before: bytes, after: bytes, ts: int) -> Iterator[Change]:
    topic, _, group = key[3:].decode().partition("@")
    old, new = _offsets(before), _offsets(after)
    for queue in old.keys() | new.keys():
        if old.get(queue) != new.get(queue):
            yield topic, group, queue, old.get(queue), new.get(queue), ts


def _offsets(text: bytes) -> dict[int, int]:
    pairs = [part.split(b":") for part in text.split(b",") if part]
    return {int(queue): int(offset) for queue, offset in pairs}


class Known:
    """What each client's table held for each broker name, and from when."""

    def __init__(self, recording: Path) -> None:
        self._ts: dict[tuple[str, str], list[int]] = {}
        self._addrs: dict[tuple[str, str], list[Addrs]] = {}
        had: dict[tuple[str, str], tuple] = {}
        for line in sorted(lines_read(recording, "routes"), key=lambda line: line["response_ts"] or line["ts"]):
            if not line["body"]:
                continue
            route = route_of(line["body"])
            if had.get((line["client_id"], line["topic"])) == route:
                continue
            had[line["client_id"], line["topic"]] = route
            for name, addrs in route[0]:
                self._ts.setdefault((line["client_id"], name), []).append(line["response_ts"] or line["ts"])
                self._addrs.setdefault((line["client_id"], name), []).append(addrs)

    def at(self, client: str, name: str, ts: int) -> tuple[Addrs | None, Addrs | None, bool]:
        """The addresses known then, those before, and whether they had just changed."""
        told = self._ts.get((client, name), [])
        place = bisect.bisect_right(told, ts) - 1
        if place < 0:
            return None, None, False
        addrs = self._addrs[client, name]
        before = addrs[place - 1] if place else None
        return addrs[place], before, before is not None and ts - told[place] < SLACK_MS


def lines_read(recording: Path, stem: str) -> Iterator[dict]:
    """The lines of a kind."""
    for path in lines_of(recording, stem):
        with gzip.open(path) as lines:
            yield from map(json.loads, lines)


def judged(pulls: list[dict], known: Known, told: dict[tuple, int], first_ts: int) -> Iterator[str]:
    """PullAPIWrapper's rule, pull by pull; ``told`` is what each queue's client was last told."""
    for pull in pulls:
        client, name, ts = pull["client_id"], pull["broker_name"], pull["request_ts"]
        place = (client, pull["consumer_group"], pull["topic"], name, pull["queue_id"])
        node = told.get(place, 0 if pull["sub_version"] >= first_ts else UNSEEN)
        now, before, fresh = known.at(client, name, ts)
        yield judge(now, before, fresh, None if node == UNSEEN else node, pull["broker_id"])[1]
        suggested = pull.get("suggest_which_broker_id")
        if suggested is not None:
            told[place] = suggested
        elif pull.get("response_ts") is None and pull.get("error") is None:
            told[place] = UNSEEN


def run(recording: Path, stages: Stages) -> dict[str, object]:
    """All stages; what was counted, and what of the known answers is missed."""
    answers = json.loads((recording / "answers.json").read_bytes())
    counts = {"agree": 0, "differ": 0, "undetermined": 0}
    rows = pulls = 0
    found: dict[str, set[tuple]] = {"rewinds": set(), "vanished": set()}
    names = (
        "broker_name",
        "broker_id",
        "topic",
        "consumer_group",
        "queue_id",
        "previous_offset",
        "new_offset",
        "to_ts",
    )
    with stages("silver.offset_change"):
        for source in sources(recording):
            for topic, group, queue, old, new, ts in changes_of(source):
                rows += 1
                if old is not None and (new is None or new < old):
                    row = (source.broker_name, source.broker_id, topic, group, queue, old, new, ts)
                    found["vanished" if new is None else "rewinds"].add(row)
    with stages("gold.pull_route"):
        known, first_ts = Known(recording), _first_ts(recording)
    told: dict[tuple, int] = {}
    for path in lines_of(recording, "pull_log"):
        with stages("silver.pull"), gzip.open(path) as lines:
            read = [json.loads(line) for line in lines]
        with stages("gold.pull_route"):
            for judgement in judged(read, known, told, first_ts):
                counts[judgement] += 1
        pulls += len(read)
    right = {name: found[name] == {tuple(row[n] for n in names) for row in answers[name]} for name in found}
    right |= {"offset_changes": rows == answers["offset_changes"], "pulls": pulls == answers["pulls"]}
    right["pull_route"] = counts == answers["pull_route"]
    wrong = [name for name, is_right in right.items() if not is_right]
    return {"right": not wrong, "wrong": wrong, "rows": {"offset_change": rows, "pull": pulls}, "pull_route": counts}


def _first_ts(recording: Path) -> int:
    firsts = [source.moments[0] for source in sources(recording)]
    for path in recording.glob("*.jsonl.gz"):
        with gzip.open(path) as lines:
            line = json.loads(lines.readline())
            firsts.append(line["request_ts"] if "request_ts" in line else line["ts"])
    return min(firsts)
