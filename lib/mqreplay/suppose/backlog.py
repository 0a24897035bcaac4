"""What arrived in the queues of a group during a backlog, and what each of its members finished."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, field
from typing import Final

import polars as pl

from mqreplay.evidence.intervals import with_state
from mqreplay.lake.row_filter import RowFilter
from mqreplay.moment.instant import Recorded
from mqreplay.moment.offsets import commits_before, ends_between
from mqreplay.suppose.instants import RECENT, stored_rates
from mqreplay.words.keys import QUEUE

STEP: Final = dt.timedelta(seconds=10)
MINUTE: Final = 6  # steps; clients commit every 5 s (persistConsumerOffsetInterval), so 10 s alone are not exact


@dataclass(frozen=True)
class Progress:
    """A group's night.

    ``commits``: QUEUE, committed, committed_ts. ``owners``: QUEUE, client_id, from_ts, to_ts. ``members``: client_id,
    from_ts, to_ts. ``resets``: topic, from_ts, to_ts of findings in which offsets changed without consumption.
    ``fastest``: what is known already, by topic.
    """

    recorded: Recorded
    commits: pl.DataFrame
    owners: pl.DataFrame
    members: pl.DataFrame
    resets: pl.DataFrame
    fastest: dict[str, float | None] = field(default_factory=dict)


@dataclass(frozen=True)
class BacklogRates:
    """Rates of a topic in messages per second; None: not known.

    ``arrived``: QUEUE, stored, of each queue during the backlog. ``meanwhile``: what the slowest member finished during
    it. ``fastest``: the most that one member finished within a minute of the night. ``members``: how many were
    connected, at the middle. ``without_s``: for how many seconds of the backlog there was none. Both are None for a
    group whose members were not recorded at all.
    """

    arrived: pl.DataFrame
    meanwhile: float | None
    fastest: float | None
    members: int | None
    without_s: float | None

    @property
    def total(self) -> float | None:
        """Return what arrived in all queues together; None if it is not known of each."""
        known = [rate for rate in self.arrived["stored"].to_list() if rate is not None]
        return sum(known) if known and len(known) == len(self.arrived) else None

    @property
    def hottest(self) -> float | None:
        """Return the most that arrived in one queue; None if it is not known of each."""
        return None if self.total is None else max(self.arrived["stored"].to_list())


def progress(recorded: Recorded, group: str, day: dt.date, resets: pl.DataFrame) -> Progress:
    """Return a group's commits, owners and members of a day."""
    of_group = pl.col("consumer_group") == group
    end = min(recorded.last, dt.datetime.combine(day, dt.time.max, dt.UTC))
    commits = commits_before(recorded, end, group).select(*QUEUE, "committed", "committed_ts")
    of_day = RowFilter(recorded.cluster, days=frozenset({day}))
    owners = recorded.warehouse.read("gold.queue_owner", of_day).filter(of_group)
    members = recorded.warehouse.read("gold.member", of_day).filter(of_group)
    return Progress(
        recorded,
        commits.drop_nulls().sort("committed_ts", "committed").collect(),
        owners.select(*QUEUE, "client_id", "from_ts", "to_ts").sort("from_ts").collect(),
        members.select("client_id", "from_ts", "to_ts").collect(),
        resets,
    )


def backlog_rates(known: Progress, topic: str, since: dt.datetime, until: dt.datetime) -> BacklogRates:
    """Return the rates of a topic in a backlog from ``since`` to ``until``."""
    of_topic = pl.col("topic") == topic
    commits, owners = known.commits.filter(of_topic), known.owners.filter(of_topic)
    if topic not in known.fastest:
        known.fastest[topic] = _fastest(commits, owners, known.resets.filter(of_topic))
    spans = known.members.filter((pl.col("from_ts") < until) & (pl.col("to_ts") > since))
    middle = since + (until - since) / 2
    there = spans.filter((pl.col("from_ts") <= middle) & (pl.col("to_ts") > middle))
    is_known = len(known.members) > 0
    return BacklogRates(
        stored_rates(ends_between(known.recorded, since - RECENT, until, topic)),
        _meanwhile(commits, owners, since, until),
        known.fastest[topic],
        there["client_id"].n_unique() if is_known else None,
        (until - since).total_seconds() - _covered_s(spans, since, until) if is_known else None,
    )


def all_advanced(known: Progress, topic: str, since: dt.datetime, until: dt.datetime) -> bool:
    """Return whether each queue of a topic advanced in a backlog, and within each 30 s."""
    commits = known.commits.filter(pl.col("topic") == topic)
    steps = pl.DataFrame({"ts": pl.datetime_range(since, until, 3 * STEP, time_zone="UTC", time_unit="us", eager=True)})
    advances = _advances(commits, steps, 1)
    return not advances.is_empty() and bool((advances["advance"] > 0).all())


def _covered_s(spans: pl.DataFrame, since: dt.datetime, until: dt.datetime) -> float:
    """Return for how many seconds at least one span holds."""
    covered, end = dt.timedelta(), since
    for begin, stop in spans.select("from_ts", "to_ts").sort("from_ts").rows():
        if (last := min(stop, until)) > end:
            covered += last - max(begin, end)
            end = last
    return covered.total_seconds()


def _meanwhile(commits: pl.DataFrame, owners: pl.DataFrame, since: dt.datetime, until: dt.datetime) -> float | None:
    # A standstill ends with the commit that ends it.
    instants = pl.DataFrame({"ts": [since, until - dt.timedelta(milliseconds=1)]}, {"ts": pl.Datetime("us", "UTC")})
    at_ends = _advances(commits, instants, 1)
    # Owners are known by polls, too, which are seconds apart.
    held = owners.filter((pl.col("from_ts") <= since + STEP) & (pl.col("to_ts") >= until - STEP))
    rates = _by_member(at_ends, held.select(*QUEUE, "client_id").unique())
    seconds = (until - since).total_seconds()
    return None if rates.is_empty() or seconds <= 0 else float(rates["finished"].min()) / seconds  # type: ignore[arg-type]


def _fastest(commits: pl.DataFrame, owners: pl.DataFrame, resets: pl.DataFrame) -> float | None:
    if commits.is_empty():
        return None
    first, last = pl.col("committed_ts").min(), pl.col("committed_ts").max()
    steps = commits.select(pl.datetime_range(first, last, STEP).alias("ts"))
    advances = _advances(commits, steps, MINUTE).filter(pl.col("advance") > 0)
    width = STEP * MINUTE
    for begin, end in resets.select("from_ts", "to_ts").rows():
        advances = advances.filter((pl.col("ts") < begin) | (pl.col("ts") - width > (end or begin)))
    held = with_state(advances, owners, QUEUE, "ts", "from_ts")
    whole = held.filter((pl.col("from_ts") <= pl.col("ts") - width) & (pl.col("to_ts") >= pl.col("ts")))
    rates = whole.group_by("client_id", "ts").agg(pl.col("advance").sum())
    return None if rates.is_empty() else float(rates["advance"].max()) / width.total_seconds()  # type: ignore[arg-type]


def _advances(commits: pl.DataFrame, instants: pl.DataFrame, steps: int) -> pl.DataFrame:
    """Return by how much each queue advanced in the ``steps`` before each instant: QUEUE, ts, advance."""
    grid = commits.select(QUEUE).unique().join(instants, how="cross").sort("ts")
    known = with_state(grid, commits, QUEUE, "ts", "committed_ts")
    advance = (pl.col("committed") - pl.col("committed").shift(steps)).over(QUEUE).clip(0).alias("advance")
    return known.with_columns(advance).select(*QUEUE, "ts", "advance").drop_nulls()


def _by_member(advances: pl.DataFrame, held: pl.DataFrame) -> pl.DataFrame:
    joined = held.join(advances, QUEUE)
    return joined.group_by("client_id").agg(pl.col("advance").sum().alias("finished"))
