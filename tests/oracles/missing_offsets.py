"""Messages that a slave's copy of an offset lacks, by minute: they would be delivered again after a failover.

Not a rule of RocketMQ, but of mqreplay: SlaveSynchronize copies the master's offsets now and then, and a consumer that
asks the slave for its offset begins at the copy.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from oracles.offset_evidence import COUNTLESS, OffsetChange

MINUTE_US = 60_000_000


class MinuteOfCopy(NamedTuple):
    """The increase of a copy's missing messages in the minute that begins at ``minute`` (epoch us).

    ``messages``: how many more messages the copy lacks at the minute's end than at the end of the minute before;
    ``unknown``: 1 if that number becomes unknown, -1 if it is known again, else 0. Both can be summed over queues and
    minutes.
    ``of_master``, ``of_slave``: whether that broker's file changes in the minute.
    """

    minute: int
    messages: int
    unknown: int
    of_master: bool
    of_slave: bool


def missing_by_minute(
    master_changes: Iterable[OffsetChange], slave_changes: Iterable[OffsetChange]
) -> list[MinuteOfCopy]:
    """Return each minute in which the offset of one queue and group changes in the master's or in one slave's file.

    Oldest first; instants epoch us, offsets messages; the changes of a file in any order, of one instant the last in
    this order counts. A copy lacks nothing if it is not below the master's. The number is unknown if one of both has no
    offset, or if they differ by more than 2**53 messages: such an offset was set from outside. No method of RocketMQ:
    mqreplay's own rule.

    >>> master = [OffsetChange(None, 1_000_000, None, 9), OffsetChange(1_000_000, 61_000_000, 9, 12)]
    >>> minutes = missing_by_minute(master, [OffsetChange(None, 30_000_000, None, 4)])
    >>> [(minute.minute, minute.messages, minute.unknown, minute.of_slave) for minute in minutes]
    [(0, 5, 0, True), (60000000, 3, 0, False)]
    """
    changes = [(change.to_ts, True, change.new_offset) for change in master_changes]
    changes += [(change.to_ts, False, change.new_offset) for change in slave_changes]
    minutes: dict[int, list[tuple[bool, int | None]]] = {}
    for ts, of_master, offset in sorted(changes, key=lambda change: change[0]):
        minutes.setdefault(ts // MINUTE_US * MINUTE_US, []).append((of_master, offset))
    found: list[MinuteOfCopy] = []
    offsets: dict[bool, int | None] = {True: None, False: None}
    before = (0, 0)
    for minute, of_minute in minutes.items():
        offsets.update(of_minute)
        messages, unknown = now = missing_messages(offsets[True], offsets[False])
        files = {of_master for of_master, _ in of_minute}
        found.append(MinuteOfCopy(minute, messages - before[0], unknown - before[1], True in files, False in files))
        before = now
    return found


def missing_messages(master_offset: int | None, slave_offset: int | None) -> tuple[int, int]:
    """Return (messages that the slave's copy lacks, 1 if that is unknown); offsets in messages, None: no entry.

    No method of RocketMQ: mqreplay's own rule.

    >>> missing_messages(9, 4), missing_messages(4, 9), missing_messages(9, None), missing_messages(None, None)
    ((5, 0), (0, 0), (0, 1), (0, 0))
    >>> missing_messages(2**63 - 1, 4)
    (0, 1)
    """
    if master_offset is None or slave_offset is None:
        return 0, int(master_offset is not slave_offset)
    missing = max(master_offset - slave_offset, 0)
    return (missing, 0) if missing <= COUNTLESS else (0, 1)
