"""namesrv.log: when a name server registered a broker, and when it lost it. Source: RouteInfoManager."""

from __future__ import annotations

import re
from typing import Final, Literal, NamedTuple

from mqreplay.decode.logs.java_text import NAME
from mqreplay.decode.logs.message_text import matched

Event = Literal["registered", "destroyed", "expired", "unregistered"]


class BrokerSeen(NamedTuple):
    """A change of the registration of the broker at ``broker_addr``.

    registered; destroyed: its channel closed without an unregistration; expired: 2 minutes without a registration;
    unregistered: a regular shutdown.
    """

    event: Event
    broker_addr: str


class MasterNamed(NamedTuple):
    """The master of a broker name is at ``broker_addr``, or the broker of an id was at it when it was removed."""

    broker_name: str
    broker_addr: str


class AddressRemoved(NamedTuple):
    """A broker was removed with its address; ``broker_id`` is None where it unregistered."""

    broker_id: int | None
    broker_addr: str


class NameRemoved(NamedTuple):
    """A broker name without any address was removed: the one of the address that was removed just before."""

    broker_name: str


Fact = BrokerSeen | MasterNamed | AddressRemoved | NameRemoved
_IDENTITY: Final = rf"BrokerIdentityInfo \[clusterName={NAME}, brokerAddr=({NAME})\]"
_EITHER: Final = rf"(?:{_IDENTITY}|({NAME}))"
_FLAGS: Final = re.ASCII | re.DOTALL
_EVENTS: Final[tuple[tuple[str, re.Pattern[str], Event], ...]] = (
    ("new broker registered, ", re.compile(rf"new broker registered, {_EITHER} HAS.*", _FLAGS), "registered"),
    (
        "the broker's channel destroyed, ",
        re.compile(
            rf"the broker's channel destroyed, (?:submit the unregister request at once, broker info: {_IDENTITY}, .*"
            rf"|({NAME}), clean it's data structure at once)",
            _FLAGS,
        ),
        "destroyed",
    ),
    ("The broker channel expired, ", re.compile(rf"The broker channel expired, {_EITHER} \d+ms", _FLAGS), "expired"),
    (
        "unregisterBroker, remove from brokerLiveTable OK, ",
        re.compile(rf"unregisterBroker, remove from brokerLiveTable OK, {_EITHER}", _FLAGS),
        "unregistered",
    ),
)
_REMOVED: Final = re.compile(
    rf"remove broker(?:Addr\[(\d{{1,10}}), ({NAME})\]|Name\[({NAME})\]) from brokerAddrTable, "
    r"because channel destroyed",
    _FLAGS,
)
_UNREGISTERED: Final = re.compile(
    rf"unregisterBroker, remove (?:addr from brokerAddrTable OK, {_EITHER}|name from brokerAddrTable OK, ({NAME}))",
    _FLAGS,
)
STARTS: Final = (
    *(start for start, _, _ in _EVENTS),
    "cluster [",
    "remove brokerAddr[",
    "remove brokerName[",
    "unregisterBroker, ",
)
_MASTER: Final = re.compile(
    rf"cluster \[{NAME}\] brokerName \[({NAME})\] master address change from {NAME} to ({NAME})", _FLAGS
)


def read_namesrv_fact(message: str) -> Fact | None:
    """Return the fact of a message of namesrv.log; None for any other message.

    Raises:
        DecodeError: bad_message (cut, or not RocketMQ's).

    >>> read_namesrv_fact("the broker's channel destroyed, 127.0.0.1:10911, clean it's data structure at once")
    BrokerSeen(event='destroyed', broker_addr='127.0.0.1:10911')
    """
    for start, pattern, event in _EVENTS:
        if message.startswith(start):
            if pattern.fullmatch(message) is None and "submit the unregister request" in message:
                return None  # some versions of 5.x print no address
            match = matched(pattern, message)
            return BrokerSeen(event, match[1] or match[2])
    if message.startswith("cluster ["):
        master = _MASTER.fullmatch(message)
        return MasterNamed(master[1], master[2]) if master else None
    if (removed := _REMOVED.fullmatch(message)) is not None:
        return NameRemoved(removed[3]) if removed[3] else AddressRemoved(int(removed[1]), removed[2])
    if (left := _UNREGISTERED.fullmatch(message)) is not None:
        return NameRemoved(left[3]) if left[3] else AddressRemoved(None, left[1] or left[2])
    return None
