"""RocketMQ's allocation strategies, and `allocate`, which selects one by its getName().

Every member of a group computes its own share from the lists that it sees; nobody corrects it. All strategies except
CONFIG check the arguments in a fixed order (AbstractAllocateMessageQueueStrategy#check), expect sorted lists (see
message_queue), give no queue to a client id that is not in cid_all, and use the first position of a client id that is
there twice. A running client reports its strategy as text (`strategy_name`).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final, NamedTuple

from mqreplay.core.allocation_check import check
from mqreplay.core.allocation_consistent_hash import HashFunction, allocate_consistent_hash
from mqreplay.core.allocation_machine_room import (
    InnerStrategy,
    MachineRoomResolver,
    allocate_machine_room,
    allocate_machine_room_nearby,
)
from mqreplay.core.message_queue import MessageQueue
from mqreplay.words.errors import UnknownStrategy

NEARBY_PREFIX = "MACHINE_ROOM_NEARBY-"
# Class (without its package) of a strategy, whose toString() running clients report -> getName(). MACHINE_ROOM_NEARBY's
# name ends with that of its inner strategy, which the text does not have.
NAMES: Final = {
    "AllocateMessageQueueAveragely": "AVG",
    "AllocateMessageQueueAveragelyByCircle": "AVG_BY_CIRCLE",
    "AllocateMessageQueueByConfig": "CONFIG",
    "AllocateMessageQueueByMachineRoom": "MACHINE_ROOM",
    "AllocateMachineRoomNearby": "MACHINE_ROOM_NEARBY",
    "AllocateMessageQueueConsistentHash": "CONSISTENT_HASH",
}
# Of RocketMQ since 4.0, and of the versions before.
PACKAGES: Final = (
    "org.apache.rocketmq.client.consumer.rebalance.",
    "com.alibaba.rocketmq.client.consumer.rebalance.",
)
_LAMBDA: Final = "$$Lambda"


def allocate_averagely(
    consumer_group: str | None,
    current_cid: str | None,
    mq_all: Sequence[MessageQueue] | None,
    cid_all: Sequence[str | None] | None,
) -> list[MessageQueue]:
    """AVG, the default: split mq_all into contiguous shares; the first consumers get one queue more if needed.

    Raises IllegalArgument for an empty current_cid, mq_all or cid_all. If there are more consumers than queues, the
    first consumers get one queue each, the others none. consumer_group has no effect.
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
    """AVG_BY_CIRCLE: give one queue to each consumer in turn.

    Raises IllegalArgument for an empty current_cid, mq_all or cid_all. consumer_group has no effect.
    Follows AllocateMessageQueueAveragelyByCircle#allocate.

    >>> mq_all = [MessageQueue("T", "b", i) for i in range(4)]
    >>> [mq.queue_id for mq in allocate_averagely_by_circle("g", "c1", mq_all, ["c1", "c2", "c3"])]
    [0, 3]
    """
    mq_all, cid_all, index = check(current_cid, mq_all, cid_all)
    return [] if index < 0 else list(mq_all[index :: len(cid_all)])


allocate_circle = allocate_averagely_by_circle


def allocate_by_config(message_queue_list: Sequence[MessageQueue] | None) -> list[MessageQueue] | None:
    """CONFIG: return the configured list unchanged; no argument is checked.

    None if the list was never set; RebalanceImpl then gives the client no queue.
    Follows AllocateMessageQueueByConfig#allocate.

    >>> allocate_by_config([MessageQueue("T", "b", 7)])
    [MessageQueue(topic='T', broker_name='b', queue_id=7)]
    """
    return None if message_queue_list is None else list(message_queue_list)


class StrategySettings(NamedTuple):
    """The parameters of strategies; each field belongs to one of them.

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
    """Return the queues that the strategy with this getName() gives to current_cid, in its order.

    None for CONFIG without a list. mq_all and cid_all must be sorted as the client sorts them (see message_queue).
    Raises UnknownStrategy for a strategy that RocketMQ does not ship, and IllegalArgument and NullPointer like its
    code. Follows AllocateMessageQueueStrategy#allocate.

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
    raise UnknownStrategy(f"{strategy_name!r} is not one of RocketMQ's own allocation strategies")


def _inner_strategy(strategy_name: str, consumer_group: str | None, settings: StrategySettings) -> InnerStrategy:
    """Return the inner strategy of MACHINE_ROOM_NEARBY, which shares the queues of one room."""

    def share(cid: str, mqs: Sequence[MessageQueue], cids: Sequence[str | None]) -> list[MessageQueue] | None:
        return allocate(strategy_name, consumer_group, cid, mqs, cids, settings)

    return share


def strategy_name(text: str | None) -> str | None:
    """Return getName() of the strategy whose toString() is ``text``; of an unknown class the class name.

    A strategy inherits Object's toString(): class name, ``@``, hash code. MACHINE_ROOM_NEARBY is without its inner
    strategy. The class name of a lambda is cut after the part that is the same in each process. None: unknown.
    Follows AllocateMessageQueueStrategy#getName of each class, MixAll#object2Properties.

    >>> strategy_name("org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragely@1f2a")
    'AVG'
    >>> strategy_name("org.apache.rocketmq.client.consumer.rebalance.AllocateMachineRoomNearby@7c30a502")
    'MACHINE_ROOM_NEARBY'
    >>> strategy_name("com.acme.AllocateByLoad@1f2a"), strategy_name("com.acme.Shares$$Lambda$31/0x0008@1f2a")
    ('com.acme.AllocateByLoad', 'com.acme.Shares$$Lambda')
    >>> strategy_name(""), strategy_name(None), strategy_name("null")
    (None, None, None)
    """
    if not text or text == "null":
        return None
    class_name = text.partition("@")[0]
    package, dot, own = class_name.rpartition(".")
    if package + dot in PACKAGES and own in NAMES:
        return NAMES[own]
    head, marker, _ = class_name.partition(_LAMBDA)
    return head + marker or None
