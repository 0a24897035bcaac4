"""The state of each group and broker at each instant of a night: what its page shows at the cursor."""

from __future__ import annotations

import datetime as dt
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from mqreplay.moment.instant import Recorded
from mqreplay.moment.night_brokers import DOWN, Broker, broker_settings, broker_states
from mqreplay.moment.night_queues import LAG_SLOTS, QueueFrames, queue_frames, shared_or_dropped, slot_ms, unowned
from mqreplay.moment.steps import Steps, counted_steps, ms_between, rows_of, value_at, value_steps
from mqreplay.words.keys import GROUP, GROUP_QUEUE, GROUP_TOPIC

Row = dict[str, Any]


@dataclass
class GroupStates:
    """A group over the night.

    ``members`` and ``without_owner`` are counts at instants; without steps, they are not known. ``lag`` has the
    messages at each slot, by topic; None: not known. ``sessions`` are rows of members; ``queues`` counts those of each
    topic and broker.
    """

    name: str
    members: Steps = field(default_factory=lambda: [0, 0])
    without_owner: Steps = field(default_factory=lambda: [0, 0])
    shares_queues: bool = True
    lag: dict[str, list[int | None]] = field(default_factory=dict)
    sessions: list[Row] = field(default_factory=list)
    queues: dict[tuple[str, str], int] = field(default_factory=dict)
    strategies: list[str] = field(default_factory=list)

    @property
    def whole_lag(self) -> list[int | None]:
        """Return the lag at each slot over all topics; None where it is not known of one of them."""
        slots = zip(*self.lag.values(), strict=True)
        return [None if None in each else sum(lag or 0 for lag in each) for each in slots]

    @property
    def most_lag(self) -> int | None:
        """Return the greatest lag of the night."""
        return max((lag for lag in self.whole_lag if lag is not None), default=None)

    @property
    def lag_steps(self) -> Steps:
        """Return the lag over all topics at the slots in which it changes."""
        return value_steps(enumerate(self.whole_lag), len(self.whole_lag)) if self.lag else []

    def members_at(self, instant: int) -> int:
        """Return the number of members at an instant."""
        return value_at(self.members, instant) or 0


@dataclass
class NightStates:
    """All states of a night. ``slot`` is the milliseconds between two instants at which lag is known.

    ``disputes``: when nobody held a queue, or several clients did (`shared_or_dropped`). ``ends``: topic, broker_name,
    queue_id, slot, offset, where an end was stated in the slot before.
    """

    night: Recorded
    slot: int
    groups: dict[str, GroupStates] = field(default_factory=dict)
    brokers: dict[Broker, Steps] = field(default_factory=dict)
    settings: dict[Broker, dict[str, str]] = field(default_factory=dict)
    disputes: pl.DataFrame = field(default_factory=pl.DataFrame)
    ends: pl.DataFrame = field(default_factory=pl.DataFrame)

    @property
    def last(self) -> int:
        """Return the milliseconds from the first to the last instant."""
        return ms_between(self.night.first, self.night.last)

    def begin_ms(self, at: dt.datetime) -> int:
        """Return the first whole millisecond of the night that is not before an instant."""
        return -ms_between(at, self.night.first)

    def end_ms(self, at: dt.datetime) -> int:
        """Return the last whole millisecond of the night that is not after an instant."""
        return ms_between(self.night.first, at)

    def slot_start(self, slot: int) -> dt.datetime:
        """Return the instant of a slot."""
        return self.night.first + dt.timedelta(milliseconds=slot * self.slot)

    def outages(self, broker: Broker) -> int:
        """Return how many times a broker stopped answering."""
        return self.brokers[broker][1::2].count(DOWN)


def night_states(night: Recorded) -> NightStates:
    """Read the states of a night."""
    frames = queue_frames(night)
    states = NightStates(night, slot_ms((night.last - night.first).total_seconds()))
    states.brokers, states.settings = broker_states(night), broker_settings(night)
    states.disputes, states.ends = shared_or_dropped(frames.owned), frames.ends
    groups = states.groups

    def group(name: str) -> GroupStates:
        return groups.setdefault(name, GroupStates(name))

    for row in frames.members.iter_rows(named=True):
        group(row[GROUP]).sessions.append(row)
    for name, changes in _member_changes(frames).items():
        group(name).members = counted_steps(changes, states.last)
        group(name).shares_queues = all(row["shares_queues"] is not False for row in group(name).sessions)
    for name, changes in _orphan_changes(unowned(frames, night)).items():
        group(name).without_owner = counted_steps(changes, states.last)
    for (name, topic), lag in _lag_slots(frames, LAG_SLOTS + 1).items():
        group(name).lag[topic] = lag
    queues = pl.concat([frames.known.select(GROUP_QUEUE), frames.owned.select(GROUP_QUEUE)]).unique()
    for name, topic, broker, count in queues.group_by(GROUP, "topic", "broker_name").len().sort(pl.all()).iter_rows():
        group(name).queues[topic, broker] = count
    for name, strategy in _strategies(night).iter_rows():
        if name in groups:
            groups[name].strategies.append(strategy)
    if frames.members.is_empty():
        for each in groups.values():
            each.members = []
    # Without a record of any owner, nothing shows that a queue has none.
    owned = set(frames.owned[GROUP])
    for each in groups.values():
        if each.name not in owned or not each.members:
            each.without_owner = []
    states.groups = dict(sorted(groups.items()))
    return states


def _member_changes(frames: QueueFrames) -> dict[str, list[tuple[int, int]]]:
    """Return when clients joined and left; sessions of one client that touch are one."""
    found: dict[str, list[tuple[int, int]]] = defaultdict(list)
    ends: dict[tuple[str, str], int] = {}
    for name, client, begin, end in frames.members.select(GROUP, "client_id", "begin", "end").iter_rows():
        since = max(begin, ends.get((name, client), begin))
        if end > since:
            found[name] += [(since, 1), (end, -1)]
            ends[name, client] = end
    return found


def _orphan_changes(unowned: pl.DataFrame) -> dict[str, list[tuple[int, int]]]:
    """Return when queues that a group is known to read lose their owner (1) and get one (-1)."""
    found: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for name, begin, end in unowned.select(GROUP, "begin", "end").iter_rows():
        found[name] += [(begin, 1), (end, -1)]
    return found


def _lag_slots(frames: QueueFrames, slots: int) -> dict[tuple[str, str], list[int | None]]:
    """Return the lag of each group and topic at each slot; None where it is not known of a queue that is known then.

    The sums of lag and of unknown queues change with each queue's own values: their differences are added up.
    """
    before = pl.col("lag").shift(1).over("line")
    is_first = pl.col("line").ne_missing(pl.col("line").shift(1))
    change = pl.col("lag").fill_null(0) - before.fill_null(0)
    was_unknown = before.is_null() & ~is_first
    unknown = pl.col("lag").is_null().cast(pl.Int64) - was_unknown.cast(pl.Int64)
    changes = frames.lag.with_columns(change.alias("change"), unknown.alias("unknown"))
    topics = frames.lines.select(GROUP_TOPIC).unique().with_row_index("of_topic")
    of_line = frames.lines.join(topics, GROUP_TOPIC).select("line", "of_topic")
    no_offset = frames.known.join(frames.lines, GROUP_QUEUE, how="anti")
    found: dict[tuple[str, str], list[int | None]] = {}
    never = set(no_offset.select(GROUP_TOPIC).unique().rows())
    by_slot = (
        changes.filter(pl.col("slot") < slots)
        .join(of_line, "line")
        .group_by("of_topic", "slot")
        .agg(pl.col("change", "unknown").sum())
        .join(topics, "of_topic")
        .select(*GROUP_TOPIC, "slot", "change", "unknown")
        .sort(*GROUP_TOPIC, "slot")
    )
    seen: dict[tuple[str, str], list[tuple[int, int, int]]] = defaultdict(list)
    for name, topic, slot, more, lacking in by_slot.iter_rows():
        seen[name, topic].append((slot, more, lacking))
    for key, steps in seen.items():
        lag, lacking = 0, 0
        values: list[int | None] = [None] * slots
        for number, (slot, more, less) in enumerate(steps):
            lag, lacking = lag + more, lacking + less
            until = steps[number + 1][0] if number + 1 < len(steps) else slots
            if not lacking and key not in never:
                values[slot:until] = [lag] * (until - slot)
        found[key] = values
    return found


def _strategies(night: Recorded) -> pl.DataFrame:
    rows = rows_of(night, "gold.allocation", "rebalance_ts").filter(pl.col("strategy").is_not_null())
    return rows.select(GROUP, "strategy").unique().sort(GROUP, "strategy").collect()
