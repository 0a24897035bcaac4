"""What a slave's copy of the offsets lacked, minute by minute: delivered again if the slave were read instead."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from mqreplay.judge.both_files import BothFiles, last_such
from mqreplay.judge.nearest import NOWHERE, Numbers, starts
from mqreplay.judge.queue_events import Mask, instants, lasts, lists, one_later, runs
from mqreplay.judge.saturating import COUNTLESS

MINUTE = 60_000_000  # microseconds
ITEM = "STRUCT<minute: TIMESTAMP, messages: BIGINT, unknown: BIGINT, of_master: BOOLEAN, of_slave: BOOLEAN>"


def lacking(copies: BothFiles) -> pa.ListArray:
    """Of each copy the minutes in which it or the master's file changed, as ITEM.

    ``messages`` that the copy lacked at the minute's end, and whether that is ``unknown`` (1: one of the files has no
    offset, or one that somebody set), less what it was after the minute before: what adds up over queues and minutes.
    ``of_master``, ``of_slave``: whose file changed.
    """
    messages, unknown = _standing(copies)
    minute = copies.at // MINUTE
    first = starts(copies.copy, minute)
    last = lasts(first, len(minute))
    goes_on = one_later(copies.copy[first], NOWHERE) == copies.copy[first]
    fields = {
        "minute": instants(minute[first] * MINUTE),
        "messages": pa.array(_risen(messages[last], goes_on)),
        "unknown": pa.array(_risen(unknown[last], goes_on)),
        "of_master": pa.array(runs(np.logical_or, copies.of_master, first)),
        "of_slave": pa.array(runs(np.logical_or, ~copies.of_master, first)),
    }
    return lists(np.append(np.flatnonzero(~goes_on), len(first)), fields)


def _standing(copies: BothFiles) -> tuple[Numbers, Numbers]:
    """After each row: messages that the slave's copy lacks, and 1 where that is not known."""
    held, is_held = _last_offset(copies, copies.of_master)
    copied, is_copied = _last_offset(copies, ~copies.of_master)
    more = is_held & is_copied & (held > copied)
    lacks = held - copied
    # A number that somebody set counts no messages; below 0 is what no bigint holds.
    far = more & ((lacks > COUNTLESS) | (lacks < 0))
    return np.where(more & ~far, lacks, 0), ((is_held != is_copied) | far).astype(np.int64)


def _last_offset(copies: BothFiles, such: Mask) -> tuple[Numbers, Mask]:
    offset, there = copies.offset
    row = last_such(such, copies.first)
    return offset[row], there[row] & (row != NOWHERE)


def _risen(values: Numbers, goes_on: Mask) -> Numbers:
    """Each less the one before it, where it goes on from that."""
    return values - np.where(goes_on, one_later(values), 0)
