"""How far each client's clock is off the recorder's, commit by commit."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from mqreplay.replay.by_queue.columns import QueueEvents, starts
from mqreplay.replay.by_queue.events import COMMIT, PULL
from mqreplay.replay.nearest import NOWHERE, Numbers, common_codes, nearest

SCHEMA = "client_id STRING, off_ms BIGINT, unsure_ms BIGINT, commits BIGINT"
COPY_MS = 5_000  # from a copy to the next, where they are made as they should be


def clocks(events: QueueEvents) -> pa.Table:
    """client_id, ``off_ms`` (its word of a commit less when the file took it), ``unsure_ms``, ``commits`` so far off.

    The file took it before the first copy that shows the offset and after the copy before; where these are further
    apart than COPY_MS the middle counts, and ``unsure_ms`` is how far it may be off. An offset that the master's file
    shows twice, since it fell in between, tells nothing.
    """
    shown = _shown(events)
    said = _said_first(events)
    (of_said, of_shown) = common_codes(_place(events, said), _place(events, shown))
    nothing = np.zeros(len(said), np.int64), np.zeros(len(shown), np.int64)
    place = nearest(of_said, nothing[0], of_shown, nothing[1])
    met = np.flatnonzero(place != NOWHERE)
    said, shown = said[met], shown[place[met]] if len(shown) else shown
    copied = events.known("at", shown) // 1000
    before, there = events.numbers("also_at", shown)
    unsure = np.maximum(np.where(there, copied - before // 1000, 0) - COPY_MS, 0) // 2
    off = events.known("at", said) // 1000 - (copied - unsure)
    client = events.client_order[said]
    order = np.lexsort((unsure, off, client))
    first = starts(client[order], off[order], unsure[order])
    count = np.diff(np.append(first, len(order)))
    one = order[first]
    return events.table(said[one], ("client_id",), off_ms=off[one], unsure_ms=unsure[one], commits=count)


def _place(events: QueueEvents, rows: Numbers) -> list[pa.Array]:
    return [pa.array(events.key[rows]), pa.array(events.known("committed", rows))]


def _shown(events: QueueEvents) -> Numbers:
    """Of each queue, group and offset that the master's file rose to just once, the row."""
    rows = events.changes
    broker_id, has_broker = events.numbers("broker_id", rows)
    new, has_new = events.numbers("committed", rows)
    old, has_old = events.numbers("previous_offset", rows)
    rows = rows[has_broker & (broker_id == 0) & has_new & has_old & (new > old)]
    rows = rows[np.lexsort((events.known("committed", rows), events.key[rows]))]
    first = starts(events.key[rows], events.known("committed", rows))
    return rows[first[np.diff(np.append(first, len(rows))) == 1]]


def _said_first(events: QueueEvents) -> Numbers:
    """Of each client, queue, group and offset the row of its first word of it, a commit or a pull that carries one."""
    offset, told = events.numbers("committed")
    rows = np.flatnonzero(((events.what == COMMIT) | (events.what == PULL)) & told & (offset > 0))
    rows = rows[np.lexsort((events.known("at", rows), offset[rows], events.by_client[rows]))]
    return rows[starts(events.by_client[rows], offset[rows])]
