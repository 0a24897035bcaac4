"""Laws of core whose arguments or answers are no Spark types, in a shape that is. Nothing is decided here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from mqreplay.core import (
    allocation,
    compute_pull_from,
    consumer_offset_manager,
    offset_store,
    pop_order,
    pull_node,
    rebalance_lock_manager,
    send_back,
)
from mqreplay.core import slave_suggestion as memory
from mqreplay.core.compute_pull_from import ConsumeFromWhere
from mqreplay.core.message_queue import MessageQueue
from mqreplay.core.pop_order import OrderInfo
from mqreplay.core.version import CLIENT_4
from mqreplay.words.errors import MqreplayError


class FoundBroker(NamedTuple):
    """FindBrokerResult, and the broker id of the address."""

    broker_addr: str
    broker_id: int
    slave: bool


class _Address(str):
    """An address with its broker id, so that the law's answer has the id."""

    broker_id: int


def _address(broker_id: int, broker_addr: str | None) -> str | None:
    if broker_addr is None:
        return None
    address = _Address(broker_addr)
    address.broker_id = broker_id
    return address


def allocate(
    strategy_name: str,
    consumer_group: str | None,
    current_cid: str | None,
    mq_all: Sequence[MessageQueue] | None,
    cid_all: Sequence[str | None] | None,
) -> list[MessageQueue] | None:
    """Return allocation.allocate without the settings that only a client's code holds."""
    return allocation.allocate(strategy_name, consumer_group, current_cid, mq_all, cid_all)


def find_broker_address_in_subscribe(
    broker_addr_table: Mapping[str, Mapping[int, str | None] | None] | None,
    broker_name: str | None,
    broker_id: int,
    only_this_broker: bool,
    version: str = CLIENT_4,
) -> FoundBroker | None:
    """Return pull_node.find_broker_address_in_subscribe, with the id under which the address was found."""
    table = {
        name: {broker_id: _address(broker_id, addr) for broker_id, addr in (addrs or {}).items()}
        for name, addrs in (broker_addr_table or {}).items()
        if name == broker_name  # the law reads no other
    }
    result = pull_node.find_broker_address_in_subscribe(
        table,  # type: ignore[arg-type]  # an address that is null counts as none
        broker_name,
        broker_id,
        only_this_broker,
        version=version,
    )
    if result is None:
        return None
    assert isinstance(result.broker_addr, _Address)
    return FoundBroker(str(result.broker_addr), result.broker_addr.broker_id, result.slave)


def update_pull_from_which_node(
    pull_from_which_node_table: Mapping[MessageQueue, int] | None, mq: MessageQueue, broker_id: int
) -> dict[MessageQueue, int]:
    """Return the client's table after PullFromWhichNodeTable#update_pull_from_which_node, from the table before."""
    before = pull_from_which_node_table or {}
    table: pull_node.PullFromWhichNodeTable[MessageQueue] = pull_node.PullFromWhichNodeTable()
    for queue, suggestion in before.items():
        table.update_pull_from_which_node(queue, suggestion)
    table.update_pull_from_which_node(mq, broker_id)
    return {queue: table.recalculate_pull_from_which_node(queue) for queue in {**before, mq: broker_id}}


def can_be_batch(message_total: int, buffer_total: int, last_size: int, is_in_disk: bool) -> bool:
    """Return slave_suggestion.can_be_batch with the default limits."""
    return memory.can_be_batch(message_total, buffer_total, last_size, is_in_disk)


class UnknownConsumeFromWhere(MqreplayError):
    """A name that ConsumeFromWhere does not have."""


def compute_pull_from_where(
    consume_from_where: str, last_offset: int, topic: str, admin_answer: int | None = None
) -> int:
    """Return compute_pull_from.compute_pull_from_where by name; a time is in the broker's answer.

    Raises:
        UnknownConsumeFromWhere.
    """
    try:
        where = ConsumeFromWhere(consume_from_where)
    except ValueError:
        raise UnknownConsumeFromWhere(f"{consume_from_where} is no ConsumeFromWhere") from None
    return compute_pull_from.compute_pull_from_where(where, last_offset, topic, admin_answer, "19700101000000")


def try_lock(holder: str | None, last_update_timestamp: int | None, client_id: str, now: int) -> bool | None:
    """Return whether rebalance_lock_manager.try_lock grants it; None: it depends on the time, which is not known."""
    if holder is None or holder == client_id:
        return True
    if last_update_timestamp is None:
        return None
    entry = rebalance_lock_manager.LockEntry(holder, last_update_timestamp)
    return rebalance_lock_manager.try_lock(entry, client_id, now) is not None


class Increased(NamedTuple):
    """The answer of compare_and_increase_only, with names."""

    moved: bool
    offset: int


def compare_and_increase_only(target: int, value: int) -> Increased:
    """Return offset_store.compare_and_increase_only, with names."""
    return Increased(*offset_store.compare_and_increase_only(target, value))


class Committed(NamedTuple):
    """The offset that a commit replaced, None if there was none, and the broker's table after it."""

    previous_offset: int | None
    offset_table: consumer_offset_manager.OffsetTable


def commit_offset(
    offset_table: Mapping[str, Mapping[int, int] | None] | None,
    group: str,
    topic: str,
    queue_id: int,
    offset: int,
) -> Committed:
    """Return consumer_offset_manager.commit_offset on a copy of the broker's table."""
    table = {key: dict(queues or {}) for key, queues in (offset_table or {}).items()}
    previous = consumer_offset_manager.commit_offset(table, group, topic, queue_id, offset)
    return Committed(previous, table)


def is_dead_letter(
    delay_level: int, reconsume_times: int, retry_max_times: int, max_reconsume_times: int | None = None
) -> bool:
    """Return send_back.is_dead_letter of a request of a client of 3.4.9 or later."""
    request = send_back.SendBackRequest("", 0, delay_level, max_reconsume_times)
    return send_back.is_dead_letter(request, send_back.RetryGroup(1, retry_max_times), reconsume_times)


def check_block(
    offset_list: Sequence[int] | None,
    commit_offset_bit: int,
    attempt_id: str | None,
    pop_time: int,
    stored_invisible_time: int | None,
    offset_next_visible_time: Mapping[int, int] | None,
    request_attempt_id: str | None,
    request_invisible_time: int,
    now: int,
) -> bool:
    """Return pop_order.check_block of an entry of consumerOrderInfo.json."""
    info = OrderInfo(
        attempt_id,
        pop_time,
        stored_invisible_time,
        None if offset_list is None else tuple(offset_list),
        offset_next_visible_time,
        commit_offset_bit=commit_offset_bit,
    )
    return pop_order.check_block(info, request_attempt_id, request_invisible_time, now)


def next_offset(offset_list: Sequence[int] | None, commit_offset_bit: int) -> int:
    """Return pop_order.next_offset of an entry of consumerOrderInfo.json."""
    offsets = None if offset_list is None else tuple(offset_list)
    return pop_order.next_offset(OrderInfo(None, 0, None, offsets, commit_offset_bit=commit_offset_bit))
