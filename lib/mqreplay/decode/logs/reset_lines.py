"""Lines of broker.log about resets of consumer offsets: who asked for one, and what became of it.

Sources: AdminBrokerProcessor#resetOffset, AdminBrokerProcessor#resetOffsetInner (5.x), Broker2Client#resetOffset.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from mqreplay.decode.body import body_of
from mqreplay.decode.logs.broker_facts import ResetDone, ResetRefused, ResetSent, ResetStarted
from mqreplay.decode.logs.java_text import NAME, long_of
from mqreplay.decode.logs.message_text import matched
from mqreplay.decode.server_requests import reset_offsets_of
from mqreplay.errors import DecodeError

Reset = ResetStarted | ResetSent | ResetDone | ResetRefused
_FLAGS: Final = re.ASCII | re.DOTALL
_TOPIC_GROUP: Final = rf"topic=({NAME}), group=({NAME})"
_STARTED: Final = re.compile(
    rf"\[reset-offset\] reset offset started by /?({NAME})\. {_TOPIC_GROUP}, "
    r"timestamp=(-?\d{1,19}), isForce=(true|false)",
    _FLAGS,
)
_SENT: Final = re.compile(rf"\[reset-offset\] reset offset success\. {_TOPIC_GROUP}, clientId=({NAME})", _FLAGS)
_DONE: Final = re.compile(rf"Reset offset, {_TOPIC_GROUP}, queues=(\{{.*\}})", _FLAGS)
_NO_TOPIC: Final = re.compile(
    rf"\[reset-offset\] reset offset failed, no topic in this broker\. topic=({NAME})", _FLAGS
)
_NOT_SENT: Final = re.compile(rf"\[reset-offset\] reset offset exception\. {_TOPIC_GROUP}\b.*", _FLAGS)
_OFFLINE: Final = re.compile(
    rf"Consumer not online, so can not reset offset, Group: ({NAME}) Topic: ({NAME}) Timestamp: -?\d{{1,19}}", _FLAGS
)
_UNKNOWN: Final = re.compile(rf"Reset offset failed, (topic|group) does not exist\. {_TOPIC_GROUP}", _FLAGS)
OFFLINE: Final = "no member of the group was online"


def _started(message: str) -> Reset:
    match = matched(_STARTED, message)
    return ResetStarted(match[1], match[2], match[3], long_of(match[4], "timestamp"), match[5])


def _sent(message: str) -> Reset:
    match = matched(_SENT, message)
    return ResetSent(match[1], match[2], match[3])


def _done(message: str) -> Reset:
    match = matched(_DONE, message)
    if not reset_offsets_of(body_of({"queues": match[3]}, "queues")):
        raise DecodeError("missing_field", "queues has no offsetTable")
    return ResetDone(match[1], match[2], match[3])


def _no_topic(message: str) -> Reset:
    return ResetRefused(matched(_NO_TOPIC, message)[1], None, "the broker does not have the topic")


def _not_sent(message: str) -> Reset:
    match = matched(_NOT_SENT, message)
    return ResetRefused(match[1], match[2], "the broker could not send it to a member of the group")


def _too_old(_message: str) -> Reset:
    return ResetRefused(None, None, "a member of the group is too old for resets")


def _offline(message: str) -> Reset:
    match = matched(_OFFLINE, message)
    return ResetRefused(match[2], match[1], OFFLINE)


def _unknown(message: str) -> Reset:
    match = matched(_UNKNOWN, message)
    return ResetRefused(match[2], match[3], f"the broker does not have the {match[1]}")


def _no_queues(_message: str) -> Reset:
    return ResetRefused(None, None, "the topic has no queue")


RESET_READERS: Final[tuple[tuple[str, Callable[[str], Reset]], ...]] = (
    ("[reset-offset] reset offset started", _started),
    ("[reset-offset] reset offset success", _sent),
    ("[reset-offset] reset offset failed, no topic", _no_topic),
    ("[reset-offset] reset offset exception", _not_sent),
    ("[reset-offset] the client does not support this feature", _too_old),
    ("Consumer not online, so can not reset offset", _offline),
    ("Reset offset failed, ", _unknown),
    ("Reset offset aborted: no queues to reset", _no_queues),
    ("Reset offset, topic=", _done),
)
