"""Time spans in which a group's offset of a queue did not change while messages waited, and those with an owner.

The committed offset is the smallest one not yet processed (ProcessQueue#removeMessage), so one message whose processing
never finishes blocks its queue. So does a broker that refuses the reads.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import numpy as np
import polars as pl
import pyarrow as pa

from mqreplay.evidence.arrays.frame_arrays import (
    INT64_MAX,
    INT64_MIN,
    NOWHERE,
    Mask,
    Numbers,
    instants,
    lasts,
    lists,
    runs,
    spread,
    starts,
)
from mqreplay.evidence.arrays.nearest import as_of, nearest
from mqreplay.evidence.offsets.queue_events import CHANGE_ROW, COMMIT_ROW, PULL_ROW, QueueEvents
from mqreplay.words.keys import GROUP_QUEUE

USUAL_STEPS = 3  # without commits, a standstill is longer than this number of usual intervals between two pulls
SYSTEM_BUSY = 2  # ResponseCode.SYSTEM_BUSY: a 5.x slave that may not be read
TIMES = "since_ts: TIMESTAMP, from_ts: TIMESTAMP, to_ts: TIMESTAMP"
SPAN = f"STRUCT<offset: BIGINT, {TIMES}, waiting: BIGINT, arrived: BIGINT>"
STANDSTILL_SCHEMA = f"consumer_group STRING, topic STRING, broker_name STRING, queue_id INT, spans ARRAY<{SPAN}>"


def standstill_spans(events: QueueEvents, stuck_s: int, last_copies: Mapping[str, int]) -> pa.Table:
    """Return the standstills of each queue and group, of at least ``stuck_s`` seconds, oldest first, on arrays.

    Columns: STANDSTILL_SCHEMA, one row per queue and group with a span. ``since_ts`` is when the offset was set,
    ``from_ts`` the first known instant at which messages waited, ``to_ts`` that of the next change of the offset,
    or else the last known instant at which they waited. ``waiting`` is the largest number of waiting messages,
    ``arrived`` how many came in that time. ``last_copies``: time of the last copy of the master's file by broker
    name (microseconds). Without recorded commits of a queue, an offset counts as unchanged only as long as copies
    and pulls show it, because it may change between two of them; and a standstill must be longer than USUAL_STEPS
    usual intervals between pulls.
    """
    since, until, ends_by_change, rows, least_ms = _spans(events, stuck_s * 1000, last_copies)
    stuck = ~ends_by_change | (_ms(until) - _ms(since) >= least_ms)
    since, until, ends_by_change, rows, least_ms = (
        since[stuck],
        until[stuck],
        ends_by_change[stuck],
        rows[stuck],
        least_ms[stuck],
    )
    ends, queue = events.ends, events.queue[rows]
    known = np.flatnonzero(ends.has_high)
    of, at, high = ends.queue[known], ends.at[known], ends.high[known]
    begin = _places(of, at, queue, since, "left")
    end = _places(of, at, queue, np.where(ends_by_change, until, INT64_MAX), "right")
    count = np.maximum(end - begin, 0)
    span = np.repeat(np.arange(len(rows)), count)
    place = spread(begin, count)
    # A negative offset counts as 0, as in AdminBrokerProcessor#getConsumeStats.
    committed = np.maximum(events.known("committed", rows)[span], 0)
    waits = high[place] > committed
    span, place, committed = span[waits], place[waits], committed[waits]
    behind = high[place] - committed
    first = starts(span)
    from_ts, last_ts = at[place[first]], at[place[lasts(first, len(place))]]
    span = span[first]
    to_ts = np.where(ends_by_change[span], until[span], last_ts)
    waiting = runs(np.maximum, behind, first)
    arrived = runs(np.maximum, high[place], first) - runs(np.minimum, high[place], first)
    arrived = np.where(arrived >= 0, arrived, INT64_MAX)
    kept = _ms(to_ts) - _ms(from_ts) >= least_ms[span]
    found = rows[span[kept]]
    spans = {
        "offset": pa.array(events.known("committed", found), pa.int64()),
        "since_ts": instants(since[span[kept]]),
        "from_ts": instants(from_ts[kept]),
        "to_ts": instants(to_ts[kept]),
        "waiting": pa.array(waiting[kept], pa.int64()),
        "arrived": pa.array(arrived[kept], pa.int64()),
    }
    first = starts(events.key[found])
    return events.table(found[first], GROUP_QUEUE, spans=lists(np.append(first, len(found)), spans))


def _spans(
    events: QueueEvents, stuck_ms: int, last_copies: Mapping[str, int]
) -> tuple[Numbers, Numbers, Mask, Numbers, Numbers]:
    """Return for every span: since, until, whether the offset changed then, its row, and the least standstill.

    Instants are in microseconds, the least standstill in milliseconds.
    """
    offset, known = events.numbers("committed")
    saved = (events.what == CHANGE_ROW) & events.of_master
    # A pull has the offset too (PullSysFlag's commit bit), with the same meaning as an UPDATE; it may be the only
    # source.
    all_stated = np.flatnonzero(known & (saved | (events.what == COMMIT_ROW) | (events.what == PULL_ROW)))
    rows = all_stated[np.lexsort((offset[all_stated], events.known("at", all_stated), events.by_client[all_stated]))]
    # Repeated by the same client or the file: not a change.
    rows = rows[starts(events.by_client[rows], offset[rows])]
    rows = rows[np.lexsort((offset[rows], events.known("at", rows), events.key[rows]))]
    since = events.known("at", rows)
    ends_by_change = np.ones(len(rows), bool)
    ends_by_change[lasts(starts(events.key[rows]), len(rows))] = False
    until = np.append(since[1:], 0)[: len(rows)]
    has_commits = np.zeros(int(events.key.max(initial=-1)) + 1, bool)  # by key
    has_commits[events.key[events.what == COMMIT_ROW]] = True
    recorded = has_commits[events.key[rows]]
    shown_without = all_stated[~has_commits[events.key[all_stated]]]
    until[~recorded] = _last_shown(events, rows[~recorded], shown_without, last_copies)
    pace = USUAL_STEPS * _usual_step(events, all_stated[events.what[all_stated] == PULL_ROW])[events.key[rows]]
    least_ms = np.where(recorded, stuck_ms, np.maximum(stuck_ms, pace))
    return since, until, ends_by_change | ~recorded, rows, least_ms


def _usual_step(events: QueueEvents, pulls: Numbers) -> Numbers:
    """Return by key the median of milliseconds between pulls that have the offset; 0 without such pulls."""
    pulls = pulls[np.lexsort((events.known("at", pulls), events.key[pulls]))]
    key, at = events.key[pulls], _ms(events.known("at", pulls))
    same = key[1:] == key[:-1]
    key, step = key[1:][same], (at[1:] - at[:-1])[same]
    step = step[np.lexsort((step, key))]  # keys keep their order
    first = starts(key)
    usual = np.zeros(int(events.key.max(initial=-1)) + 1, np.int64)
    usual[key[first]] = step[(first + lasts(first, len(key))) // 2]
    return usual


def _last_shown(events: QueueEvents, rows: Numbers, stated: Numbers, last_copies: Mapping[str, int]) -> Numbers:
    """Return for each span, by its first row, the last instant at which its offset is shown."""
    offset, _ = events.numbers("committed")
    saved = stated[events.what[stated] == CHANGE_ROW]
    old, had = events.numbers("previous_offset", saved)
    before, copied = events.numbers("also_at", saved)
    held = had & copied  # the copy before a change shows the offset until then
    newest, newest_at = _newest(events, saved, last_copies)
    key = np.concatenate([events.key[stated], events.key[saved][held], events.key[newest]])
    at = np.concatenate([events.known("at", stated), before[held], newest_at])
    shows = np.concatenate([offset[stated], old[held], offset[newest]])
    span = nearest(key, at, events.key[rows], events.known("at", rows))
    same = span != NOWHERE
    same[same] = offset[rows[span[same]]] == shows[same]
    last = events.known("at", rows).copy()
    np.maximum.at(last, span[same], at[same])
    return last


def _newest(events: QueueEvents, saved: Numbers, last_copies: Mapping[str, int]) -> tuple[Numbers, Numbers]:
    """Return the last change of each queue and group, and the time of the last copy of its file, if known."""
    saved = saved[np.lexsort((events.known("committed", saved), events.known("at", saved), events.key[saved]))]
    newest = saved[lasts(starts(events.key[saved]), len(saved))]
    of_name, names = events.names
    last = np.array([last_copies.get(name, INT64_MIN) for name in names], np.int64)
    copied = last[of_name[newest]]
    return newest[copied != INT64_MIN], copied[copied != INT64_MIN]


def _ms(instant: Numbers) -> Numbers:
    return instant // 1000


def _places(of: Numbers, at: Numbers, queue: Numbers, moment: Numbers, side: Literal["left", "right"]) -> Numbers:
    """Return the position of (queue, instant) among ends sorted by queue and instant."""
    instant, rank = np.unique(at, return_inverse=True)
    width = len(instant) + 1
    wanted = np.searchsorted(instant, moment, side)
    return np.searchsorted(of * width + rank, queue * width + wanted, "left")


def refused_pulls_of_shard(pull: pl.DataFrame) -> pl.DataFrame:
    """Return how many pulls of a queue were refused at each instant.

    Columns: consumer_group, topic, broker_name, queue_id, request_ts, refused.
    """
    refused = pull.filter(pl.col("response_code") == SYSTEM_BUSY, pl.col("request_ts").is_not_null())
    return refused.group_by(*GROUP_QUEUE, "request_ts").agg(pl.len().cast(pl.Int64).alias("refused"))


def held_standstills(
    still: pl.DataFrame, refused_pulls: pl.DataFrame, owners: pl.DataFrame, stuck_s: int
) -> pl.DataFrame:
    """Return the spans of ``still`` in which members held the queue for at least ``stuck_s`` seconds.

    Columns: GROUP_QUEUE, from_ts, to_ts, ``offset``, ``waiting`` (messages after it), ``refused`` (pulls that a broker
    refused since the offset was set), ``held_ms`` (how long members held the queue). ``still`` is the frame of
    `standstill_spans`, ``refused_pulls`` the rows of `refused_pulls_of_shard` of all shards, ``owners``
    gold.queue_owner.
    """
    spans = still.join(owners, GROUP_QUEUE, how="semi").explode("spans").unnest("spans")
    held = _with_held_ms(spans, owners).filter(pl.col("held_ms") >= stuck_s * 1000)
    columns = ("from_ts", "to_ts", "offset", "waiting", "refused", "held_ms")
    return _with_refused(held, refused_pulls).select(*GROUP_QUEUE, *columns)


def _with_held_ms(spans: pl.DataFrame, owners: pl.DataFrame) -> pl.DataFrame:
    """Add ``held_ms``: how long members held the queue during each span; two members count twice.

    Until an instant the queue was held for the sum of (instant - start) over the intervals that began, less the sum of
    (instant - end) over those that ended. Running sums give both, without a join of spans and intervals.
    """
    intervals = owners.filter(pl.col("to_ts") > pl.col("from_ts"))
    edges = pl.concat(
        intervals.select(*GROUP_QUEUE, pl.col(edge).alias("at"), pl.lit(step, pl.Int64).alias("holders"))
        for edge, step in (("from_ts", 1), ("to_ts", -1))
    )
    steps = edges.with_columns(since_ms=pl.col("holders") * pl.col("at").dt.epoch("ms"))
    sums = ("holders", "since_ms")
    by_instant = steps.group_by(*GROUP_QUEUE, "at").agg(pl.col(sums).sum()).sort("at")
    sums_until = by_instant.with_columns(pl.col(sums).cum_sum().over(GROUP_QUEUE))

    def held_until(instant: str) -> pl.Series:
        asked = spans.select(*GROUP_QUEUE, instant)
        joined = as_of(asked, sums_until, GROUP_QUEUE, instant, {name: name for name in sums}, right_at="at")
        held_ms = pl.col("holders") * pl.col(instant).dt.epoch("ms") - pl.col("since_ms")
        return joined.select(held_ms.fill_null(0)).to_series()

    return spans.with_columns(held_ms=held_until("to_ts") - held_until("from_ts"))


def _with_refused(spans: pl.DataFrame, refused_pulls: pl.DataFrame) -> pl.DataFrame:
    """Add ``refused``: the number of refused pulls from ``since_ts`` to ``to_ts``, both included."""
    refused_until = refused_pulls.sort("request_ts").with_columns(pl.col("refused").cum_sum().over(GROUP_QUEUE))
    asked = spans.with_columns(before_ts=pl.col("since_ts") - pl.duration(microseconds=1))
    for instant, name in (("before_ts", "before"), ("to_ts", "until")):
        asked = as_of(asked, refused_until, GROUP_QUEUE, instant, {name: "refused"}, right_at="request_ts")
    refused = pl.col("until").fill_null(0) - pl.col("before").fill_null(0)
    return asked.with_columns(refused=refused).drop("before_ts", "before", "until")
