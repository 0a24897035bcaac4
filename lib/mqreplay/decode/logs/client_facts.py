"""Typed facts of lines in rocketmq_client.log."""

from __future__ import annotations

from typing import NamedTuple

from mqreplay.decode.logs.exceptions import Thrown
from mqreplay.decode.logs.java_text import FailedMessage
from mqreplay.decode.message_queue import MessageQueue


class Rebalanced(NamedTuple):
    """A rebalance changed a client's queues of a topic; ``queues`` is its share, unsorted.

    A strategy such as CONFIG may give queues of other topics.
    """

    client_id: str
    group: str
    topic: str
    strategy: str
    mq_all_size: int
    cid_all_size: int
    queues: list[MessageQueue]


class QueueAdded(NamedTuple):
    """A client of the group took a queue; the line does not name the client."""

    group: str
    queue: MessageQueue


class QueueRemoved(NamedTuple):
    """A client of the group released a queue; ``alone`` if no rebalanced result follows (the topic was dropped)."""

    group: str
    queue: MessageQueue
    alone: bool


class LockFailed(NamedTuple):
    """An orderly client did not take a queue, because it did not get the lock."""

    group: str
    queue: MessageQueue


class Broadcast(NamedTuple):
    """A broadcasting client of the group took all ``queues`` of a topic."""

    group: str
    topic: str
    queues: list[MessageQueue]


class Committed(NamedTuple):
    """A client sent an offset to the broker; ``all_queues`` if it was part of the round every 5 s."""

    client_id: str
    group: str
    queue: MessageQueue
    offset: int
    all_queues: bool


class OffsetIllegal(NamedTuple):
    """A pull of ``queue_offset`` was answered with another offset (PULL_OFFSET_MOVED)."""

    group: str
    queue: MessageQueue
    queue_offset: int
    next_begin_offset: int
    min_offset: int
    max_offset: int


class FlowControlled(NamedTuple):
    """A client of the group did not pull from a queue, because too much waits in it.

    ``threshold`` (messages or MiB) and ``cached_mib`` are None for the span, ``cached_msgs`` is then None too. Clients
    before 4.2 log ``cached_msgs`` alone.
    ``times`` counts such checks of the client from 1; every thousandth is logged.
    """

    group: str
    queue: MessageQueue
    flow_control: str
    threshold: int | None
    min_offset: int
    max_offset: int
    cached_msgs: int | None
    cached_mib: int | None
    times: int


class ResetInvoked(NamedTuple):
    """A broker ordered a client of the group to reset its offsets of a topic."""

    broker_addr: str
    topic: str
    group: str
    timestamp: int


class Suspended(NamedTuple):
    """A client of the group paused for a reset, and dropped the queues of the reset."""

    group: str


class Resumed(NamedTuple):
    """A reset of a client of the group ended."""

    group: str


class ClientCreated(NamedTuple):
    """A client instance was created; ``number`` counts those of the process from 0."""

    client_id: str
    number: int


class ClientStopped(NamedTuple):
    """A client instance was shut down normally."""

    client_id: str


class ConsumerStopped(NamedTuple):
    """A consumer of the group was shut down normally."""

    group: str


class Unregistered(NamedTuple):
    """A client of the group left it at a broker."""

    group: str
    broker_name: str
    broker_id: int
    broker_addr: str


class RouteTaken(NamedTuple):
    """A client of the process got a new route of a topic from a name server; ``body`` as in its JSON."""

    topic: str
    body: dict[str, list[dict[str, object]]]


class HeartbeatSent(NamedTuple):
    """A broker answered a heartbeat. Its content follows as `HeartbeatContent`."""

    broker_name: str
    broker_id: int
    broker_addr: str


class HeartbeatFailed(NamedTuple):
    """A broker that the name server still listed did not answer a heartbeat."""

    broker_name: str
    broker_id: int
    broker_addr: str


class SendFailed(NamedTuple):
    """A try of a send failed after ``cost_ms``; all tries of a send share ``invoke_id``.

    ``interrupted``: its thread was interrupted. Else a retry may follow. ``thrown``: the exception in the next lines.
    """

    invoke_id: str
    cost_ms: int
    queue: MessageQueue
    interrupted: bool
    thrown: Thrown | None = None


class ClientThrew(NamedTuple):
    """A request of a client ended in an exception: of a send after all its tries, of a pull or a message sent back.

    ``thrown``: the exception in the line or in the next lines; the line may name a group, a queue or a topic.
    """

    request: str
    group: str | None = None
    queue: MessageQueue | None = None
    topic: str | None = None
    thrown: Thrown | None = None


class ListenerFailed(NamedTuple):
    """A listener of the group did not consume messages of a queue.

    ``error``: the exception and its first frame; None: it returned null, or not OK (``orderly``).
    """

    group: str
    queue: MessageQueue
    messages: list[FailedMessage]
    error: str | None = None
    orderly: bool = False


class ListenerThrew(NamedTuple):
    """A listener of rocketmq-spring did not consume a message; ``cause`` is the exception in or below the line."""

    topic: str
    msg_id: str
    reconsume_times: int
    cause: str | None = None


class HeartbeatContent(NamedTuple):
    """The content of a heartbeat; ``consumers`` as in its JSON body."""

    client_id: str
    consumers: list[dict[str, object]]
