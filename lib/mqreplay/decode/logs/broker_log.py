"""broker.log: clients that joined or left, offsets that moved back, resets, and when the broker was up.

Sources: ConsumerGroupInfo, ConsumerManager, ClientManageProcessor, ConsumerOffsetManager, BrokerStartup,
BrokerOuterAPI; reset_lines.py has those of resets.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from mqreplay.decode.columns import TIME_MAX, TIME_MIN
from mqreplay.decode.fields import INT_MAX
from mqreplay.decode.logs.broker_facts import (
    Announced,
    Booted,
    Channel,
    CommittedLess,
    Fact,
    Joined,
    Left,
    OffsetCorrected,
    Registered,
    Setting,
    Stopped,
    Vanished,
)
from mqreplay.decode.logs.java_text import CLIENT_ID, NAME, consumers_of, long_of
from mqreplay.decode.logs.message_text import matched
from mqreplay.decode.logs.reset_lines import RESET_READERS
from mqreplay.errors import DecodeError

_FLAGS: Final = re.ASCII | re.DOTALL
_ADDR: Final = rf"/?({NAME})"
_ADDRESS: Final = r"[^\s,]{1,255}"  # one of IPv6 has brackets
# ClientChannelInfo#toString has that of netty's AbstractChannel: netty 4.1 names both addresses by L: and R:, netty 3
# and 4.0 put the client first. Channels of a proxy have texts of their own.
_LATER_CHANNEL: Final = re.compile(rf"\[id: {NAME}, L:{_ADDRESS} [-!] R:({_ADDRESS})\]", re.ASCII)
_OLD_CHANNEL: Final = re.compile(rf"\[id: {NAME}, ({_ADDRESS}) [=:]> {_ADDRESS}\]", re.ASCII)
_CHANNEL: Final = (
    rf"ClientChannelInfo \[channel=(.{{1,1000}}?), clientId=({CLIENT_ID}), language=\w{{1,20}}, "
    r"version=-?\d{1,10}, lastUpdateTimestamp=(\d{1,19})\]"
)
_JOINED: Final = re.compile(
    rf"new consumer connected, group: ({NAME}) (\w{{1,40}}) (\w{{1,40}}) channel: {_CHANNEL}", _FLAGS
)
_LEFT: Final = re.compile(rf"unregister a consumer\[({NAME})\] from consumerGroupInfo {_CHANNEL}", _FLAGS)
_CLOSED: Final = re.compile(
    rf"NETTY EVENT: remove not active channel\[{_CHANNEL}\] from ConsumerGroupInfo groupChannelTable, "
    rf"consumer group: ({NAME})",
    _FLAGS,
)
_SCANNED: Final = re.compile(
    rf"SCAN: remove expired channel from ConsumerManager consumerTable\. channel=/?({_ADDRESS}|), "
    rf"consumerGroup=({NAME})",
    _FLAGS,
)
_ANNOUNCED_4: Final = re.compile(rf"registerConsumer info changed (ConsumerData \[.*\]) {_ADDR}", _FLAGS)
_ANNOUNCED_5: Final = re.compile(
    rf"(?:heartBeatV2 )?ClientManageProcessor: registerConsumer info changed, SDK address={_ADDR}, "
    rf"consumerData=(ConsumerData \[.*\])",
    _FLAGS,
)
_LESS: Final = re.compile(
    rf"\[NOTIFYME\]update consumer offset less than store\. clientHost={_ADDR}, "
    rf"key=([^\s,@]{{1,255}})@({NAME}), queueId=(\d{{1,10}}), "
    r"requestOffset=(-?\d{1,19}), storeOffset=(-?\d{1,19})",
    _FLAGS,
)
_CORRECTED: Final = re.compile(
    rf"PULL_OFFSET_MOVED:correction offset\. topic=({NAME}), groupId=({NAME}), requestOffset=(-?\d{{1,19}}), "
    r"newOffset=(-?\d{1,19}), suggestBrokerId=-?\d{1,19}",
    _FLAGS,
)
_BOOTED: Final = re.compile(rf"The broker\[({NAME}), ({NAME})\] boot success\. .*", _FLAGS)
_REGISTERED: Final = re.compile(rf"register broker\[(\d{{1,10}})\] ?to name server {NAME} OK", _FLAGS)
_STOPPED: Final = re.compile(rf"unregisterBroker OK, NamesrvAddr: {NAME}", _FLAGS)
_SETTING: Final = re.compile(rf"(brokerName|brokerId|brokerIP1|listenPort|brokerClusterName)=({NAME})", _FLAGS)


def read_broker_fact(message: str) -> Fact | None:
    """Return the fact of a message of broker.log; None for any other message.

    Raises:
        DecodeError: a message that begins like a fact, but is cut or not from RocketMQ.

    >>> read_broker_fact("The broker[b, 127.0.0.1:10911] boot success. serializeType=JSON")
    Booted(broker_name='b', broker_addr='127.0.0.1:10911')
    >>> read_broker_fact("dispatch behind commit log 0 bytes")
    """
    for start, read in _READERS:
        if message.startswith(start):
            return read(message)
    return None


def _channel(text: str, client_id: str, heard: str) -> Channel:
    heard_ms = int(heard)
    if not TIME_MIN <= heard_ms <= TIME_MAX:
        raise DecodeError("bad_time", f"lastUpdateTimestamp should be epoch ms of 2000 to 2100, and is {heard_ms}")
    if not text.startswith("[id: "):
        return Channel(client_id, text, heard_ms)
    match = _LATER_CHANNEL.fullmatch(text) or _OLD_CHANNEL.fullmatch(text)
    if match is None:
        raise DecodeError("bad_message", f"not a channel of netty: {text[:100]!r}")
    return Channel(client_id, match[1].rpartition("/")[2], heard_ms)


def _joined(message: str) -> Joined:
    match = matched(_JOINED, message)
    return Joined(match[1], _channel(*match.groups()[3:]), match[2], match[3])


def _left(message: str) -> Left:
    match = matched(_LEFT, message)
    return Left(match[1], _channel(*match.groups()[1:]))


def _closed(message: str) -> Vanished:
    match = matched(_CLOSED, message)
    channel = _channel(*match.groups()[:3])
    return Vanished(match[4], channel.client_addr, channel)


def _scanned(message: str) -> Vanished | None:
    if not message.startswith("SCAN: remove expired channel from ConsumerManager consumerTable. "):
        return None
    match = matched(_SCANNED, message)
    return Vanished(match[2], match[1], None)


def _announced_4(message: str) -> Announced:
    match = matched(_ANNOUNCED_4, message)
    return Announced(match[2], _one_consumer(match[1]))


def _announced_5(message: str) -> Announced | None:
    if "ClientManageProcessor: registerConsumer info changed" not in message:
        return None
    match = matched(_ANNOUNCED_5, message)
    return Announced(match[1], _one_consumer(match[2]))


def _one_consumer(text: str) -> dict[str, object]:
    consumers = consumers_of(text)
    if len(consumers) != 1:
        raise DecodeError("bad_message", f"{len(consumers)} groups in one ConsumerData: the line is damaged")
    return consumers[0]


def _less(message: str) -> CommittedLess:
    match = matched(_LESS, message)
    if int(match[4]) > INT_MAX:
        raise DecodeError("bad_number", f"queueId should be 0 to {INT_MAX}, and is {match[4]}")
    offsets = long_of(match[5], "requestOffset"), long_of(match[6], "storeOffset")
    return CommittedLess(match[1], match[2], match[3], int(match[4]), *offsets)


def _corrected(message: str) -> OffsetCorrected:
    match = matched(_CORRECTED, message)
    return OffsetCorrected(match[1], match[2], long_of(match[3], "requestOffset"), long_of(match[4], "newOffset"))


def _booted(message: str) -> Booted | None:
    match = _BOOTED.fullmatch(message)
    return Booted(match[1], match[2]) if match else None


def _registered(message: str) -> Registered | None:
    match = _REGISTERED.fullmatch(message)
    return Registered(int(match[1])) if match else None


def _stopped(message: str) -> Stopped | None:
    return Stopped() if _STOPPED.fullmatch(message) else None


def _setting(message: str) -> Setting | None:
    match = _SETTING.fullmatch(message)
    return Setting(match[1], match[2]) if match else None


_READERS: Final[tuple[tuple[str, Callable[[str], Fact | None]], ...]] = (
    ("new consumer connected, ", _joined),
    ("unregister a consumer[", _left),
    ("NETTY EVENT: remove not active channel[ClientChannelInfo [", _closed),
    ("SCAN: ", _scanned),
    ("registerConsumer info changed ", _announced_4),
    ("ClientManageProcessor: ", _announced_5),
    ("heartBeatV2 ClientManageProcessor: ", _announced_5),
    ("[NOTIFYME]update consumer offset less than store", _less),
    ("PULL_OFFSET_MOVED:correction offset", _corrected),
    *RESET_READERS,
    ("The broker[", _booted),
    ("register broker[", _registered),
    ("unregisterBroker OK", _stopped),
    ("broker", _setting),
    ("listenPort=", _setting),
)
# How messages with a fact begin, at any place in a line; settings are whole messages.
STARTS: Final = tuple(start for start, read in _READERS if read is not _setting)
