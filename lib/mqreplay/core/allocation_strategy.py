"""The name of a client's allocation strategy, from its toString(), which running clients report."""

from __future__ import annotations

from typing import Final

# Class (without its package) -> getName(). MACHINE_ROOM_NEARBY's name ends with that of its inner strategy, which the
# text does not have.
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
    head, found, _ = class_name.partition(_LAMBDA)
    return head + found or None
