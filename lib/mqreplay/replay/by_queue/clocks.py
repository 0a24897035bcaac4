"""How far each client's clock is off the recorder's, commit by commit."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from mqreplay.replay.by_queue.columns import QueueEvents, starts
from mqreplay.replay.by_queue.events import COMMIT, PULL
from mqreplay.replay.nearest import NOWHERE, Numbers, common_codes, nearest

SCHEMA = "client_id STRING, off_ms BIGINT, commits BIGINT"


def clocks(events: QueueEvents) -> pa.Table:
    """client_id, ``off_ms`` (its word of a commit less the copy that first shows the offset), ``commits`` so far off.

    An offset that the master's file shows twice, since it fell in between, tells nothing.
    """
    shown, shown_at = _shown(events)
    said = _said_first(events)
    (of_said, of_shown) = common_codes(_place(events, said), _place(events, shown))
    place = nearest(of_said, np.zeros(len(said), np.int64), of_shown, np.zeros(len(shown), np.int64))
    met = np.flatnonzero(place != NOWHERE)
    off = events.known("at", said[met]) // 1000 - (shown_at[place[met]] // 1000 if len(shown) else 0)
    client = events.client_order[said[met]]
    order = np.lexsort((off, client))
    first = starts(client[order], off[order])
    count = np.diff(np.append(first, len(order)))
    return events.table(said[met][order[first]], ("client_id",), off_ms=off[order[first]], commits=count)


def _place(events: QueueEvents, rows: Numbers) -> list[pa.Array]:
    return [pa.array(events.key[rows]), pa.array(events.known("committed", rows))]


def _shown(events: QueueEvents) -> tuple[Numbers, Numbers]:
    """Of each queue, group and offset that the master's file rose to just once, the row, and when it was copied."""
    rows = events.changes
    broker_id, has_broker = events.numbers("broker_id", rows)
    new, has_new = events.numbers("committed", rows)
    old, has_old = events.numbers("previous_offset", rows)
    rows = rows[has_broker & (broker_id == 0) & has_new & has_old & (new > old)]
    rows = rows[np.lexsort((events.known("committed", rows), events.key[rows]))]
    first = starts(events.key[rows], events.known("committed", rows))
    once = first[np.diff(np.append(first, len(rows))) == 1]
    return rows[once], events.known("at", rows[once])


def _said_first(events: QueueEvents) -> Numbers:
    """Of each client, queue, group and offset the row of its first word of it, a commit or a pull that carries one."""
    offset, told = events.numbers("committed")
    rows = np.flatnonzero(((events.what == COMMIT) | (events.what == PULL)) & told & (offset > 0))
    rows = rows[np.lexsort((events.known("at", rows), offset[rows], events.by_client[rows]))]
    return rows[starts(events.by_client[rows], offset[rows])]
