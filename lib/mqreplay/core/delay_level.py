"""Delay levels: the delay of a message of level N.

A broker has no arbitrary delays (before 5.0's timer), only numbered levels, set by messageDelayLevel. A
message with a level above 0 is stored in SCHEDULE_TOPIC_XXXX, one queue a level, and moved to its own topic
when its time is up. Follows org.apache.rocketmq.store.schedule.ScheduleMessageService and
CommitLog#asyncPutMessage.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from mqreplay.core.java import split_on_char, to_int, to_long
from mqreplay.core.java_numbers import parse_long
from mqreplay.words.errors import NumberFormat

DEFAULT_MESSAGE_DELAY_LEVEL = "1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h"
SCHEDULE_TOPIC = "SCHEDULE_TOPIC_XXXX"

_UNIT_MS = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


class DelayLevels(NamedTuple):
    """messageDelayLevel as a broker read it.

    ``ok`` is False where the broker refused to start on it; ``delay_level_table`` is level -> ms, as far as
    it was read; ``max_delay_level`` may then name a level that is not in the table.
    """

    ok: bool
    delay_level_table: Mapping[int, int]
    max_delay_level: int


def parse_delay_level(message_delay_level: str = DEFAULT_MESSAGE_DELAY_LEVEL) -> DelayLevels:
    """Parse the setting messageDelayLevel: numbers with the units s, m, h or d, separated by single spaces.

    Reading stops at the first part that is none; the levels before it stay. Blanks at the end do no harm,
    two in a row do. Negative and zero delays are taken. ScheduleMessageService#parseDelayLevel.

    >>> parse_delay_level("1s 5m"), parse_delay_level("1s 2x").ok
    (DelayLevels(ok=True, delay_level_table={1: 1000, 2: 300000}, max_delay_level=2), False)
    """
    table: dict[int, int] = {}
    max_delay_level = 0
    for level, value in enumerate(split_on_char(message_delay_level, " "), start=1):
        if not value:
            return DelayLevels(False, table, max_delay_level)
        max_delay_level = level
        try:
            num = parse_long(value[:-1])
        except NumberFormat:
            return DelayLevels(False, table, max_delay_level)
        unit = _UNIT_MS.get(value[-1])
        if unit is None:
            return DelayLevels(False, table, max_delay_level)
        table[level] = to_long(unit * num)
    return DelayLevels(True, table, max_delay_level)


def compute_deliver_timestamp(delay_level: int, store_timestamp: int, delay_level_table: Mapping[int, int]) -> int:
    """Return when a delayed message is due, in epoch ms (ScheduleMessageService#computeDeliverTimestamp).

    ``store_timestamp`` in epoch ms; ``delay_level_table`` level -> ms. An unknown level is due after one
    second.

    >>> compute_deliver_timestamp(2, 1_000, {2: 5_000}), compute_deliver_timestamp(9, 1_000, {2: 5_000})
    (6000, 2000)
    """
    return to_long(store_timestamp + delay_level_table.get(delay_level, 1_000))


def delay_level_to_queue_id(delay_level: int) -> int:
    """Return the queue of SCHEDULE_TOPIC_XXXX for a level (ScheduleMessageService#delayLevel2QueueId).

    >>> delay_level_to_queue_id(3)
    2
    """
    return to_int(delay_level - 1)


def queue_id_to_delay_level(queue_id: int) -> int:
    """Return the level of a queue of SCHEDULE_TOPIC_XXXX (ScheduleMessageService#queueId2DelayLevel).

    >>> queue_id_to_delay_level(2)
    3
    """
    return to_int(queue_id + 1)


def stored_delay_level(delay_time_level: int, max_delay_level: int) -> int:
    """Return the level with which a message is stored: never above the highest (CommitLog#asyncPutMessage).

    0 or less: it is not delayed, and goes to its own topic at once. So a retry past the last level waits
    the longest delay again and again.

    >>> stored_delay_level(19, 18), stored_delay_level(3, 18), stored_delay_level(-1, 18)
    (18, 3, 0)
    """
    return min(delay_time_level, max_delay_level) if delay_time_level > 0 else 0
