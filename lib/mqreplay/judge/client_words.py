"""How far each client's clock is off the recorder's, copy by copy of the master's file."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from mqreplay.core.client_clock import USUAL_MS
from mqreplay.judge.nearest import NOWHERE, Numbers, nearest, ranks, starts
from mqreplay.judge.queue_events import COMMIT, PULL, Mask, QueueEvents, lasts, one_later

SCHEMA = "client_id STRING, said_ms BIGINT, shown_ms BIGINT, off_ms BIGINT, unsure_ms BIGINT"


def clocks(events: QueueEvents) -> pa.Table:
    """Of each client and each rise of an offset in the master's file the client's last word that the rise contains.

    client_id, ``said_ms`` (by the client's clock), ``shown_ms`` (of the copy), ``off_ms`` (its clock less the
    recorder's, by this word), ``unsure_ms`` (how far that may be off).

    The master's file took a commit after the copy before the first that shows its offset or a later one, and a pull
    only repeats what was committed since the client's word before. Where these are further apart than USUAL_MS the
    middle counts. Offsets that the file passed more than once, as after a reset, tell nothing.
    """
    risen, low = _rises(events)
    said, since = _first_words(events)
    of, offset = events.key[said], events.known("committed", said)
    rise = nearest(of, offset, events.key[risen], events.known("committed", risen), side="after")
    met = np.flatnonzero(rise != NOWHERE)
    met = met[low[rise[met]] < offset[met]] if len(risen) else met
    met = met[np.lexsort((offset[met], rise[met], events.by_client[said[met]]))]
    met = met[lasts(starts(events.by_client[said[met]], rise[met]), len(met))]
    said, since, shown = said[met], since[met], risen[rise[met]] if len(risen) else risen
    at, copied = events.known("at", said) // 1000, events.known("at", shown) // 1000
    before, there = events.numbers("also_at", shown)
    of_copy = _half_of_more(np.where(there, copied - before // 1000, 0))
    of_word = _half_of_more(at - since // 1000)
    off, unsure = (at - of_word) - (copied - of_copy), of_copy + of_word
    return events.table(said, ("client_id",), said_ms=at, shown_ms=copied, off_ms=off, unsure_ms=unsure)


def _half_of_more(ms: Numbers) -> Numbers:
    return np.maximum(ms - USUAL_MS, 0) // 2


def _rises(events: QueueEvents) -> tuple[Numbers, Numbers]:
    """Changes of masters' files by which an offset rose to where it never was before or after, and from where."""
    rows = events.changes
    new, has_new = events.numbers("committed", rows)
    old, has_old = events.numbers("previous_offset", rows)
    _, has_before = events.numbers("also_at", rows)
    told = np.flatnonzero(events.of_master[rows] & has_new & (has_old | has_before))
    rows, new, old = rows[told], new[told], old[told]  # an entry that was not there is as good as 0
    low, high = np.where(new > old, old, new - 1), np.maximum(new, old)
    alone = _alone(events.key[rows], low, high) & (new > old)
    return rows[alone], old[alone]


def _alone(key: Numbers, low: Numbers, high: Numbers) -> Mask:
    """Whether each range, without its low end, meets no other of its key."""
    low_rank, high_rank = np.split(ranks(np.tile(key, 2), np.concatenate([low, high])), 2)
    order = np.argsort(low_rank, kind="stable")
    begin, end = low_rank[order], np.maximum.accumulate(high_rank[order])
    found = np.ones(len(key), bool)
    meets = np.flatnonzero(begin[1:] < end[:-1])
    found[order[meets + 1]] = False
    found[order[meets[begin[meets + 1] < high_rank[order][meets]]]] = False
    return found


def _first_words(events: QueueEvents) -> tuple[Numbers, Numbers]:
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
    first = first[goes_on[first]]  # a client's first word may repeat what is long past
    return rows[first], since[first]
