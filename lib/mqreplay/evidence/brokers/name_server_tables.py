"""The tables of each name server over time: RouteInfoManager fed with the brokers that it listed and their topics.

A name server's own list of brokers (GET_BROKER_CLUSTER_INFO) says which addresses are registered there, and the copies
of each master's topics.json say what it registers. When a registration arrived is not recorded: it is a change that
follows the broker's within its period, so an answer may follow any state of the tables since then.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np
import polars as pl

from mqreplay.core.failover_intervals import REGISTER_NAME_SERVER_PERIOD, registration
from mqreplay.core.route_info_manager import RouteInfoManager, TopicConfigs, registered_topic
from mqreplay.core.topic_route import MASTER_ID, PERM_READ, PERM_WRITE, QueueData, TopicRouteData
from mqreplay.core.version import BROKER_5
from mqreplay.evidence.arrays.frame_arrays import Numbers
from mqreplay.evidence.brokers.broker_descriptions import descriptions, version_of

CLOCK_SLACK_MS: Final = 5_000  # files are copied, and clients and the recorder read their clocks, at other times
BEFORE_RECORDING: Final = -(2**62)
READ_WRITE: Final = PERM_READ | PERM_WRITE
Place = tuple[str, int, str]  # broker name, broker id, address


class Change(NamedTuple):
    """A change of what brokers register, or of a name server's list; ``late``: seen by then, ``early``: not before.

    ``topic`` and ``queue_data`` are of the master of ``broker_name``; None: it removed the topic. Of a list,
    ``brokers`` are all its addresses. Times in epoch ms.
    """

    late: int
    early: int
    broker_name: str = ""
    topic: str = ""
    queue_data: QueueData | None = None
    brokers: frozenset[Place] | None = None


class State(NamedTuple):
    """What the tables have of a topic after a number of changes.

    ``deletable_brokers``: brokers whose part an operator may have deleted on the name server, with the topic.
    """

    changes: int
    route: TopicRouteData | None
    deletable_brokers: frozenset[str]


class NameServerTables:
    """The states of one name server's tables, from change to change. ``asked`` are the topics that count.

    ``has_lists``: its list of brokers was recorded, and is not a guess. ``first_list`` and ``first_copy`` (by broker
    name) are the numbers of the first changes of its list and of a broker's topics.
    """

    def __init__(self, changes: Iterable[Change], asked: Iterable[str], lag_ms: int, *, has_lists: bool = True) -> None:
        """Replay the changes, each of which arrived within ``lag_ms``."""
        self.has_lists = has_lists
        self._changes = sorted(changes, key=lambda change: (change.late, change.brokers is not None))
        self._states: dict[str, list[State]] = {topic: [State(0, None, frozenset())] for topic in asked}
        self._manager, self._listed = RouteInfoManager(), frozenset[Place]()
        self._configs: dict[str, dict[str, QueueData]] = {}
        self._deletable_brokers: dict[str, set[str]] = {}
        self.first_copy: dict[str, int] = {}
        lists = [number for number, change in enumerate(self._changes) if change.brokers is not None]
        self.first_list = lists[0] if lists else len(self._changes)
        for number, change in enumerate(self._changes):
            self._apply(change, number)
        self._surely = np.array([change.late + lag_ms + CLOCK_SLACK_MS for change in self._changes], np.int64)
        early = np.array([change.early - CLOCK_SLACK_MS for change in self._changes], np.int64)
        order = np.argsort(early, kind="stable")
        self._maybe = early[order]
        self._reached = np.maximum.accumulate(order + 1) if len(order) else order

    def windows(self, at: Numbers) -> tuple[Numbers, Numbers]:
        """Return for each instant, in epoch ms, how many changes had surely arrived, and how many may have."""
        reached = np.concatenate([[0], self._reached])[np.searchsorted(self._maybe, at, side="right")]
        surely = np.searchsorted(self._surely, at, side="right")
        return surely, np.maximum(surely, reached)

    def states(self, topic: str, surely: int, maybe: int) -> Sequence[State]:
        """Return the states of a topic after ``surely`` to ``maybe`` changes."""
        every = self._states[topic]
        after = [each.changes for each in every]
        first = int(np.searchsorted(after, surely, side="right")) - 1
        return every[first : int(np.searchsorted(after, maybe, side="right"))]

    def _apply(self, change: Change, number: int) -> None:
        if change.brokers is not None:
            self._list(change.brokers, change.late)
            touched: Iterable[str] = self._states
        else:
            self.first_copy.setdefault(change.broker_name, number)
            self._register(change)
            touched = (change.topic,)
        for topic in touched:
            states = self._states.get(topic)
            if states is None:
                continue
            state = State(
                number + 1,
                self._manager.pickup_topic_route_data(topic),
                frozenset(self._deletable_brokers.get(topic, ())),
            )
            if state[1:] != states[-1][1:]:
                states.append(state)

    def _register(self, change: Change) -> None:
        topics = self._configs.setdefault(change.broker_name, {})
        if change.queue_data is None:
            # No registration makes a name server forget a topic; `mqadmin deleteTopic` asks it to, for all brokers.
            topics.pop(change.topic, None)
            listed = self._manager.topic_queue_table.get(change.topic, {})
            self._deletable_brokers.setdefault(change.topic, set()).update(listed)
            return
        topics[change.topic] = change.queue_data
        self._deletable_brokers.get(change.topic, set()).discard(change.broker_name)
        for place in self._listed:
            if place[:2] == (change.broker_name, MASTER_ID):
                self._send(place, {change.topic: change.queue_data}, change.late)

    def _list(self, brokers: frozenset[Place], now: int) -> None:
        left = {address for _, _, address in brokers}
        for name, broker_id, address in sorted(self._listed - brokers):
            if address in left:  # the broker has another name or id now
                self._manager.unregister_broker("", address, name, broker_id)
            else:
                self._manager.on_channel_destroy(address)
        for place in sorted(brokers - self._listed):
            self._send(place, self._configs.get(place[0], {}) if place[1] == MASTER_ID else {}, now)
        self._listed = brokers

    def _send(self, place: Place, topics: Mapping[str, QueueData], now: int) -> None:
        """Register a broker, as one whose topics have a new version."""
        name, broker_id, address = place
        self._manager.register_broker("", address, name, broker_id, None, TopicConfigs(object(), topics), None, now)


def config_changes(topic_config: pl.DataFrame, broker: pl.DataFrame) -> list[Change]:
    """Return what masters registered of their topics, from silver.topic_config and silver.broker."""
    described = broker.filter(pl.col("broker_id") == MASTER_ID).sort("ts")
    settings: dict[str, tuple[int, str]] = {}
    for row, named in descriptions(described):
        permission = _number(named.get("brokerPermission"), READ_WRITE)
        settings[row["broker_name"]] = (permission, version_of(row))
    copied = pl.col("ts").dt.epoch("ms").alias("late")
    rows = topic_config.filter(pl.col("broker_id") == MASTER_ID).with_columns(copied)
    times = rows.select("source_name", "late").unique().sort("late")
    before = times.with_columns(pl.col("late").shift(1).over("source_name").fill_null(BEFORE_RECORDING).alias("early"))
    changes = []
    for row in rows.join(before, ["source_name", "late"]).rows(named=True):
        name = row["broker_name"]
        queue_data = _queue_data(row, *settings.get(name, (READ_WRITE, BROKER_5)))
        changes.append(Change(row["late"], row["early"], name, row["topic"], queue_data))
    return changes


def list_changes(lists: pl.DataFrame) -> dict[str, list[Change]]:
    """Return by name server the changes of its list. ``lists`` is the frame of listed_brokers.py."""
    by = ("namesrv_addr", "from_ts")
    place = pl.struct("broker_name", "broker_id", "broker_addr")
    answers = lists.group_by(by).agg(
        place.filter(pl.col("broker_addr").is_not_null()).sort().alias("brokers"), pl.col("before_ts").max()
    )
    seen = pl.coalesce("before_ts", pl.col("from_ts").shift(1).over("namesrv_addr")).dt.epoch("ms")
    ordered = answers.sort(by).with_columns(seen.fill_null(BEFORE_RECORDING).alias("early"))
    is_change = pl.col("brokers").ne_missing(pl.col("brokers").shift(1).over("namesrv_addr"))
    found: dict[str, list[Change]] = {}
    changed = ordered.filter(is_change).select("namesrv_addr", pl.col("from_ts").dt.epoch("ms"), "early", "brokers")
    for server, late, early, brokers in changed.iter_rows():
        places = frozenset(tuple(each.values()) for each in brokers)
        found.setdefault(server or "", []).append(Change(late, min(early, late), brokers=places))
    return found


def described_brokers(broker: pl.DataFrame) -> list[Change]:
    """Return a list of all brokers of silver.broker, for a recording without a name server's list."""
    rows = broker.filter(pl.col("broker_addr").is_not_null()).select("broker_name", "broker_id", "broker_addr").rows()
    return [Change(BEFORE_RECORDING, BEFORE_RECORDING, brokers=frozenset(rows))]


def registration_lag(broker: pl.DataFrame) -> int:
    """Return the ms after which each change of a broker is registered, by the slowest of those described.

    A broker registers a change at once, and what was lost again with its next period (BrokerController#start).
    """
    ends = []
    for row, named in descriptions(broker):
        period = _number(named.get("registerNameServerPeriod"), REGISTER_NAME_SERVER_PERIOD)
        version = BROKER_5 if row["rocketmq_version"] is None else version_of(row)
        ends.append(registration(0, version, period).end)
    return max(ends, default=registration(0, BROKER_5).end)


def _queue_data(row: Mapping[str, object], broker_permission: int, version: str) -> QueueData | None:
    if row["change"] == "removed":
        return None
    values = [row[name] for name in ("read_queue_nums", "write_queue_nums", "perm", "topic_sys_flag")]
    config = QueueData(str(row["broker_name"]), *(int(str(value or 0)) for value in values))
    return registered_topic(config, broker_permission, version)


def _number(text: str | None, default: int) -> int:
    return int(text) if text is not None and text.isdecimal() else default
