"""The target of a pull: the broker id for a queue, and the address of that broker.

A client asks the master of a queue until an answer suggests another broker, then that one until another suggestion. If
the id is not in the route, it uses another broker of the route: so pulls go to a slave when the master is down, and
return when the route has it again.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Generic, NamedTuple, TypeVar

from mqreplay.core.java import long_hash, to_long
from mqreplay.core.java_maps import hash_map_order
from mqreplay.core.version import CLIENT_4, at_least
from mqreplay.words.errors import NullPointer

MASTER_ID = 0
Q = TypeVar("Q", bound=Hashable)


class FindBrokerResult(NamedTuple):
    """The result of a lookup in the route: address, whether it is a slave's, and version number (0: unknown)."""

    broker_addr: str
    slave: bool
    broker_version: int = 0


def recalculate_pull_from_which_node(
    suggestion: int | None, connect_broker_by_user: bool = False, default_broker_id: int = MASTER_ID
) -> int:
    """Return the broker id for the next pull of a queue.

    suggestion is the last one kept for that queue, None before the first. A user who fixed the broker
    (connect_broker_by_user) gets default_broker_id, regardless of suggestions.
    Follows PullAPIWrapper#recalculatePullFromWhichNode.

    >>> recalculate_pull_from_which_node(None), recalculate_pull_from_which_node(1)
    (0, 1)
    >>> recalculate_pull_from_which_node(1, connect_broker_by_user=True, default_broker_id=2)
    2
    """
    if connect_broker_by_user:
        return default_broker_id
    return MASTER_ID if suggestion is None else suggestion


class PullFromWhichNodeTable(Generic[Q]):
    """One client's last suggestion for each queue, as PullAPIWrapper keeps it in memory.

    >>> table = PullFromWhichNodeTable()
    >>> table.update_pull_from_which_node(("T", "b", 0), 1)
    >>> [table.recalculate_pull_from_which_node(("T", "b", queue_id)) for queue_id in (0, 1)]
    [1, 0]
    """

    def __init__(self, connect_broker_by_user: bool = False, default_broker_id: int = MASTER_ID) -> None:
        """No suggestion yet; the two settings are those of recalculate_pull_from_which_node."""
        self.connect_broker_by_user = connect_broker_by_user
        self.default_broker_id = default_broker_id
        self._suggestions: dict[Q, int] = {}

    def update_pull_from_which_node(self, mq: Q, broker_id: int) -> None:
        """Store the suggestion of an answer, even of an unknown id. Follows PullAPIWrapper#updatePullFromWhichNode.

        >>> PullFromWhichNodeTable().update_pull_from_which_node("queue", 1)
        """
        self._suggestions[mq] = broker_id

    def recalculate_pull_from_which_node(self, mq: Q) -> int:
        """Return the broker id for the next pull of mq; see the function of that name.

        Follows PullAPIWrapper#recalculatePullFromWhichNode.

        >>> table = PullFromWhichNodeTable(connect_broker_by_user=True, default_broker_id=2)
        >>> table.recalculate_pull_from_which_node("queue")
        2
        """
        return recalculate_pull_from_which_node(
            self._suggestions.get(mq), self.connect_broker_by_user, self.default_broker_id
        )


def broker_ids_in_order(inserted: Iterable[int]) -> list[int]:
    """Return the broker ids of a broker name in the order of a HashMap<Long, String>, put in this order.

    Follows HashMap#entrySet, as MQClientInstance#findBrokerAddressInSubscribe walks it.

    >>> broker_ids_in_order([65537, 2, 65536])
    [65537, 65536, 2]
    """
    return hash_map_order(inserted, long_hash)


def find_broker_address_in_subscribe(
    broker_addr_table: Mapping[str, Mapping[int, str]],
    broker_name: str | None,
    broker_id: int,
    only_this_broker: bool,
    broker_version_table: Mapping[str, Mapping[str, int]] | None = None,
    version: str = CLIENT_4,
) -> FindBrokerResult | None:
    """Return the address to which a pull for broker_id of broker_name is sent, None if there is none.

    broker_addr_table is the client's: name to id to address, each inner mapping in the order of its puts. The
    exact id; else for a slave the id after it; else, unless only_this_broker, the first entry that the
    HashMap walks. broker_version_table gives the version number of name and address. `slave` says that the id
    asked for is not 0, and in the third case that the id found is not. Raises NullPointer for a None name
    (4.x; 5.x finds nothing).
    Follows MQClientInstance#findBrokerAddressInSubscribe.

    >>> table = {"b": {1: "10.0.0.2:10911"}}
    >>> find_broker_address_in_subscribe(table, "b", 0, False)
    FindBrokerResult(broker_addr='10.0.0.2:10911', slave=True, broker_version=0)
    """
    if broker_name is None:
        if at_least(version, "5.0.0"):
            return None
        raise NullPointer
    addresses = broker_addr_table.get(broker_name)
    if not addresses:
        return None
    slave = broker_id != MASTER_ID
    broker_addr = addresses.get(broker_id)
    if broker_addr is None and slave:
        broker_addr = addresses.get(to_long(broker_id + 1))
    if broker_addr is None and not only_this_broker:
        first = broker_ids_in_order(addresses)[0]
        broker_addr, slave = addresses[first], first != MASTER_ID
    if broker_addr is None:
        return None
    versions = (broker_version_table or {}).get(broker_name, {})
    return FindBrokerResult(broker_addr, slave, versions.get(broker_addr, 0))


def find_broker_address_in_publish(
    broker_addr_table: Mapping[str, Mapping[int, str]], broker_name: str | None
) -> str | None:
    """Return the master's address of broker_name, for messages and commits; None without a master.

    Follows MQClientInstance#findBrokerAddressInPublish.

    >>> find_broker_address_in_publish({"b": {0: "10.0.0.1:10911"}}, "b")
    '10.0.0.1:10911'
    """
    addresses = None if broker_name is None else broker_addr_table.get(broker_name)
    return addresses.get(MASTER_ID) if addresses else None
