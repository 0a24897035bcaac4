"""What lines of rocketmq_client.log say, as typed facts."""

from __future__ import annotations

from typing import NamedTuple

from mqreplay.decode.message_queue import MessageQueue


class Rebalanced(NamedTuple):
    """A client held other queues of a topic after a rebalance than before; ``queues`` is its share, unsorted.

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
    """A client of the group took a queue; the line does not say which client."""

    group: str
    queue: MessageQueue


class QueueRemoved(NamedTuple):
    """A client of the group gave up a queue; ``alone`` where no rebalanced result follows (the topic was dropped)."""

    group: str
    queue: MessageQueue
    alone: bool


class LockFailed(NamedTuple):
    """An orderly client did not get the lock of a queue, so that it did not take it."""

    group: str
    queue: MessageQueue


class Broadcast(NamedTuple):
    """A broadcasting client of the group took all ``queues`` of a topic."""

    group: str
    topic: str
    queues: list[MessageQueue]


class Committed(NamedTuple):
    """A client sent an offset to the broker; ``all_queues`` where it was the round of every 5 s."""

    client_id: str
    group: str
    queue: MessageQueue
    offset: int
    all_queues: bool


class OffsetIllegal(NamedTuple):
    """A pull of ``queue_offset`` was answered with another offset to go on from (PULL_OFFSET_MOVED)."""

    group: str
    queue: MessageQueue
    queue_offset: int
    next_begin_offset: int
    min_offset: int
    max_offset: int


class ResetInvoked(NamedTuple):
    """A broker told a client of the group to reset its offsets of a topic."""

    broker_addr: str
    topic: str
    group: str
    timestamp: int


class Suspended(NamedTuple):
    """A client of the group paused for a reset, and dropped the queues that the reset names."""

    group: str


class Resumed(NamedTuple):
    """A reset of a client of the group came to its end."""

    group: str


class ClientCreated(NamedTuple):
    """A client instance was made; ``number`` counts those of the process from 0."""

    client_id: str
    number: int


class ClientStopped(NamedTuple):
    """A client instance was shut down in order."""

    client_id: str


class ConsumerStopped(NamedTuple):
    """A consumer of the group was shut down in order."""

    group: str


class Unregistered(NamedTuple):
    """A client of the group left it at a broker."""

    group: str
    broker_name: str
    broker_id: int
    broker_addr: str


class RouteTaken(NamedTuple):
    """A client of the process took a new route of a topic from a name server; ``body`` as in its JSON."""

    topic: str
    body: dict[str, list[dict[str, object]]]


class HeartbeatSent(NamedTuple):
    """A broker answered a heartbeat. What was in it follows as `HeartbeatContent`."""

    broker_name: str
    broker_id: int
    broker_addr: str


class HeartbeatFailed(NamedTuple):
    """A broker that the name server still had did not answer a heartbeat."""

    broker_name: str
    broker_id: int
    broker_addr: str


class HeartbeatContent(NamedTuple):
    """The content of a heartbeat; ``consumers`` as in its JSON body."""

    client_id: str
    consumers: list[dict[str, object]]


Fact = (
    Rebalanced
    | QueueAdded
    | QueueRemoved
    | LockFailed
    | Broadcast
    | Committed
    | OffsetIllegal
    | ResetInvoked
    | Suspended
    | Resumed
    | ClientCreated
    | ClientStopped
    | ConsumerStopped
    | Unregistered
    | RouteTaken
    | HeartbeatSent
    | HeartbeatFailed
    | HeartbeatContent
)
