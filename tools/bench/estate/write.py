"""The whole estate in one pass over its day, and answers.json: what is known of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from .additions import STREAMED, Additions
from .files import HourlyLines
from .flow import Events, Flow, make_events
from .lines import Line
from .pulls import PullLog
from .records import rebalance_ms, write_records
from .shape import CLUSTER, Shape, make_shape, share_of
from .sizes import SIZES
from .snapshots import SLAVE_LATER_MS, BrokerFiles, brokers_json


def write_estate(size_name: str, seed: int, folder: Path, full: bool = False) -> dict[str, object]:
    """Write the recording into ``folder`` (made, and to be empty); return the answers that are written beside it.

    ``full``: with the additions of additions.py.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        raise SystemExit(f"{folder} is not empty")
    size = SIZES[size_name]
    rng = np.random.default_rng(seed)
    shape = make_shape(size, rng)
    events = make_events(shape, rng)
    flow = Flow(shape, events, rng)
    more = Additions(shape, events, flow, seed) if full else None
    files = [BrokerFiles(shape, events, b, folder / "snapshots", rng, more) for b in range(size.names)]
    (folder / "brokers.json").write_bytes(brokers_json(shape))
    lines = HourlyLines(folder, "pull_log")
    pulls, known = PullLog(flow, lines, more), Known(shape, events, files)
    streams = {stem: HourlyLines(folder, stem) for stem in STREAMED} if more else {}
    idle = np.array([files[b].still[j, q] for j, b, q in events.idle], np.int64)
    for k in range(size.snapshots):
        flow.step()
        if more and k:
            write_streams(more.streamed(k - 1, flow.committed), streams)
        for i, at in enumerate(events.idle_interval):
            if at == k:
                idle[i] //= 2
        offsets = np.concatenate([flow.committed, idle])
        known.look(k, offsets, [one.write(k, offsets) for one in files])
        pulls.write()
        if more:
            more.look(k)
    if more:
        write_streams(more.streamed(size.snapshots - 1, flow.reached()), streams)
    for out in (lines, *streams.values()):
        out.close()
    records = write_records(shape, events, folder, more.records() if more else None)
    answers = {"size": size_name, "seed": seed, "cluster": CLUSTER}
    answers |= known.answers() | of_pulls(pulls) | of_records(shape, records)
    answers["double_owners"] = double_owners(shape, events)
    if more:
        answers |= _with_additions(answers, more)
    (folder / "answers.json").write_text(json.dumps(answers, indent=1) + "\n")
    return answers


def _with_additions(answers: dict[str, Any], more: Additions) -> dict[str, object]:
    """What the answers become by the additions."""
    sums = {"entries": more.entries, "offset_changes": more.changes, "pulls_of_slaves": more.from_slave}
    found: dict[str, object] = {name: answers[name] + added for name, added in sums.items()}
    return found | {"rewinds": answers["rewinds"] + more.rewinds} | more.answers()


def write_streams(made: dict[str, list[Line]], streams: dict[str, HourlyLines]) -> None:
    """Write an interval's lines, each kind to its files."""
    for stem, some in made.items():
        if some:
            streams[stem].write(some[0][0], "".join(line for _, line in some), len(some))


class Known:
    """Watches what is written, and keeps what a replay must find."""

    def __init__(self, shape: Shape, events: Events, files: list[BrokerFiles]) -> None:
        self.shape, self.events, self.files = shape, events, files
        self.entries = self.changes = 0
        self.before = np.empty(0, np.int64)
        entries = zip(shape.entry_key.tolist(), shape.entry_broker.tolist(), shape.entry_queue.tolist(), strict=True)
        self.places = [*entries, *events.idle]
        self.breaks: dict[str, list[dict[str, object]]] = {"rewinds": [], "jumps": [], "vanished": []}
        self.stalls: list[dict[str, object]] = []

    def look(self, k: int, offsets: np.ndarray, entries: list[int]) -> None:
        """The k-th snapshots show ``offsets`` (of moving entries), and so many entries for each broker name."""
        self.entries += 2 * sum(entries)
        if k == 0:
            self.changes += 2 * sum(entries)
        else:
            self.changes += 2 * int((offsets != self.before).sum())
            for place in np.flatnonzero(offsets < self.before).tolist():
                self._break("rewinds", k, place, offsets)
            for place in [entry for entry, at in self.events.jumps.items() if at == k]:
                self._break("jumps", k, place, offsets)
            self._keys(k)
        for place, (first, last) in self.events.stalls.items():
            if k == first:
                spot = self._spot(self.places[place], 0)
                span = {"from_ts": self.shape.size.snapshot_ms(k), "to_ts": self.shape.size.snapshot_ms(last)}
                self.stalls.append({**spot, "offset": int(offsets[place]), **span})
        self.before = offsets

    def _keys(self, k: int) -> None:
        """Keys that came or went with this snapshot."""
        for b, one in enumerate(self.files):
            for j in [j for j, at in one.come.items() if at == k]:
                self.changes += 2 * self.shape.keys[j].queues
            for j in [j for j, at in one.gone.items() if at == k]:
                self.changes += 2 * self.shape.keys[j].queues
                for q in range(self.shape.keys[j].queues):
                    self._add("vanished", k, (j, b, q), int(one.still[j, q]), None)

    def _break(self, kind: str, k: int, place: int, offsets: np.ndarray) -> None:
        self._add(kind, k, self.places[place], int(self.before[place]), int(offsets[place]))

    def _add(self, kind: str, k: int, place: tuple[int, int, int], old: int, new: int | None) -> None:
        for broker_id in (0, 1):
            later = broker_id * SLAVE_LATER_MS
            from_ts, to_ts = self.shape.size.snapshot_ms(k - 1) + later, self.shape.size.snapshot_ms(k) + later
            told = {"previous_offset": old, "new_offset": new, "from_ts": from_ts, "to_ts": to_ts}
            self.breaks[kind].append({**self._spot(place, broker_id), **told})

    def _spot(self, place: tuple[int, int, int], broker_id: int) -> dict[str, object]:
        j, b, q = place
        key = self.shape.keys[j]
        return {
            "broker_name": self.shape.brokers[b].name,
            "broker_id": broker_id,
            "topic": key.topic,
            "consumer_group": self.shape.groups[key.group],
            "queue_id": q,
        }

    def answers(self) -> dict[str, object]:
        """Counts, and the breaks with their places; times in epoch ms."""
        size = self.shape.size
        counts = {"snapshots": 2 * size.names * size.snapshots, "entries": self.entries, "offset_changes": self.changes}
        return {**counts, **self.breaks, "stalls": self.stalls}


def of_pulls(pulls: PullLog) -> dict[str, object]:
    """What a replay must say of the pulls."""
    differ = len(pulls.differ)
    judged = {"agree": pulls.rows - differ - pulls.undetermined, "differ": differ, "undetermined": pulls.undetermined}
    told = {"pulls": pulls.rows, "pulls_of_slaves": pulls.from_slave, "pull_route": judged}
    return told | {"pull_route_differ": pulls.differ}


def of_records(shape: Shape, records: dict[str, object]) -> dict[str, object]:
    """Counts of lines, and what a replay must say of the rebalances."""
    differ = len(records["allocation_differ"])  # type: ignore[arg-type]
    total = records.pop("rebalance_log")
    judged = {"agree": total - differ, "differ": differ, "undetermined": 0}  # type: ignore[operator]
    return {**records, "rebalances": total, "allocation": judged}


def double_owners(shape: Shape, events: Events) -> list[dict[str, object]]:
    """Queues that two clients held at once; times in epoch ms."""
    made: list[dict[str, object]] = []
    for group, (first, last) in sorted(events.doubles.items()):
        guest, *others = shape.members[group]
        span = {"from_ts": rebalance_ms(guest, first), "to_ts": rebalance_ms(guest, last)}
        cid_all = [client.client_id for client in shape.members[group]]
        for key in shape.topics_of(group):
            for owner in others:
                for broker_name, queue_id in share_of(shape, key, owner.client_id, cid_all):
                    spot = {"consumer_group": shape.groups[group], "topic": key.topic, "broker_name": broker_name}
                    made.append({**spot, "queue_id": queue_id, "clients": [owner.client_id, guest.client_id], **span})
    return made
