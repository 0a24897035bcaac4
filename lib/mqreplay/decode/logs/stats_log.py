"""stats.log: lag of a group's reads in bytes and time. Source: BrokerStatsManager, MomentStatsItem."""

from __future__ import annotations

import re
from typing import Final, Literal, NamedTuple

from mqreplay.decode.fields import INT_MAX
from mqreplay.decode.logs.java_text import NAME, long_of
from mqreplay.errors import DecodeError


class FallBehind(NamedTuple):
    """The lag at the group's last pull of a queue: bytes (size) or ms (time) behind the log's end."""

    measure: Literal["size", "time"]
    group: str
    topic: str
    queue_id: int
    value: int


STARTS: Final = ("[GROUP_GET_FALL_",)
_FALL: Final = re.compile(
    rf"\[GROUP_GET_FALL_(SIZE|TIME)\] \[(-?\d{{1,10}})@([^\s,@\]]{{1,255}})@({NAME})\] "
    r"Stats Every 5 Minutes, Value: (-?\d{1,19})",
    re.ASCII | re.DOTALL,
)


def read_fall_behind(message: str) -> FallBehind | None:
    """Return a group's distance from the end of the log in a message of stats.log; None for any other message.

    Raises:
        DecodeError: bad_message, bad_number.

    >>> read_fall_behind("[GROUP_GET_FALL_SIZE] [1@bulk-topic@bulk-group] Stats Every 5 Minutes, Value: 64859")
    FallBehind(measure='size', group='bulk-group', topic='bulk-topic', queue_id=1, value=64859)
    """
    if not message.startswith(STARTS):
        return None
    match = _FALL.fullmatch(message)
    if match is None:
        raise DecodeError("bad_message", f"cut, or not RocketMQ's: {message[:100]!r}")
    queue_id, value = int(match[2]), long_of(match[5], "Value")
    if not 0 <= queue_id <= INT_MAX:
        raise DecodeError("bad_number", f"queueId should be 0 to {INT_MAX}, and is {queue_id}")
    return FallBehind("size" if match[1] == "SIZE" else "time", match[4], match[3], queue_id, value)
