"""ConsumerRunningInfo: a client's answer to GET_CONSUMER_RUNNING_INFO."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from mqreplay.core.allocation import strategy_name
from mqreplay.core.java import INT_MIN, LONG_MAX, LONG_MIN
from mqreplay.decode.body import items_of
from mqreplay.decode.columns import instant_field, missing
from mqreplay.decode.fastjson_text import Key, Value
from mqreplay.decode.fields import bool_field, int_field, object_of, text_field, wrong_type
from mqreplay.decode.message_queue import MessageQueue, keyed_by_queue
from mqreplay.decode.subscriptions import Subscription, subscriptions_of

PULL_CONSUMER: Final = "CONSUME_ACTIVELY"
ALL_QUEUES: Final = -1  # queue id in mqPopTable: all queues of a broker
# Object's toString(): a different text in each process, not a setting.
_OBJECT: Final = re.compile(r"[\w.$]+(?:/0x[0-9a-f]+)?@[0-9a-f]{1,8}")


_THREAD: Final = re.compile(r"(ConsumeMessageThread_.*?) *TID: [0-9]+ STATE: ")
_NOT_OF_APPLICATION: Final = (
    *("java.", "javax.", "jdk.", "sun.", "com.sun.", "io.netty."),
    *("org.apache.rocketmq.", "com.alibaba.rocketmq.", "app//java.", "java.base/", "java.base@"),
)


class HeldQueue(NamedTuple):
    """A queue that a client holds, with its fields as an assignment names them. Offsets count messages.

    The offset that the client would commit is ``memory_offset``; ``last_pull_ts`` is epoch ms.
    """

    topic: str
    broker_name: str
    queue_id: int
    dropped: bool
    locked: bool
    pull_from_broker_id: int | None
    memory_offset: int | None
    cached_msgs: int
    cached_first: int | None
    cached_last: int | None
    last_pull_ts: int | None


class QueueListener(NamedTuple):
    """How far the listener of a client is with a queue that the client holds.

    ``cached_mib`` is the size of the cached messages, whole MiB. An orderly listener has taken ``taken_msgs`` messages,
    from offset ``taken_first`` on, out of the cached ones, and has not committed them. ``last_consume_ts``: when the
    client last finished or took a message of the queue, or took the queue; epoch ms.
    """

    topic: str
    broker_name: str
    queue_id: int
    cached_mib: int
    taken_msgs: int
    taken_first: int | None
    last_consume_ts: int | None


class PopQueue(NamedTuple):
    """A queue that a client consumes by POP; several clients share it.

    Queue id -1 means all queues of the broker. ``wait_ack_msgs`` counts messages that the client received and has
    not acknowledged; ``last_pop_ts`` is epoch ms.
    """

    topic: str
    broker_name: str
    queue_id: int
    dropped: bool
    wait_ack_msgs: int
    last_pop_ts: int | None


class RunningInfo(NamedTuple):
    """One answer. ``queues`` is None if the client does not report them, such as a DefaultLitePullConsumer of 4.x.

    It is also None if the client consumes by POP alone. ``listeners`` has an item for each of ``queues``.
    ``pop_queues`` is None if the client does not know POP (4.x). ``properties`` are the client's settings by their
    names in RocketMQ. ``listener_frames``: see `listener_frames`; None without a thread dump.
    """

    queues: list[HeldQueue] | None
    listeners: list[QueueListener] | None
    pop_queues: list[PopQueue] | None
    strategy: str | None
    message_model: str | None
    consume_type: str | None
    consume_from_where: str | None
    subscriptions: list[Subscription]
    properties: dict[str, str]
    listener_frames: list[str] | None


def running_info_of(body: Mapping[Key, Value]) -> RunningInfo:
    """Return the facts of a decoded body.

    Queues that a broker assigned for POP are in mqPopTable (5.x), and no client holds one alone. A retry topic of the
    same client may be in mqTable. Source: ConsumerRunningInfo, ProcessQueueInfo, PopProcessQueueInfo,
    RebalanceImpl#updateMessageQueueAssignment, MixAll#object2Properties.

    Raises:
        DecodeError: missing_field, wrong_type, bad_number, bad_time, bad_key, duplicate_key.

    >>> mq = (("brokerName", "b"), ("queueId", 1), ("topic", "t"))
    >>> info = running_info_of({"mqTable": {mq: {"commitOffset": 9, "droped": False, "locked": True}},
    ...     "properties": {"messageModel": "CLUSTERING", "offsetStore": "RemoteBrokerOffsetStore@2c103812"}})
    >>> info.queues[0][:7], info.message_model, info.properties
    (('t', 'b', 1, False, True, None, 9), 'CLUSTERING', {'messageModel': 'CLUSTERING'})
    >>> all_of_broker = (("brokerName", "b"), ("queueId", -1), ("topic", "t"))
    >>> info = running_info_of({"mqTable": {}, "mqPopTable": {all_of_broker: {"droped": False, "waitAckCount": 2}}})
    >>> info.queues, info.pop_queues[0][:5]
    (None, ('t', 'b', -1, False, 2))
    """
    table = body.get("mqTable")
    if table is None:
        raise missing("mqTable in body")
    rows = keyed_by_queue(object_of(table, "mqTable"), "mqTable")
    states = [(queue, object_of(state, "a queue of mqTable")) for queue, state in rows]
    queues = [_queue(queue, state) for queue, state in states]
    shared = _pop_queues(body)
    properties = _texts(body)
    consume_type = properties.get("PROP_CONSUME_TYPE")
    is_known = bool(queues or not (shared or consume_type == PULL_CONSUMER))
    return RunningInfo(
        queues if is_known else None,
        [_listener(queue, state) for queue, state in states] if is_known else None,
        shared,
        strategy_name(properties.get("allocateMessageQueueStrategy")),
        properties.get("messageModel"),
        consume_type,
        properties.get("consumeFromWhere"),
        subscriptions_of(items_of(body, "subscriptionSet"), "subscriptionSet"),
        {name: text for name, text in properties.items() if not _OBJECT.fullmatch(text)},
        None if body.get("jstack") is None else listener_frames(text_field(body, "jstack", "") or ""),
    )


def listener_frames(jstack: str) -> list[str]:
    """Return the innermost frame of the application in each thread that consumes messages, each once.

    Threads that wait for messages have none. Source: UtilAll#jstack, ConsumeMessageConcurrentlyService,
    ConsumeMessageOrderlyService.

    >>> thread = "ConsumeMessageThread_1                  "
    >>> frames = ["java.net.Socket.read(Native Method)", "com.shop.Listener.call(Listener.java:44)"]
    >>> listener_frames("\\n".join(thread + text for text in ["TID: 58 STATE: RUNNABLE", *frames]))
    ['com.shop.Listener.call(Listener.java:44)']
    """
    frames: dict[str, None] = {}
    thread: str | None = None
    for line in jstack.splitlines():
        if (begin := _THREAD.match(line)) is not None:
            thread = begin[1]
        elif thread is not None and line.startswith(thread):
            frame = line.removeprefix(thread).strip()
            if not frame.startswith(_NOT_OF_APPLICATION):
                frames[frame] = None
                thread = None
    return list(frames)


def _pop_queues(body: Mapping[Key, Value]) -> list[PopQueue] | None:
    table = body.get("mqPopTable")
    if table is None:
        return None
    rows = keyed_by_queue(object_of(table, "mqPopTable"), "mqPopTable", ALL_QUEUES)
    return [_pop_queue(queue, object_of(state, "a queue of mqPopTable")) for queue, state in rows]


def _pop_queue(queue: MessageQueue, state: Mapping[Key, Value]) -> PopQueue:
    return PopQueue(
        *queue,
        bool_field(state, "droped", False),
        int_field(state, "waitAckCount", 0, INT_MIN),
        instant_field(state, "lastPopTimestamp", 0) or None,
    )


def _texts(body: Mapping[Key, Value]) -> dict[str, str]:
    texts: dict[str, str] = {}
    for name, text in object_of(body.get("properties") or {}, "properties").items():
        if not isinstance(name, str) or not isinstance(text, str):
            raise wrong_type(f"{name} in properties", "a string", text)
        texts[name] = text
    return texts


def _queue(queue: MessageQueue, state: Mapping[Key, Value]) -> HeldQueue:
    cached = int_field(state, "cachedMsgCount", 0)
    return HeldQueue(
        *queue,
        bool_field(state, "droped", False),
        bool_field(state, "locked", False),
        None,
        _offset(state, "commitOffset"),
        cached,
        # RocketMQ writes 0 for both where no message is cached.
        _offset(state, "cachedMsgMinOffset") if cached else None,
        _offset(state, "cachedMsgMaxOffset") if cached else None,
        instant_field(state, "lastPullTimestamp", 0) or None,
    )


def _listener(queue: MessageQueue, state: Mapping[Key, Value]) -> QueueListener:
    taken = int_field(state, "transactionMsgCount", 0)
    return QueueListener(
        *queue,
        int_field(state, "cachedMsgSizeInMiB", 0, INT_MIN),
        taken,
        _offset(state, "transactionMsgMinOffset") if taken else None,
        instant_field(state, "lastConsumeTimestamp", 0) or None,
    )


def _offset(state: Mapping[Key, Value], name: str) -> int | None:
    return None if state.get(name) is None else int_field(state, name, 0, LONG_MIN, LONG_MAX)
