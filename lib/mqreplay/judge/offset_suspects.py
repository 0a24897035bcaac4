"""In which queues an offset may not simply have moved forwards: by the rules of offset_continuity, as a first sieve."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from mqreplay.judge.nearest import NOWHERE, Numbers, nearest, starts
from mqreplay.judge.queue_events import LEAST, Mask, QueueEvents, instants, lengths, one_later

GROUP_QUEUE = ("consumer_group", "broker_name", "topic", "queue_id")
SCHEMA = "consumer_group STRING, broker_name STRING, topic STRING, queue_id INT"
SKIP_SCHEMA = f"{SCHEMA}, skipped_from BIGINT, skipped_to BIGINT, ts TIMESTAMP"


def suspects(events: QueueEvents) -> pa.Table:
    """GROUP_QUEUE: queues whose offset fell, vanished, or stood outside of what masters told of the queue."""
    rows = events.changes
    new, has_new = events.numbers("committed", rows)
    old, has_old = events.numbers("previous_offset", rows)
    fell = ~has_new | (has_old & (new < old))
    at = events.known("at", rows)
    since, has_since = events.numbers("also_at", rows)
    ends, queue = events.ends, events.queue[rows]
    began = np.where(has_since, since, at)
    high, above = _told(queue, at, ends.queue, ends.at, ends.high, ends.has_high, "after")
    low, below = _told(queue, began, ends.queue, ends.at, ends.low, ends.has_low, "before")
    outside = (above & (new > high)) | (below & (new < low))
    found = rows[fell | outside]
    _, first = np.unique(events.key[found], return_index=True)
    return events.table(found[first], GROUP_QUEUE)


def _told(
    queue: Numbers, at: Numbers, of: Numbers, told_at: Numbers, value: Numbers, there: Mask, side: str
) -> tuple[Numbers, Mask]:
    rows = np.flatnonzero(there)
    # Of several words of one moment the strictest: lowest of ends, highest of beginnings.
    rows = rows[np.argsort(value[rows], kind="stable")]
    place = nearest(queue, at, of[rows], told_at[rows], side=side)
    if not len(rows):
        return np.zeros(len(queue), np.int64), np.zeros(len(queue), bool)
    return value[rows][place], place != NOWHERE


def skips(events: QueueEvents) -> pa.Table:
    """GROUP_QUEUE, ``skipped_from``, ``skipped_to`` (messages), ``ts``: pulls that begin past all the group was given.

    The first pull of a queue skips nothing: what the group was given before the recording is not known. Nor does a pull
    past the queue's end: it is corrected.
    """
    rows = events.pulls
    opaque, has_opaque = events.numbers("opaque", rows)
    at, key = events.known("at", rows), events.key[rows]
    rows = rows[np.lexsort((events.client_order[rows], opaque, has_opaque, at, key))]
    key, (begins, asks) = events.key[rows], events.numbers("queue_offset", rows)
    given, answered = events.numbers("next_begin_offset", rows)
    reaches = np.maximum(np.where(answered, given, LEAST), np.where(asks, begins, LEAST))
    reached = _running_most(key, reaches)
    most, told = events.numbers("max_offset", rows)
    skipped = np.flatnonzero(asks & told & (reached != LEAST) & (begins > reached) & (begins <= most))
    found = rows[skipped]
    return events.table(
        found,
        GROUP_QUEUE,
        skipped_from=reached[skipped],
        skipped_to=begins[skipped],
        ts=instants(events.known("at", found)),
    )


def _running_most(key: Numbers, values: Numbers) -> Numbers:
    """Of rows sorted by key: the most of the key's rows before each, LEAST for the first."""
    if not len(key):
        return values
    distinct, rank = np.unique(values, return_inverse=True)
    first = starts(key)
    run = np.repeat(np.arange(len(first)), lengths(first, len(key)))
    # Runs rise, so that no run's values are carried into the next.
    most = np.maximum.accumulate(run * (len(distinct) + 1) + rank) - run * (len(distinct) + 1)
    before = one_later(distinct[most])
    before[first] = LEAST
    return before
