"""Which queues a consumer gets: RocketMQ's allocation strategies, and `allocate`, by their getName().

Every member of a group computes its own share from what it sees, with nobody to correct it. The law of all
strategies but CONFIG: check the arguments in a fixed order (AbstractAllocateMessageQueueStrategy#check); take
both lists as they are, never sorting them (the caller has: see message_queue); give a client id that is not
in cid_all nothing at all; and let the first place of a client id count, should it be there twice.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from mqreplay.core.allocation_check import check
from mqreplay.core.allocation_consistent_hash import HashFunction, allocate_consistent_hash
from mqreplay.core.allocation_machine_room import (
    InnerStrategy,
    MachineRoomResolver,
    allocate_machine_room,
    allocate_machine_room_nearby,
)
from mqreplay.core.message_queue import MessageQueue
from mqreplay.errors import UnknownStrategy

NEARBY_PREFIX = "MACHINE_ROOM_NEARBY-"


def allocate_averagely(
    consumer_group: str | None,
    current_cid: str | None,
    mq_all: Sequence[MessageQueue] | None,
    cid_all: Sequence[str | None] | None,
) -> list[MessageQueue]:
    """AVG, the default: cut mq_all into neighbouring shares, equal or larger by one for the first consumers.

    Raises IllegalArgument for an empty current_cid, mq_all or cid_all. More consumers than queues: one queue
    each for the first, none for the rest. consumer_group is not looked at.
    Follows AllocateMessageQueueAveragely#allocate.

    >>> mq_all = [MessageQueue("T", "b", i) for i in range(4)]
    >>> [mq.queue_id for mq in allocate_averagely("g", "c1", mq_all, ["c1", "c2", "c3"])]
    [0, 1]
    >>> [mq.queue_id for mq in allocate_averagely("g", "c3", mq_all, ["c1", "c2", "c3"])]
    [3]
    """
    mq_all, cid_all, index = check(current_cid, mq_all, cid_all)
    if index < 0:
        return []
    average, mod = divmod(len(mq_all), len(cid_all))
    average_size = average + (1 if index < mod else 0) if len(mq_all) > len(cid_all) else 1
    start_index = index * average_size if mod > 0 and index < mod else index * average_size + mod
    return list(mq_all[start_index : start_index + average_size])


def allocate_averagely_by_circle(
    consumer_group: str | None,
    current_cid: str | None,
    mq_all: Sequence[MessageQueue] | None,
    cid_all: Sequence[str | None] | None,
) -> list[MessageQueue]:
    """AVG_BY_CIRCLE: deal the queues out like cards, one to each consumer in turn.

    Raises IllegalArgument for an empty current_cid, mq_all or cid_all. consumer_group is not looked at.
    Follows AllocateMessageQueueAveragelyByCircle#allocate.

    >>> mq_all = [MessageQueue("T", "b", i) for i in range(4)]
    >>> [mq.queue_id for mq in allocate_averagely_by_circle("g", "c1", mq_all, ["c1", "c2", "c3"])]
    [0, 3]
    """
    mq_all, cid_all, index = check(current_cid, mq_all, cid_all)
    return [] if index < 0 else list(mq_all[index :: len(cid_all)])


allocate_circle = allocate_averagely_by_circle


def allocate_by_config(message_queue_list: Sequence[MessageQueue] | None) -> list[MessageQueue] | None:
    """CONFIG: the list the user wrote, as it is, whoever else is there; no argument is checked.

    None where the list was never set; RebalanceImpl then gives the client no queue.
    Follows AllocateMessageQueueByConfig#allocate.

    >>> allocate_by_config([MessageQueue("T", "b", 7)])
    [MessageQueue(topic='T', broker_name='b', queue_id=7)]
    """
    return None if message_queue_list is None else list(message_queue_list)


class StrategySettings(NamedTuple):
    """What a strategy is made with: each field is read by one of them.

    message_queue_list: CONFIG. consumeridcs, the rooms served: MACHINE_ROOM. virtual_node_cnt, places a
    client, and custom_hash_function: CONSISTENT_HASH. machine_room_resolver: MACHINE_ROOM_NEARBY-<inner>.
    """

    message_queue_list: Sequence[MessageQueue] | None = None
    consumeridcs: Collection[str] | None = None
    virtual_node_cnt: int = 10
    custom_hash_function: HashFunction | None = None
    machine_room_resolver: MachineRoomResolver | None = None


DEFAULTS = StrategySettings()


def allocate(
    strategy_name: str,
    consumer_group: str | None,
    current_cid: str | None,
    mq_all: Sequence[MessageQueue] | None,
    cid_all: Sequence[str | None] | None,
    settings: StrategySettings = DEFAULTS,
) -> list[MessageQueue] | None:
    """The queues that the strategy of that getName() gives current_cid, in the order in which it gives them.

    None for CONFIG without a list. mq_all and cid_all are to be sorted before, as the client sorts them (see
    message_queue). Raises UnknownStrategy for a name RocketMQ does not ship, IllegalArgument and NullPointer where
    its code does.
    Follows AllocateMessageQueueStrategy#allocate.

    >>> mq_all = [MessageQueue("T", "b", i) for i in range(3)]
    >>> [mq.queue_id for mq in allocate("AVG", "g", "c2", mq_all, ["c1", "c2"])]
    [2]
    >>> allocate("AVG_BY_CIRCLE", "g", "c9", mq_all, ["c1", "c2"])
    []
    """
    if strategy_name == "AVG":
        return allocate_averagely(consumer_group, current_cid, mq_all, cid_all)
    if strategy_name == "AVG_BY_CIRCLE":
        return allocate_averagely_by_circle(consumer_group, current_cid, mq_all, cid_all)
    if strategy_name == "CONFIG":
        return allocate_by_config(settings.message_queue_list)
    if strategy_name == "MACHINE_ROOM":
        return allocate_machine_room(current_cid, mq_all, cid_all, settings.consumeridcs)
    if strategy_name == "CONSISTENT_HASH":
        places, hash_function = settings.virtual_node_cnt, settings.custom_hash_function
        return allocate_consistent_hash(current_cid, mq_all, cid_all, places, hash_function)
    if strategy_name.startswith(NEARBY_PREFIX):
        inner = _inner_strategy(strategy_name.removeprefix(NEARBY_PREFIX), consumer_group, settings)
        resolver = settings.machine_room_resolver
        return allocate_machine_room_nearby(current_cid, mq_all, cid_all, inner, resolver)
    raise UnknownStrategy(f"{strategy_name!r} is none of RocketMQ's own allocation strategies")


def _inner_strategy(strategy_name: str, consumer_group: str | None, settings: StrategySettings) -> InnerStrategy:
    """The strategy within MACHINE_ROOM_NEARBY, which shares the queues of one room."""

    def share(cid: str, mqs: Sequence[MessageQueue], cids: Sequence[str | None]) -> list[MessageQueue] | None:
        return allocate(strategy_name, consumer_group, cid, mqs, cids, settings)

    return share
