"""Burrow's windows of each queue and group: core's status_windows on whole Arrow columns, for many short queues.

Measured (tools/bench/bind_faces.py --queues 2000: 308 thousand windows, 11.5 million ends): core takes 9.4 s of
processor time, 15.5 s with Arrow around it, and this module 0.33 s.

tests/bind/test_status_columns.py compares it with core. The rules are in status_arrays; this module converts rows to
its arrays, and its arrays to an Arrow list of structs.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mqreplay.core import status_windows as law
from mqreplay.core.status_windows import STATUSES
from mqreplay.decisions.status_arrays import (
    LIMIT,
    MOST_NUMBERED,
    UNKNOWN_LAG,
    Ints,
    Lists,
    Mask,
    Windows,
    first_windows,
    sums,
)
from mqreplay.decisions.status_arrays import windows as windows_of
from mqreplay.evidence.arrays.frame_arrays import Numbers, lasts, runs, spread, starts
from mqreplay.evidence.offsets.queue_events import COMMIT_ROW, QueueEvents
from mqreplay.words.keys import GROUP_QUEUE

WINDOWS = pa.list_(
    pa.field(
        "element",  # Spark's name for list items
        pa.struct(
            [
                ("window_end_ms", pa.int64()),
                ("status", pa.string()),
                ("lag", pa.int64()),
                ("time_lag_ms", pa.float64()),
                ("commits", pa.int32()),
                ("committed_offset", pa.int64()),
            ]
        ),
    )
)
# Commits, ends and windows processed together: a size that fits a processor's cache is fastest.
PIECE = 1 << 17
assert PIECE <= MOST_NUMBERED


def windows(events: QueueEvents, window_s: int, until_ms: int) -> pa.Table:
    """Return one row per queue and group with commits.

    Columns: consumer_group, topic, broker_name, queue_id, source (the table of its commits), w (its windows until
    ``until_ms``).

    ``source`` is the table of its commits.
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
    found = status_windows_arrow(_list_column(bounds, ts), _list_column(bounds, offset), *heads, length, until)
    source = pa.array(np.where(events.what[own] == COMMIT_ROW, "offset_commit", "offset_change"))
    return events.table(own, GROUP_QUEUE, source=source, w=found)


def _heads(events: QueueEvents, queue: Numbers) -> tuple[pa.Array, pa.Array]:
    """Return instants (ms) and ends of these queues, oldest first.

    Of constant ends one per second is enough: flat runs keep two points anyway.
    """
    ends = events.ends
    known = np.flatnonzero(ends.has_high)
    of, ts, high = ends.queue[known], ends.at[known] // 1000, ends.high[known]
    first = starts(of, ts // 1000)
    of, ts, high = of[first], ts[lasts(first, len(ts))], runs(np.maximum, high, first)
    begin, end = np.searchsorted(of, queue, "left"), np.searchsorted(of, queue, "right")
    count = end - begin
    bounds = np.append(0, np.cumsum(count))
    place = spread(begin, count)
    return _list_column(bounds, ts[place]), _list_column(bounds, high[place])


def _list_column(bounds: Numbers, values: Numbers) -> pa.Array:
    return pa.ListArray.from_arrays(pa.array(bounds.astype(np.int32)), pa.array(values, pa.int64()))


def status_windows_arrow(
    commit_ts: pa.Array,
    commit_offset: pa.Array,
    head_ts: pa.Array,
    head_offset: pa.Array,
    window_ms: pa.Array,
    until_ms: pa.Array,
) -> pa.Array:
    """Return core's status_windows of each row; null if an argument is; ValueError if a time lacks its offset.

    Rows that the arrays do not support go to core. No night has such rows: times that do not increase, two ends at one
    time, numbers of 2**44 and more.
    """
    columns = [commit_ts, commit_offset, head_ts, head_offset, window_ms, until_ms]
    odd = _odd_rows(columns)
    if not odd.any():
        return _by_arrays(columns)
    rows = np.argsort(odd, kind="stable")  # unsupported rows last
    regular, rest = np.split(rows, [np.count_nonzero(~odd)])
    found = [_by_arrays(_taken(columns, regular)), _by_the_law(_taken(columns, rest))]
    return pa.concat_arrays(found).take(pa.array(np.argsort(rows)))


def _taken(columns: Sequence[pa.Array], rows: Ints) -> list[pa.Array]:
    return [column.take(pa.array(rows)) for column in columns]


def _by_the_law(columns: Sequence[pa.Array]) -> pa.Array:
    rows = zip(*(column.to_pylist() for column in columns), strict=True)
    return pa.array([None if None in row else law.status_windows(*row) for row in rows], WINDOWS)


def _odd_rows(columns: Sequence[pa.Array]) -> Mask:
    commit_ts, commit_offset, head_ts, head_offset, window, until = columns
    odd = ~_within(_values(window)) | ~_within(_values(until)) | (_values(window) <= 0)
    for ts, offset, least_step in ((commit_ts, commit_offset, 0), (head_ts, head_offset, 1)):
        for column in (ts, offset):
            odd |= column.is_null().to_numpy(zero_copy_only=False)
            odd[_rows_of(column, ~_within(_values(column.values)))] = True
        odd |= np.diff(_bounds(ts)) != np.diff(_bounds(offset))
        times, firsts = _values(ts.values), _bounds(ts)[:-1]
        falls = np.zeros(len(times), dtype=bool)
        falls[1:] = times[1:] < times[:-1] + least_step
        falls[firsts[firsts < len(times)]] = False
        odd[_rows_of(ts, falls)] = True
    return odd


def _within(values: Ints) -> Mask:
    return (values > -LIMIT) & (values < LIMIT)


def _rows_of(column: pa.Array, items: Mask) -> Ints:
    """Return the rows of these items of a list column; some items of a slice are in none."""
    bounds, places = _bounds(column), np.flatnonzero(items)
    places = places[(places >= bounds[0]) & (places < bounds[-1])]
    return np.searchsorted(bounds, places, side="right") - 1


def _values(column: pa.Array) -> Ints:
    """Return the values, with null as a number above the limit, so that such rows go to core."""
    values = column.cast(pa.int64())
    return (pc.fill_null(values, LIMIT) if values.null_count else values).to_numpy()


def _bounds(column: pa.Array) -> Ints:
    return column.offsets.to_numpy().astype(np.int64)


def _by_arrays(columns: Sequence[pa.Array]) -> pa.Array:
    commits, heads = (_lists(*columns[first : first + 2]) for first in (0, 2))
    length, until = map(_values, columns[4:])
    _, number = first_windows(commits, length, until)
    # Plus one for the row itself: a piece has no more rows than items.
    before = sums(1 + np.diff(commits.bounds) + np.diff(heads.bounds) + number)[:-1]
    cuts = np.flatnonzero(np.diff(before // PIECE)) + 1
    spans = pairwise([0, *cuts.tolist(), len(length)])
    return pa.concat_arrays(
        [_windows_column(windows_of(commits.part(a, b), heads.part(a, b), length[a:b], until[a:b])) for a, b in spans]
    )


def _lists(ts: pa.Array, offset: pa.Array) -> Lists:
    bounds = _bounds(ts)
    return Lists(bounds - bounds[0], _values(ts.flatten()), _values(offset.flatten()))


def _windows_column(found: Windows) -> pa.Array:
    statuses = pa.array(STATUSES).take(pa.array(found.status, mask=found.status == UNKNOWN_LAG))
    fields = [
        pa.array(found.end),
        statuses,
        pa.array(found.lag, mask=found.lag == UNKNOWN_LAG),
        pa.array(found.time_lag_ms, mask=np.isnan(found.time_lag_ms)),
        pa.array(found.commits.astype(np.int32)),
        pa.array(found.committed_offset),
    ]
    structs = pa.StructArray.from_arrays(fields, fields=list(WINDOWS.value_type))
    return pa.ListArray.from_arrays(pa.array(found.bounds.astype(np.int32)), structs, type=WINDOWS)
