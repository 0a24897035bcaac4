"""Typed facts of lines in broker.log, lock.log and stats.log."""

from __future__ import annotations

from typing import Literal, NamedTuple

from mqreplay.decode.logs.java_text import Channel
from mqreplay.decode.message_queue import MessageQueue


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


class SubscriptionChanged(NamedTuple):
    """A heartbeat changed what the broker keeps for a topic of a group; None: the group did, or does, not subscribe."""

    group: str
    old: dict[str, object] | None
    new: dict[str, object] | None

    @property
    def topic(self) -> str:
        """Return the topic."""
        return str((self.old or self.new or {})["topic"])


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


class PullRefused(NamedTuple):
    """The broker refused a pull with a code and a remark; the line names the group or the topic, or both."""

    response_code: int
    remark: str
    group: str | None = None
    topic: str | None = None


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


class StartFailed(NamedTuple):
    """The process of a broker could not be initialized; ``cause`` is the exception below the line."""

    cause: str | None = None


class TermBegun(NamedTuple):
    """A node of DLedger got a role in a term: LEADER, FOLLOWER or CANDIDATE; ``previous`` is its role in the store."""

    term: int
    role: str
    previous: str


class RoleBegun(NamedTuple):
    """A broker begins to be a master or slave; ``epoch`` and the master are known where a controller chose it."""

    role: Literal["master", "slave"]
    broker_name: str
    broker_id: int | None = None
    broker_addr: str | None = None
    master_id: int | None = None
    master_addr: str | None = None
    epoch: int | None = None


class RoleTaken(NamedTuple):
    """A broker registered with its new role: SYNC_MASTER, ASYNC_MASTER or SLAVE. The line does not name the broker."""

    role: str
    broker_addr: str
    epoch: int
    broker_id: int | None = None
    master_id: int | None = None
    master_addr: str | None = None


class TopicCreated(NamedTuple):
    """The broker created a topic: on a command, on the first send to it, or for a message that was sent back."""

    topic: str


class TopicDeleted(NamedTuple):
    """The broker deleted a topic on a command, with its messages."""

    topic: str


class Setting(NamedTuple):
    """A setting that the broker wrote as it started: brokerName, brokerId, brokerIP1, listenPort, brokerClusterName."""

    name: str
    value: str


class LockLine(NamedTuple):
    """A lock or unlock request for a queue; ``other`` is the client that holds or held the lock."""

    kind: Literal["granted", "refused", "unlocked"]
    group: str
    client_id: str
    queue: MessageQueue
    other: str | None


class FallBehind(NamedTuple):
    """The lag at the group's last pull of a queue: bytes (size) or ms (time) behind the log's end."""

    measure: Literal["size", "time"]
    group: str
    topic: str
    queue_id: int
    value: int


class MinuteCount(NamedTuple):
    """Messages of a topic in one minute: sent to it, read by a group, or sent back by it (``group`` is then known)."""

    what: Literal["sent", "read", "sent_back"]
    topic: str
    total: int
    group: str | None = None
