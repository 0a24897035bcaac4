"""Strategies with machine rooms: MACHINE_ROOM by broker name, MACHINE_ROOM_NEARBY by a resolver."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Protocol, TypeVar

from mqreplay.core.allocation_check import check
from mqreplay.core.java import split_on_char, utf16_key
from mqreplay.core.message_queue import MessageQueue
from mqreplay.words.errors import IllegalArgument, NullPointer

InnerStrategy = Callable[[str, Sequence[MessageQueue], Sequence[str | None]], list[MessageQueue] | None]
T = TypeVar("T")


class MachineRoomResolver(Protocol):
    """AllocateMachineRoomNearby.MachineRoomResolver: the machine rooms of brokers and clients."""

    def broker_deploy_in(self, message_queue: MessageQueue) -> str | None:
        """Return the machine room of a queue's broker. Follows MachineRoomResolver#brokerDeployIn."""

    def consumer_deploy_in(self, client_id: str | None) -> str | None:
        """Return the machine room of a client. Follows MachineRoomResolver#consumerDeployIn."""


def allocate_machine_room(
    current_cid: str | None,
    mq_all: Sequence[MessageQueue] | None,
    cid_all: Sequence[str | None] | None,
    consumeridcs: Collection[str] | None,
) -> list[MessageQueue]:
    """MACHINE_ROOM: an even share of the queues whose broker is ``room@name``, the room in consumeridcs.

    Shares are neighbouring queues; of those left over, one more each from the end of the list to the first
    consumers. Raises IllegalArgument for an empty current_cid, mq_all or cid_all; NullPointer where
    consumeridcs is needed and None.
    Follows AllocateMessageQueueByMachineRoom#allocate.

    >>> mq_all = [MessageQueue("T", "r1@b", i) for i in range(5)] + [MessageQueue("T", "b", 0)]
    >>> [mq.queue_id for mq in allocate_machine_room("c1", mq_all, ["c1", "c2"], {"r1"})]
    [0, 1, 4]
    """
    mq_all, cid_all, current_index = check(current_cid, mq_all, cid_all)
    if current_index < 0:
        return []
    premq_all = [mq for mq in mq_all if _in_rooms(mq.broker_name, consumeridcs)]
    mod, rem = divmod(len(premq_all), len(cid_all))
    start_index = mod * current_index
    result = premq_all[start_index : start_index + mod]
    if rem > current_index:
        result.append(premq_all[current_index + mod * len(cid_all)])
    return result


def _in_rooms(broker_name: str, consumeridcs: Collection[str] | None) -> bool:
    temp = split_on_char(broker_name, "@")
    if len(temp) != 2:
        return False
    if consumeridcs is None:
        raise NullPointer
    return temp[0] in consumeridcs


def allocate_machine_room_nearby(
    current_cid: str | None,
    mq_all: Sequence[MessageQueue] | None,
    cid_all: Sequence[str | None] | None,
    allocate_message_queue_strategy: InnerStrategy | None,
    machine_room_resolver: MachineRoomResolver | None,
) -> list[MessageQueue]:
    """MACHINE_ROOM_NEARBY-<inner>: the queues of the consumer's own room, shared with that room's consumers.

    Then, room by room in string order, the queues of rooms without any consumer, shared among all. The inner
    strategy does the sharing: (current_cid, mq_all, cid_all) -> queues. Raises NullPointer without an inner
    strategy or a resolver, and where the inner strategy gives None; IllegalArgument for an empty current_cid,
    mq_all or cid_all, and for a queue or client without a room.
    Follows AllocateMachineRoomNearby#allocate.

    >>> allocate_machine_room_nearby("c", [MessageQueue("T", "b", 0)], ["c"], lambda cid, mqs, cids: mqs, None)
    Traceback (most recent call last):
    mqreplay.words.errors.NullPointer: java.lang.NullPointerException: machineRoomResolver is null
    """
    if allocate_message_queue_strategy is None:
        raise NullPointer("allocateMessageQueueStrategy is null")
    if machine_room_resolver is None:
        raise NullPointer("machineRoomResolver is null")
    mq_all, cid_all, index = check(current_cid, mq_all, cid_all)
    if index < 0 or current_cid is None:
        return []
    mr2_mq = _by_room(mq_all, machine_room_resolver.broker_deploy_in, "mq")
    mr2c = _by_room(cid_all, machine_room_resolver.consumer_deploy_in, "consumer id")

    current_machine_room = machine_room_resolver.consumer_deploy_in(current_cid) or ""
    result: list[MessageQueue] = []
    mq_in_this_machine_room = mr2_mq.pop(current_machine_room, None)
    if mq_in_this_machine_room:
        here = allocate_message_queue_strategy(current_cid, mq_in_this_machine_room, mr2c[current_machine_room])
        result += _not_null(here)
    # mr2Mq is a TreeMap: rooms come in the order of their names as Java strings.
    for machine_room in sorted(mr2_mq, key=utf16_key):
        if machine_room not in mr2c:
            result += _not_null(allocate_message_queue_strategy(current_cid, mr2_mq[machine_room], cid_all))
    return result


def _not_null(queues: list[MessageQueue] | None) -> list[MessageQueue]:
    if queues is None:
        raise NullPointer  # of Java's addAll
    return queues


def _by_room(found: Iterable[T], room_of: Callable[[T], str | None], what: str) -> dict[str, list[T]]:
    rooms: dict[str, list[T]] = {}
    for each in found:
        room = room_of(each)
        if not room:
            raise IllegalArgument(f"Machine room is null for {what} {each}")
        rooms.setdefault(room, []).append(each)
    return rooms
