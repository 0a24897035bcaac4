"""How far each client's clock is off the recorder's, commit by commit."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from mqreplay.replay.by_queue.columns import QueueEvents, lengths, one_later
from mqreplay.replay.by_queue.events import COMMIT, PULL
from mqreplay.replay.nearest import NOWHERE, Numbers, common_codes, nearest, starts

SCHEMA = "client_id STRING, off_ms BIGINT, unsure_ms BIGINT, commits BIGINT"
USUAL_MS = 5_000  # from a copy or a commit to the next


def clocks(events: QueueEvents) -> pa.Table:
    """client_id, ``off_ms`` (its clock less the recorder's, by a commit), ``unsure_ms``, ``commits`` that say so.

    The master's file took a commit after the copy before the first that shows the offset, and a pull only repeats what
    was committed since the client's word before. Where these are further apart than USUAL_MS the middle counts, and
    ``unsure_ms`` is how far it may be off. An offset that the file shows twice tells nothing.
    """
    shown = _shown(events)
    said, since = _said_first(events)
    (of_said, of_shown) = common_codes(_place(events, said), _place(events, shown))
    place = nearest(of_said, np.zeros(len(said), np.int64), of_shown, np.zeros(len(shown), np.int64))
    met = np.flatnonzero(place != NOWHERE)
    said, since, shown = said[met], since[met], shown[place[met]] if len(shown) else shown
    at, copied = events.known("at", said) // 1000, events.known("at", shown) // 1000
    before, there = events.numbers("also_at", shown)
    of_copy = _half_of_more(np.where(there, copied - before // 1000, 0))
    of_word = _half_of_more(at - since // 1000)
    off, unsure = (at - of_word) - (copied - of_copy), of_copy + of_word
    client = events.client_order[said]
    order = np.lexsort((unsure, off, client))
    first = starts(client[order], off[order], unsure[order])
    count = lengths(first, len(order))
    one = order[first]
    return events.table(said[one], ("client_id",), off_ms=off[one], unsure_ms=unsure[one], commits=count)


def _half_of_more(ms: Numbers) -> Numbers:
    return np.maximum(ms - USUAL_MS, 0) // 2


def _place(events: QueueEvents, rows: Numbers) -> list[pa.Array]:
    return [pa.array(events.key[rows]), pa.array(events.known("committed", rows))]


def _shown(events: QueueEvents) -> Numbers:
    """Of each queue, group and offset that the master's file rose to just once, the row."""
    rows = events.changes
    new, has_new = events.numbers("committed", rows)
    old, has_old = events.numbers("previous_offset", rows)
    rows = rows[events.of_master[rows] & has_new & has_old & (new > old)]
    rows = rows[np.lexsort((events.known("committed", rows), events.key[rows]))]
    first = starts(events.key[rows], events.known("committed", rows))
    return rows[first[lengths(first, len(rows)) == 1]]


def _said_first(events: QueueEvents) -> tuple[Numbers, Numbers]:
    """Of each client, queue, group and offset the row of its first word of it, and since when it may have been so.

    A commit says when it is; a pull, by which a client repeats what it committed, only that it was since its last word.
    """
    offset, told = events.numbers("committed")
    rows = np.flatnonzero(((events.what == COMMIT) | (events.what == PULL)) & told & (offset > 0))
    rows = rows[np.lexsort((events.what[rows], events.known("at", rows), events.by_client[rows]))]
    at, client, is_commit = events.known("at", rows), events.by_client[rows], events.what[rows] == COMMIT
    goes_on = one_later(client, NOWHERE) == client
    since = np.where(is_commit | ~goes_on, at, one_later(at))
    order = np.lexsort((np.arange(len(rows)), offset[rows], client))
    first = order[starts(client[order], offset[rows][order])]
    first = first[is_commit[first] | goes_on[first]]  # a client's first word may repeat what is long past
    return rows[first], since[first]
