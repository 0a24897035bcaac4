"""Assignment of queues by a broker, which clients with clientRebalance=false and proxies ask for (QUERY_ASSIGNMENT).

Follows QueryAssignmentProcessor, the same in 5.0 to 5.5.0. The broker knows the strategies AVG and AVG_BY_CIRCLE only.
In mode POP queue id -1 means all queues of a broker.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from mqreplay.core.allocation import allocate_averagely, allocate_averagely_by_circle
from mqreplay.core.java import is_blank, utf16_key
from mqreplay.core.message_queue import MessageQueue, sort_message_queues
from mqreplay.core.retry_topic import is_retry_topic
from mqreplay.words.errors import IllegalArgument

PULL = "PULL"
POP = "POP"
BROADCASTING = "BROADCASTING"
LMQ_PREFIX = "%LMQ%"
ALL_QUEUES = -1
STRATEGIES = {"AVG": allocate_averagely, "AVG_BY_CIRCLE": allocate_averagely_by_circle}


class RequestMode(NamedTuple):
    """How a group consumes a topic: ``mode`` PULL or POP, and of how many further clients each gets the queues."""

    mode: str = PULL
    pop_share_queue_num: int = 0


def message_request_mode(
    topic: str,
    stored: RequestMode | None,
    default_message_request_mode: str = PULL,
    default_pop_share_queue_num: int = -1,
) -> RequestMode:
    """Return the mode in which a group gets a topic from a broker (QueryAssignmentProcessor#queryAssignment).

    ``stored``: its entry in messageRequestMode.json, None for none; the last two are settings of the broker.
    A client with clientRebalance=true never asks and always pulls.

    >>> message_request_mode("T", None), message_request_mode("T", None, "POP")
    (RequestMode(mode='PULL', pop_share_queue_num=0), RequestMode(mode='POP', pop_share_queue_num=-1))
    >>> message_request_mode("%RETRY%g", None, "POP").mode, message_request_mode("T", RequestMode("POP", 2)).mode
    ('PULL', 'POP')
    """
    if stored is not None:
        return stored
    if is_retry_topic(topic) or default_message_request_mode != POP:
        return RequestMode(PULL)
    return RequestMode(POP, default_pop_share_queue_num)


def allocate_for_pop(
    strategy_name: str,
    consumer_group: str | None,
    client_id: str | None,
    mq_all: Sequence[MessageQueue],
    cid_all: Sequence[str | None],
    pop_share_queue_num: int,
) -> list[MessageQueue]:
    """Return the queues of one client in mode POP, as the broker lists them, duplicates included; both lists sorted.

    All clients get all brokers (queue id -1) if ``pop_share_queue_num`` is below 1 or leaves out no other client.
    Else a client gets its own share and those of the next clients; with more clients than queues, one queue.
    Raises IllegalArgument for an empty argument, and for a strategy other than AVG and AVG_BY_CIRCLE.
    Follows QueryAssignmentProcessor#allocate4Pop.

    >>> mq_all = [MessageQueue("T", "b", queue_id) for queue_id in range(4)]
    >>> [mq.queue_id for mq in allocate_for_pop("AVG", "g", "c4", mq_all, ["c1", "c2", "c3", "c4"], 1)]
    [3, 0]
    >>> [mq.queue_id for mq in allocate_for_pop("AVG", "g", "c4", mq_all[:2], ["c1", "c2", "c3", "c4"], 1)]
    [1]
    >>> [mq.queue_id for mq in allocate_for_pop("AVG", "g", "c1", mq_all, ["c1", "c2"], 1)]
    [-1, -1, -1, -1]
    """
    if strategy_name not in STRATEGIES:
        raise IllegalArgument(f"unsupported strategy [{strategy_name}]")
    if pop_share_queue_num <= 0 or pop_share_queue_num >= len(cid_all) - 1:
        return [mq._replace(queue_id=ALL_QUEUES) for mq in mq_all]
    if len(cid_all) > len(mq_all):
        return _one_queue(client_id, mq_all, cid_all)
    allocate = STRATEGIES[strategy_name]
    queues = allocate(consumer_group, client_id, mq_all, cid_all)
    if client_id in cid_all:
        index = cid_all.index(client_id)
        for step in range(1, pop_share_queue_num + 1):
            following = cid_all[(index + step) % len(cid_all)]
            queues += allocate(consumer_group, following, mq_all, cid_all)
    return queues


def query_assignment(
    topic: str,
    consumer_group: str | None,
    client_id: str | None,
    message_model: str,
    strategy_name: str | None,
    request_mode: RequestMode,
    topic_subscribe_info: Collection[MessageQueue] | None,
    cid_all: Collection[str] | None,
    server_load_balancer_enable: bool = True,
    broker_name: str | None = None,
) -> list[MessageQueue] | None:
    """Return the queues that a broker assigns to a client, sorted and each once; None: the client keeps what it has.

    ``message_model`` BROADCASTING or CLUSTERING; ``topic_subscribe_info``: the topic's queues by the broker's route,
    None if it knows none; ``cid_all``: the group's clients at this broker, None if it knows no such group.
    ``broker_name`` is needed for a topic of LMQ. The broker answers None for all that goes wrong: an unknown topic or
    group, another strategy, an empty argument. An empty list takes all queues from the client.
    Follows QueryAssignmentProcessor#doLoadBalance.

    >>> queues = {MessageQueue("T", "b", 1), MessageQueue("T", "b", 0)}
    >>> query_assignment("T", "g", "c2", "CLUSTERING", "AVG", RequestMode(), queues, ["c2", "c1"])
    [MessageQueue(topic='T', broker_name='b', queue_id=1)]
    >>> query_assignment("T", "g", "c2", "CLUSTERING", "AVG", RequestMode("POP"), queues, ["c2", "c1"])
    [MessageQueue(topic='T', broker_name='b', queue_id=-1)]
    >>> query_assignment("T", "g", "c2", "CLUSTERING", "CONSISTENT_HASH", RequestMode(), queues, ["c2"]) is None
    True
    """
    if message_model == BROADCASTING:
        return _sorted_once(topic_subscribe_info)
    if topic.startswith(LMQ_PREFIX):
        if broker_name is None:
            raise IllegalArgument("the name of the broker is needed for a topic of LMQ")
        topic_subscribe_info = [MessageQueue(topic, broker_name, 0)]
    if topic_subscribe_info is None or not server_load_balancer_enable:
        return _sorted_once(topic_subscribe_info)
    if cid_all is None or strategy_name not in STRATEGIES:
        return None
    mq_all = sort_message_queues(set(topic_subscribe_info))
    clients = sorted(cid_all, key=utf16_key)
    try:
        if request_mode.mode == POP:
            queues = allocate_for_pop(
                strategy_name, consumer_group, client_id, mq_all, clients, request_mode.pop_share_queue_num
            )
        else:
            queues = STRATEGIES[strategy_name](consumer_group, client_id, mq_all, clients)
    except IllegalArgument:
        return None
    return _sorted_once(queues)


def _one_queue(
    current_cid: str | None, mq_all: Sequence[MessageQueue], cid_all: Sequence[str | None]
) -> list[MessageQueue]:
    """One queue for a client where there are more clients than queues (QueryAssignmentProcessor#allocate)."""
    if is_blank(current_cid):
        raise IllegalArgument("currentCID is empty")
    if not mq_all:
        raise IllegalArgument("mqAll is null or mqAll empty")
    return [mq_all[cid_all.index(current_cid) % len(mq_all)]] if current_cid in cid_all else []


def _sorted_once(queues: Collection[MessageQueue] | None) -> list[MessageQueue] | None:
    return None if queues is None else sort_message_queues(set(queues))
