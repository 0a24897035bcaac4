"""Lost, duplicate and unexpected messages, and violations of a queue's order.

Not RocketMQ's rules: the sums are those of Jepsen's total-queue checker, over multisets, because a message may be sent
twice and delivered three times. The caller identifies a message by its key, its unique id, or queue and offset. Input
that was not recorded is None, and so are results that depend on it: unknown is never zero.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable
from typing import Generic, NamedTuple, TypeVar

Message = TypeVar("Message", bound=Hashable)


class DeliveryAudit(NamedTuple, Generic[Message]):
    """The number of messages with each problem; None if unknown.

    ``lost``: acknowledged, and never delivered. ``duplicated``: delivered more often than it was sent. ``unexpected``:
    delivered, and never sent. ``recovered``: delivered though its sending was not acknowledged. ``waiting``:
    acknowledged and not delivered yet, which is no loss.
    """

    lost: Counter[Message] | None
    duplicated: Counter[Message] | None
    unexpected: Counter[Message] | None
    recovered: Counter[Message] | None
    waiting: Counter[Message] | None


def audit_delivery(
    sent: Iterable[Message] | None,
    acknowledged: Iterable[Message] | None,
    delivered: Iterable[Message] | None,
    waiting: Iterable[Message] | None = (),
) -> DeliveryAudit[Message]:
    """Return the outcome of the messages of one topic in one group; repeats in the arguments count.

    ``sent``: each attempt, answered or not (what is acknowledged was sent, in or out of that list); ``acknowledged``:
    each SEND_OK; ``delivered``: each delivery to a listener; ``waiting``: messages that the group's offset has not
    passed at the end, none by default. None: not recorded. Without ``sent``, a message counts as sent as often as it
    was acknowledged, but at least once: then duplicates are known, but unexpected messages are not. Without
    ``waiting``, lost messages are known only if all were delivered. No method of RocketMQ: Jepsen's checker
    total-queue.

    >>> found = audit_delivery(sent="abcd", acknowledged="abc", delivered="bbcdx")
    >>> {way: "".join(messages.elements()) for way, messages in found._asdict().items()}
    {'lost': 'a', 'duplicated': 'b', 'unexpected': 'x', 'recovered': 'd', 'waiting': ''}
    >>> audit_delivery(sent="ab", acknowledged="ab", delivered=None).lost is None
    True
    """
    if delivered is None:
        return DeliveryAudit(None, None, None, None, None)
    got = Counter(delivered)
    confirmed = None if acknowledged is None else Counter(acknowledged)
    if sent is None:
        attempted, unexpected = Counter(got.keys()) | (confirmed or Counter()), None
    else:
        attempted = Counter(sent) | (confirmed or Counter())
        unexpected = Counter({message: times for message, times in got.items() if message not in attempted})
    duplicated = got - attempted - (unexpected or Counter())
    if confirmed is None:
        return DeliveryAudit(None, duplicated, unexpected, None, None)
    lost, still = _lost(confirmed - got, waiting)
    recovered = None if sent is None else (got & attempted) - confirmed
    return DeliveryAudit(lost, duplicated, unexpected, recovered, still)


def _lost(
    missing: Counter[Message], waiting: Iterable[Message] | None
) -> tuple[Counter[Message] | None, Counter[Message] | None]:
    if waiting is None:
        return (None, None) if missing else (Counter(), Counter())
    still = missing & Counter(waiting)
    return missing - still, still


class Delivery(NamedTuple):
    """A delivery to a listener: queue (topic, broker name, queue id), client, offset in messages.

    ``reconsume_times``: how often its consumption had failed before.
    """

    queue: Hashable
    client_id: str
    queue_offset: int
    reconsume_times: int = 0


class OrderViolation(NamedTuple):
    """A delivery, and the higher offset (messages) of that queue that the same client received before."""

    delivery: Delivery
    after_offset: int


def order_violations(deliveries: Iterable[Delivery] | None) -> list[OrderViolation] | None:
    """Return messages that a client received for the first time after a later one of the queue; None: unknown.

    ``deliveries`` in order of time. Retries are not counted, and neither are messages that any client received before
    (after a reset or a change of owner; audit_delivery counts them). RocketMQ promises this order only to orderly
    listeners: the caller leaves out concurrent ones.
    No method of RocketMQ: the order that ConsumeMessageOrderlyService promises a listener.

    >>> deliveries = [Delivery("q", "c", 1), Delivery("q", "c", 3), Delivery("q", "c", 2), Delivery("q", "c", 1)]
    >>> [(found.delivery.queue_offset, found.after_offset) for found in order_violations(deliveries)]
    [(2, 3)]
    """
    if deliveries is None:
        return None
    found: list[OrderViolation] = []
    highest: dict[tuple[Hashable, str], int] = {}
    seen: set[tuple[Hashable, int]] = set()
    for delivery in deliveries:
        owner, place = (delivery.queue, delivery.client_id), (delivery.queue, delivery.queue_offset)
        before = highest.get(owner, delivery.queue_offset)
        if delivery.queue_offset < before and place not in seen and not delivery.reconsume_times:
            found.append(OrderViolation(delivery, before))
        seen.add(place)
        highest[owner] = max(before, delivery.queue_offset)
    return found
