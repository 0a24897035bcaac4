"""Match the text of a log message."""

from __future__ import annotations

import re

from mqreplay.errors import DecodeError


def matched(pattern: re.Pattern[str], message: str) -> re.Match[str]:
    """Return the match of a whole message.

    Raises:
        DecodeError: the message is cut, or none of RocketMQ's.

    >>> matched(re.compile("stopped (.+)"), "stopped broker-a")[1]
    'broker-a'
    """
    match = pattern.fullmatch(message)
    if match is None:
        raise DecodeError("bad_message", f"cut, or not RocketMQ's: {message[:100]!r}")
    return match
