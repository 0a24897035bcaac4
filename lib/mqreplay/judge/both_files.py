"""A queue's changes in the master's file and in a slave's, side by side: once for each slave of the broker name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from mqreplay.judge.nearest import NOWHERE, Numbers, common_codes, starts
from mqreplay.judge.queue_events import LEAST, Mask, QueueEvents, lengths, spread

Copied = Mapping[str, Mapping[int, int]]  # broker name -> broker id -> when its file was last copied, microseconds


@dataclass(frozen=True)
class BothFiles:
    """Changes of two files of one broker name, by queue, group and slave, and there in the order of time.

    ``row`` is the row of ``events``; ``copy`` a number for queue, group and slave; ``last`` when the slave's file was
    last copied (microseconds), told in the master's rows.
    """

    events: QueueEvents
    row: Numbers
    slave: Numbers
    copy: Numbers
    of_master: Mask
    last: Numbers

    @cached_property
    def first(self) -> Numbers:
        """The first row of each copy."""
        return starts(self.copy)

    @cached_property
    def at(self) -> Numbers:
        """When the file was copied that first showed the row's offset, in microseconds."""
        return self.events.known("at", self.row)

    @cached_property
    def offset(self) -> tuple[Numbers, Mask]:
        """The offset, and whether there is one."""
        return self.events.numbers("committed", self.row)


def both_files(events: QueueEvents, slaves: Copied) -> BothFiles:
    """Of the broker names that have ``slaves``; a slave's own broker id is not 0."""
    rows = events.changes
    of_name, names = events.names
    listed = [sorted(slaves.get(name, {}).items()) for name in names]
    count = np.array([len(of_one) for of_one in listed], np.int64)
    ids, copied = (np.array([pair[i] for of_one in listed for pair in of_one], np.int64) for i in (0, 1))
    held = rows[events.of_master[rows]]
    times = count[of_name[held]]
    place = spread((np.cumsum(count) - count)[of_name[held]], times)
    held = np.repeat(held, times)
    broker_id, told = events.numbers("broker_id", rows)
    of_slave = told & (broker_id > 0)
    row, slave = np.append(held, rows[of_slave]), np.append(ids[place], broker_id[of_slave])
    last = np.append(copied[place], np.full(of_slave.sum(), LEAST))
    of_master = np.arange(len(row)) < len(held)
    (copy,) = common_codes([pa.array(events.key[row]), pa.array(slave)])
    order = np.lexsort((of_master, events.known("at", row), copy))
    return BothFiles(events, row[order], slave[order], copy[order], of_master[order], last[order])


def last_such(such: Mask, first: Numbers) -> Numbers:
    """Of rows in runs that begin with ``first``: the last row of the run up to each that is such, or NOWHERE."""
    last = np.maximum.accumulate(np.where(such, np.arange(len(such)), NOWHERE))
    return np.where(last >= np.repeat(first, lengths(first, len(such))), last, NOWHERE)
