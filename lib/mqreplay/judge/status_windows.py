"""Burrow's windows of each queue and group, by the law's twin in status_arrow.py."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from mqreplay.judge.nearest import Numbers, starts
from mqreplay.judge.queue_events import COMMIT, KEY, QueueEvents, lasts, runs, spread
from mqreplay.judge.status_arrow import status_windows_arrow

WINDOW = (
    "STRUCT<window_end_ms: BIGINT, status: STRING, lag: BIGINT, time_lag_ms: DOUBLE, commits: INT, "
    "committed_offset: BIGINT>"
)
SCHEMA = f"consumer_group STRING, topic STRING, broker_name STRING, queue_id INT, source STRING, w ARRAY<{WINDOW}>"


def windows(events: QueueEvents, window_s: int, until_ms: int) -> pa.Table:
    """One row a queue and group that committed: ``w``, its windows until ``until_ms``; of SCHEMA's columns.

    ``source`` is where its commits are told.
    """
    counts, _ = events.numbers("counts")
    rows = np.flatnonzero(counts)
    offset, ts = events.known("committed", rows), events.known("at", rows) // 1000
    key = events.key[rows]
    order = np.lexsort((offset, ts, key))
    rows, offset, ts, key = rows[order], offset[order], ts[order], key[order]
    first = starts(key)
    own = rows[first]
    heads = _heads(events, events.queue[own])
    length = pa.array(np.full(len(own), window_s * 1000, np.int64))
    until = pa.array(np.full(len(own), until_ms, np.int64))
    bounds = np.append(first, len(rows))
    found = status_windows_arrow(_lists(bounds, ts), _lists(bounds, offset), *heads, length, until)
    source = pa.array(np.where(events.what[own] == COMMIT, "offset_commit", "offset_change"))
    return events.table(own, KEY, source=source, w=found)


def _heads(events: QueueEvents, queue: Numbers) -> tuple[pa.Array, pa.Array]:
    """Instants (ms) and ends of those queues, oldest first.

    Of ends that do not move one of each second is enough: flat runs keep two points anyway.
    """
    ends = events.ends
    told = np.flatnonzero(ends.has_high)
    of, ts, high = ends.queue[told], ends.at[told] // 1000, ends.high[told]
    first = starts(of, ts // 1000)
    of, ts, high = of[first], ts[lasts(first, len(ts))], runs(np.maximum, high, first)
    begin, end = np.searchsorted(of, queue, "left"), np.searchsorted(of, queue, "right")
    count = end - begin
    bounds = np.append(0, np.cumsum(count))
    place = spread(begin, count)
    return _lists(bounds, ts[place]), _lists(bounds, high[place])


def _lists(bounds: Numbers, values: Numbers) -> pa.Array:
    return pa.ListArray.from_arrays(pa.array(bounds.astype(np.int32)), pa.array(values, pa.int64()))
