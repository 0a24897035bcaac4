"""Typed facts of lines in broker.log."""

from __future__ import annotations

from typing import NamedTuple


class Channel(NamedTuple):
    """A client's connection: its address, and the time of its last heartbeat (epoch ms by the broker's clock).

    A connection through a proxy has its text instead of the address.
    """

    client_id: str
    client_addr: str
    heard_ms: int


class Joined(NamedTuple):
    """A client joined a group on a new connection; types as in ConsumeType and MessageModel."""

    group: str
    channel: Channel
    consume_type: str
    message_model: str


class Announced(NamedTuple):
    """A heartbeat of the client at ``client_addr`` changed what the broker knew; ``consumer`` as in its JSON body."""

    client_addr: str
    consumer: dict[str, object]


class Left(NamedTuple):
    """A client left a group with UNREGISTER_CLIENT."""

    group: str
    channel: Channel


class Vanished(NamedTuple):
    """The connection of a client was closed without UNREGISTER_CLIENT; ``channel`` is None if the broker dropped it."""

    group: str
    client_addr: str
    channel: Channel | None


class CommittedLess(NamedTuple):
    """The client at ``client_addr`` committed an offset below the stored one."""

    client_addr: str
    topic: str
    group: str
    queue_id: int
    request_offset: int
    store_offset: int


class OffsetCorrected(NamedTuple):
    """The broker answered a pull outside the range of its queue with another offset (PULL_OFFSET_MOVED)."""

    topic: str
    group: str
    request_offset: int
    new_offset: int


class ResetStarted(NamedTuple):
    """The broker was asked from ``client_addr`` to reset the offsets of a group (INVOKE_BROKER_TO_RESET_OFFSET).

    ``timestamp`` is the time to go back to, epoch ms; negative: the end of each queue.
    """

    client_addr: str
    topic: str
    group: str
    timestamp: int
    is_force: str


class ResetSent(NamedTuple):
    """The broker ordered a client to reset its offsets (RESET_CONSUMER_CLIENT_OFFSET)."""

    topic: str
    group: str
    client_id: str


class ResetDone(NamedTuple):
    """The broker set the offsets itself (useServerSideResetOffset); ``body`` is the text of its ResetOffsetBody."""

    topic: str
    group: str
    body: str


class ResetRefused(NamedTuple):
    """The broker did not carry out a reset; topic and group are None where the line does not name them."""

    topic: str | None
    group: str | None
    reason: str


class Booted(NamedTuple):
    """The broker was ready."""

    broker_name: str
    broker_addr: str


class Registered(NamedTuple):
    """The broker registered at a name server, as every 30 s."""

    broker_id: int


class Stopped(NamedTuple):
    """The broker unregistered at a name server: it was shut down normally."""


class Setting(NamedTuple):
    """A setting that the broker wrote as it started: brokerName, brokerId, brokerIP1, listenPort, brokerClusterName."""

    name: str
    value: str


Fact = (
    Joined
    | Announced
    | Left
    | Vanished
    | CommittedLess
    | OffsetCorrected
    | ResetStarted
    | ResetSent
    | ResetDone
    | ResetRefused
    | Booted
    | Registered
    | Stopped
    | Setting
)
