"""gold.queue_progress: progress and lag of each group on each queue and broker in each hour."""

from __future__ import annotations

import numpy as np
import polars as pl
import pyarrow as pa

from mqreplay.evidence.arrays.distinct import common_codes
from mqreplay.evidence.arrays.frame_arrays import (
    INT64_MAX,
    INT64_MIN,
    NOWHERE,
    instants,
    lasts,
    less,
    maybe,
    runs,
    starts,
)
from mqreplay.evidence.arrays.nearest import nearest
from mqreplay.evidence.offsets.queue_ends import lag_of
from mqreplay.evidence.offsets.queue_events import QueueEvents

SCHEMA = (
    "broker_name STRING, broker_id BIGINT, topic STRING, consumer_group STRING, queue_id INT, hour TIMESTAMP, "
    "first_offset BIGINT, last_offset BIGINT, min_offset BIGINT, max_offset BIGINT, changes BIGINT, "
    "queue_max_offset BIGINT"
)
HOUR_US = 3_600_000_000  # microseconds
OFFSET_KEY = ("broker_name", "broker_id", "topic", "consumer_group", "queue_id")


def queue_progress(events: QueueEvents) -> pl.DataFrame:
    """Return the rows of gold.queue_progress of the shard's queues.

    The lag is that of the offset at the hour's end behind the last known end of the queue in the hour (`lag_of`).
    """
    rows = pl.DataFrame(hourly_progress(events))
    return rows.select(
        pl.col("hour").dt.date().alias("day"),
        "broker_name",
        "broker_id",
        "topic",
        "consumer_group",
        "queue_id",
        "hour",
        "first_offset",
        "last_offset",
        "min_offset",
        "max_offset",
        less("last_offset", "first_offset").alias("advance"),
        "changes",
        "queue_max_offset",
        lag_of("queue_max_offset", "last_offset"),
    )


def hourly_progress(events: QueueEvents) -> pa.Table:
    """Return one row per queue, group, broker and hour in which the offset changed (schema SCHEMA).

    ``queue_max_offset`` is the queue's last end in the hour, null if no master reported it.
    """
    rows = events.changes
    (file_key,) = common_codes([pa.array(events.key[rows]), pa.array(events.known("broker_id", rows))])
    at = events.known("at", rows)
    new, has_new = events.numbers("committed", rows)
    old, has_old = events.numbers("previous_offset", rows)
    order = np.lexsort((new, has_new, old, has_old, at, file_key))
    rows, at, file_key = rows[order], at[order], file_key[order]
    new, has_new, old, has_old = new[order], has_new[order], old[order], has_old[order]
    hour = at // HOUR_US
    first = starts(file_key, hour)
    last = lasts(first, len(rows))
    low, high = np.where(has_old, old, new), np.where(has_new, new, old)
    known = has_old | has_new
    least = np.minimum(low, high)
    most = np.maximum(low, high)
    least_of = runs(np.minimum, np.where(known, least, INT64_MAX), first)
    most_of = runs(np.maximum, np.where(known, most, INT64_MIN), first)
    any_known = runs(np.logical_or, known, first)
    ends, of_hour = events.ends, hour[first]
    end = nearest(events.queue[rows[first]], (of_hour + 1) * HOUR_US, ends.queue, ends.at)
    there = end != NOWHERE
    if len(ends.at):
        there &= (ends.at[end] >= of_hour * HOUR_US) & ends.has_high[end]
    return events.table(
        rows[first],
        OFFSET_KEY,
        hour=instants(of_hour * HOUR_US),
        first_offset=maybe(low[first], known[first]),
        last_offset=maybe(new[last], has_new[last]),
        min_offset=maybe(least_of, any_known),
        max_offset=maybe(most_of, any_known),
        changes=last - first + 1,
        queue_max_offset=maybe(ends.high[end] if len(ends.at) else end, there),
    )
