"""rocketmq_client.log: rebalances, queues, commits, received requests and failed sends of clients.

Sources: RebalanceImpl, RebalancePushImpl, RemoteBrokerOffsetStore, MQClientInstance, DefaultMQPushConsumerImpl,
DefaultMQProducerImpl, ClientRemotingProcessor.

The messages of 4.9 and 5.x differ in a few words; both are read.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from mqreplay.decode.fields import INT_MAX
from mqreplay.decode.logs.client_facts import (
    Broadcast,
    ClientCreated,
    ClientStopped,
    Committed,
    ConsumerStopped,
    Fact,
    FlowControlled,
    HeartbeatContent,
    HeartbeatFailed,
    HeartbeatSent,
    LockFailed,
    OffsetIllegal,
    QueueAdded,
    QueueRemoved,
    Rebalanced,
    ResetInvoked,
    Resumed,
    RouteTaken,
    SendFailed,
    Suspended,
    Unregistered,
)
from mqreplay.decode.logs.java_text import NAME, QUEUE, between, consumers_of, long_of, queue_of, queues_of, route_of
from mqreplay.decode.logs.message_text import matched
from mqreplay.errors import DecodeError

_FLAGS: Final = re.ASCII | re.DOTALL
_REBALANCED: Final = re.compile(
    rf"(?:client )?rebalanced result changed\. allocateMessageQueueStrategyName=({NAME}), group=({NAME}), "
    rf"topic=({NAME}), "
    rf"clientId=({NAME}), mqAllSize=(\d{{1,10}}), cidAllSize=(\d{{1,10}}), rebalanceResultSize=(\d{{1,10}}), "
    r"rebalanceResultSet=(.*)",
    _FLAGS,
)
_MOVE: Final = re.compile(
    rf"doRebalance, ({NAME}), "
    rf"(add a new mq|remove unnecessary mq|truncateMessageQueueNotMyTopic remove unnecessary mq), ({QUEUE})",
    _FLAGS,
)
_LOCK_FAILED: Final = re.compile(rf"doRebalance, ({NAME}), add a new mq failed, ({QUEUE}), because lock failed", _FLAGS)
_BROADCAST: Final = re.compile(rf"messageQueueChanged ({NAME}) ({NAME}) (\[.*?\]\]|\[\]) \[", _FLAGS)
_COMMITTED: Final = re.compile(
    rf"(?:\[(persist|persistAll)\] )?Group: ({NAME}) ClientId: ({NAME}) "
    rf"updateConsumeOffsetToBroker ({QUEUE}) (-?\d{{1,19}})",
    _FLAGS,
)
_ILLEGAL: Final = re.compile(
    rf"the pull request offset illegal, PullRequest \[consumerGroup=({NAME}), messageQueue=({QUEUE}), "
    rf"nextOffset=(-?\d{{1,19}})\] "
    r"PullResult \[pullStatus=OFFSET_ILLEGAL, nextBeginOffset=(-?\d{1,19}), minOffset=(-?\d{1,19}), "
    r"maxOffset=(-?\d{1,19}), .*",
    _FLAGS,
)
_PULL_REQUEST: Final = rf"PullRequest \[consumerGroup=({NAME}), messageQueue=({QUEUE}), nextOffset=-?\d{{1,19}}\]"
_FULL: Final = re.compile(
    r"the cached message (count|size) exceeds the threshold (\d{1,10})(?: MiB)?, so do flow control, "
    rf"minOffset=(\d{{1,19}}), maxOffset=(\d{{1,19}}), count=(\d{{1,19}}), size=(-?\d{{1,19}}) MiB, "
    rf"pullRequest={_PULL_REQUEST}, flowControlTimes=(-?\d{{1,19}})",
    _FLAGS,
)
_WIDE: Final = re.compile(
    r"the queue's messages, span too long, so do flow control, minOffset=(\d{1,19}), maxOffset=(\d{1,19}), "
    rf"maxSpan=\d{{1,19}}, pullRequest={_PULL_REQUEST}, flowControlTimes=(-?\d{{1,19}})",
    _FLAGS,
)
_RESET: Final = re.compile(
    rf"invoke reset offset operation from broker\. brokerAddr=({NAME}), topic=({NAME}), group=({NAME}), "
    rf"timestamp=(-?\d{{1,19}})",
    _FLAGS,
)
_SUSPENDED: Final = re.compile(rf"suspend this consumer, ({NAME})", _FLAGS)
_RESUMED: Final = re.compile(rf"resume this consumer, ({NAME})", _FLAGS)
_CREATED: Final = re.compile(
    rf"Created a new client Instance, InstanceIndex:(\d{{1,10}}), ClientID:({NAME}), ClientConfig:.*", _FLAGS
)
_STOPPED: Final = re.compile(rf"the client factory \[({NAME})\] shutdown OK", _FLAGS)
_CONSUMER_STOPPED: Final = re.compile(rf"the consumer \[({NAME})\] shutdown OK", _FLAGS)
_UNREGISTERED: Final = re.compile(
    rf"unregister client\[Producer: null Consumer: ({NAME})\] from broker\[({NAME}) (\d{{1,10}}) ({NAME})\] success",
    _FLAGS,
)
_ROUTE: Final = re.compile(
    rf"topicRouteTable\.put\. Topic = ({NAME}), TopicRouteData\[(TopicRouteData \[.*\])\]", _FLAGS
)
_BEAT: Final = re.compile(rf"send heart beat to broker\[({NAME}) (\d{{1,10}}) ({NAME})\] (success|failed)", _FLAGS)

_SEND_FAILED: Final = re.compile(
    rf"sendKernelImpl exception, (resend at once|throw exception), InvokeID: (-?\d{{1,19}}), RT: (-?\d{{1,19}})ms, "
    rf"Broker: ({QUEUE})",
    _FLAGS,
)


def read_client_fact(message: str) -> Fact | None:
    """Return the fact of a message of rocketmq_client.log; None for any other message.

    Raises:
        DecodeError: a message that begins as a fact does, and is cut or none of RocketMQ's.

    >>> read_client_fact("doRebalance, g, add a new mq, MessageQueue [topic=t, brokerName=b, queueId=1]")
    QueueAdded(group='g', queue=MessageQueue(topic='t', broker_name='b', queue_id=1))
    >>> read_client_fact("RebalanceService service started")
    """
    for start, read in _READERS:
        if message.startswith(start):
            return read(message)
    return None


def _count(text: str, name: str) -> int:
    number = int(text)
    if number > INT_MAX:
        raise DecodeError("bad_number", f"{name} should be 0 to {INT_MAX}, and is {number}")
    return number


def _rebalanced(message: str) -> Rebalanced:
    match = matched(_REBALANCED, message)
    queues = queues_of(match[8])
    if len(queues) != int(match[7]):
        raise DecodeError("bad_message", f"it lists {len(queues)} queues but counts {match[7]}: the line is damaged")
    sizes = _count(match[5], "mqAllSize"), _count(match[6], "cidAllSize")
    return Rebalanced(match[4], match[2], match[3], match[1], *sizes, queues)


def _rebalance_step(message: str) -> Fact | None:
    failed = _LOCK_FAILED.fullmatch(message)
    if failed is not None:
        return LockFailed(failed[1], queue_of(failed[2]))
    if ", add a new mq, " not in message and " remove unnecessary mq, " not in message:
        return None
    match = matched(_MOVE, message)
    queue = queue_of(match[3])
    if match[2].startswith("add"):
        return QueueAdded(match[1], queue)
    return QueueRemoved(match[1], queue, match[2].startswith("truncate"))


def _broadcast(message: str) -> Broadcast:
    match = _BROADCAST.match(message)
    if match is None:
        raise DecodeError("bad_message", f"cut, or not RocketMQ's: {message[:100]!r}")
    return Broadcast(match[1], match[2], queues_of(match[3]))


def _committed(message: str) -> Committed:
    match = matched(_COMMITTED, message)
    # Clients of 3.x write each twelfth round, without a tag.
    return Committed(match[3], match[2], queue_of(match[4]), long_of(match[5], "offset"), match[1] != "persist")


def _committed_3(message: str) -> Committed | None:
    return _committed(message) if " updateConsumeOffsetToBroker " in message else None


def _illegal(message: str) -> OffsetIllegal:
    match = matched(_ILLEGAL, message)
    names = ("nextOffset", "nextBeginOffset", "minOffset", "maxOffset")
    offsets = [long_of(match[place], name) for place, name in enumerate(names, 3)]
    return OffsetIllegal(match[1], queue_of(match[2]), *offsets)


def _full(message: str) -> FlowControlled:
    match = matched(_FULL, message)
    names = ("minOffset", "maxOffset", "count", "size")
    first, last, count, size = (long_of(match[place], name) for place, name in enumerate(names, 3))
    threshold, times = _count(match[2], "threshold"), long_of(match[9], "flowControlTimes")
    return FlowControlled(match[7], queue_of(match[8]), match[1], threshold, first, last, count, size, times)


def _wide(message: str) -> FlowControlled:
    match = matched(_WIDE, message)
    first, last = long_of(match[1], "minOffset"), long_of(match[2], "maxOffset")
    times = long_of(match[5], "flowControlTimes")
    return FlowControlled(match[3], queue_of(match[4]), "span", None, first, last, None, None, times)


def _reset(message: str) -> ResetInvoked:
    match = matched(_RESET, message)
    return ResetInvoked(match[1], match[2], match[3], long_of(match[4], "timestamp"))


def _created(message: str) -> ClientCreated:
    match = matched(_CREATED, message)
    return ClientCreated(match[2], _count(match[1], "InstanceIndex"))


def _unregistered(message: str) -> Unregistered | None:
    if "[Producer: null " not in message or not message.endswith("success"):
        return None
    match = matched(_UNREGISTERED, message)
    return Unregistered(match[1], match[2], _count(match[3], "broker id"), match[4])


def _beat(message: str) -> HeartbeatSent | HeartbeatFailed | None:
    if not message.endswith(("success", "failed")):
        return None
    match = matched(_BEAT, message)
    answered = HeartbeatSent if match[4] == "success" else HeartbeatFailed
    return answered(match[1], _count(match[2], "broker id"), match[3])


def _route(message: str) -> RouteTaken:
    match = matched(_ROUTE, message)
    return RouteTaken(match[1], route_of(match[2]))


def _send_failed(message: str) -> SendFailed:
    match = matched(_SEND_FAILED, message)
    return SendFailed(match[2], long_of(match[3], "RT"), queue_of(match[4]), match[1] == "throw exception")


def _content(message: str) -> HeartbeatContent:
    return HeartbeatContent(between(message, "clientID=", ", "), consumers_of(message))


def _stopped(message: str) -> ClientStopped | None:
    match = _STOPPED.fullmatch(message)
    return ClientStopped(match[1]) if match else None


def _consumer_stopped(message: str) -> ConsumerStopped | None:
    match = _CONSUMER_STOPPED.fullmatch(message)
    return ConsumerStopped(match[1]) if match else None


_READERS: Final[tuple[tuple[str, Callable[[str], Fact | None]], ...]] = (
    ("[persist", _committed),
    ("Group: ", _committed_3),
    ("doRebalance, ", _rebalance_step),
    ("rebalanced result changed", _rebalanced),
    ("client rebalanced result changed", _rebalanced),
    ("messageQueueChanged ", _broadcast),
    ("the pull request offset illegal, ", _illegal),
    ("the cached message count exceeds ", _full),
    ("the cached message size exceeds ", _full),
    ("the queue's messages, span too long, ", _wide),
    ("invoke reset offset operation", _reset),
    ("suspend this consumer, ", lambda message: Suspended(matched(_SUSPENDED, message)[1])),
    ("resume this consumer, ", lambda message: Resumed(matched(_RESUMED, message)[1])),
    ("Created a new client Instance, ", _created),
    ("the client factory [", _stopped),
    ("the consumer [", _consumer_stopped),
    ("unregister client[", _unregistered),
    ("send heart beat to broker[", _beat),
    ("sendHeartbeatToAllBrokerV2 send heart beat to broker[", lambda message: _beat(message.partition(" ")[2])),
    ("HeartbeatData [", _content),
    ("topicRouteTable.put. ", _route),
    ("sendKernelImpl exception, ", _send_failed),
)
# How messages with a fact begin, at any place in a line.
STARTS: Final = tuple(start for start, _ in _READERS)
