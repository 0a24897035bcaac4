"""Laws of core whose arguments or answers are no Spark types, in a shape that is. Nothing is decided here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from mqreplay.core import allocation, pull_node
from mqreplay.core.message_queue import MessageQueue
from mqreplay.core.version import CLIENT_4


class FoundBroker(NamedTuple):
    """FindBrokerResult, and the id under which the address stands."""

    broker_addr: str
    broker_id: int
    slave: bool


class _Address(str):
    """An address that remembers its broker id, so that the one the law picks tells whose it is."""

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
) -> list[MessageQueue]:
    """allocation.allocate without the settings that only a client's code holds."""
    return allocation.allocate(strategy_name, consumer_group, current_cid, mq_all, cid_all)


def find_broker_address_in_subscribe(
    broker_addrs: Mapping[int, str] | None,
    broker_name: str | None,
    broker_id: int,
    only_this_broker: bool,
    version: str = CLIENT_4,
) -> FoundBroker | None:
    """pull_node.find_broker_address_in_subscribe over the one entry of the client's table that matters.

    broker_addrs is what the client has under broker_name, None if it does not have that name.
    """
    table: dict[str, dict[int, str]] = {}
    if broker_addrs is not None and broker_name is not None:
        table[broker_name] = {i: _address(i, addr) for i, addr in broker_addrs.items()}  # type: ignore[misc]
    found = pull_node.find_broker_address_in_subscribe(table, broker_name, broker_id, only_this_broker, version=version)
    if found is None:
        return None
    assert isinstance(found.broker_addr, _Address)
    return FoundBroker(str(found.broker_addr), found.broker_addr.broker_id, found.slave)


def update_pull_from_which_node(
    pull_from_which_node_table: Mapping[MessageQueue, int] | None, mq: MessageQueue, broker_id: int
) -> dict[MessageQueue, int]:
    """PullFromWhichNodeTable#update_pull_from_which_node: the client's table before, and after."""
    before = pull_from_which_node_table or {}
    table: pull_node.PullFromWhichNodeTable[MessageQueue] = pull_node.PullFromWhichNodeTable()
    for queue, suggestion in before.items():
        table.update_pull_from_which_node(queue, suggestion)
    table.update_pull_from_which_node(mq, broker_id)
    return {queue: table.recalculate_pull_from_which_node(queue) for queue in {**before, mq: broker_id}}
