"""A name server's view of the brokers, over time: RouteInfoManager.

Brokers register every 30 s with all their topics; a name server forgets one that was silent for two
minutes, or whose channel closed, and its topics with the last address of its name. Follows
org.apache.rocketmq.namesrv.routeinfo.RouteInfoManager of 4.9, oddities included: an address registered
under two names is forgotten under one of them only, a broker name registered in two clusters stays listed
in the second. (5.x gives each broker its own time and adds acting masters; those are not followed.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from mqreplay.core.java import string_hash
from mqreplay.core.java_maps import hash_map_order
from mqreplay.core.topic_route import (
    MASTER_ID,
    PERM_READ,
    PERM_WRITE,
    BrokerData,
    QueueData,
    TopicRouteData,
    is_readable,
    is_writeable,
)
from mqreplay.core.version import BROKER_4, at_least

BROKER_CHANNEL_EXPIRED_TIME = 120_000  # ms
# First sizes of the tables: they set the order in which Java walks them.
BROKER_ADDR_TABLE_SIZE, CLUSTER_ADDR_TABLE_SIZE, BROKER_LIVE_TABLE_SIZE = 128, 32, 256


class TopicConfigs(NamedTuple):
    """What a broker registers of its topics: their settings, and a version that differs when they do.

    ``data_version`` is compared for equality alone (DataVersion#equals: state version, counter and time).
    """

    data_version: object
    topic_config_table: Mapping[str, QueueData]


class BrokerLiveInfo(NamedTuple):
    """A registered address: when it last registered (epoch ms), its topics' version, its HA address."""

    last_update_timestamp: int
    data_version: object
    ha_server_addr: str | None


class RegisterBrokerResult(NamedTuple):
    """What a slave learns from its registration: its master, if that is alive; a master learns nothing."""

    master_addr: str | None = None
    ha_server_addr: str | None = None


class RouteInfoManager:
    """The tables of one name server, changed by each method as RouteInfoManager.java changes them.

    >>> names = RouteInfoManager()
    >>> topics = TopicConfigs(1, {"T": QueueData("", 4, 4, 6)})
    >>> names.register_broker("C", "1:1", "b", 0, "1:2", topics, None, now=0)
    RegisterBrokerResult(master_addr=None, ha_server_addr=None)
    >>> names.pickup_topic_route_data("T").broker_datas
    [BrokerData(cluster='C', broker_name='b', broker_addrs={0: '1:1'})]
    >>> names.scan_not_active_broker(now=120_001), names.pickup_topic_route_data("T")
    (1, None)
    """

    def __init__(self) -> None:
        """No broker known, as a name server starts."""
        self.topic_queue_table: dict[str, dict[str, QueueData]] = {}
        self.broker_addr_table: dict[str, BrokerData] = {}
        self.cluster_addr_table: dict[str, set[str]] = {}
        self.broker_live_table: dict[str, BrokerLiveInfo] = {}
        self.filter_server_table: dict[str, Sequence[str]] = {}

    def register_broker(
        self,
        cluster_name: str,
        broker_addr: str,
        broker_name: str,
        broker_id: int,
        ha_server_addr: str | None,
        topic_config_wrapper: TopicConfigs | None,
        filter_server_list: Sequence[str] | None,
        now: int,
    ) -> RegisterBrokerResult:
        """REGISTER_BROKER at the time now, epoch ms (RouteInfoManager#registerBroker).

        Topics are taken only from masters, and only if their version or the broker is new. A missing topic
        is not forgotten. ``topic_config_wrapper`` None: the address is put down, and the rest fails
        (NullPointerException, which Java logs), so that the broker is not alive. ``filter_server_list``:
        None keeps them, empty removes them.

        >>> RouteInfoManager().register_broker("C", "1:1", "b", 1, None, None, None, now=0)
        RegisterBrokerResult(master_addr=None, ha_server_addr=None)
        """
        self.cluster_addr_table.setdefault(cluster_name, set()).add(broker_name)
        first = self._put_address(cluster_name, broker_addr, broker_name, broker_id)
        if topic_config_wrapper is None:
            return RegisterBrokerResult()
        if broker_id == MASTER_ID and (first or self._changed(broker_addr, topic_config_wrapper.data_version)):
            for topic, config in topic_config_wrapper.topic_config_table.items():
                queue_data = config._replace(broker_name=broker_name)
                self.topic_queue_table.setdefault(topic, {})[broker_name] = queue_data
        self.broker_live_table[broker_addr] = BrokerLiveInfo(now, topic_config_wrapper.data_version, ha_server_addr)
        if filter_server_list:
            self.filter_server_table[broker_addr] = filter_server_list
        elif filter_server_list is not None:
            self.filter_server_table.pop(broker_addr, None)
        return self._master_of(broker_name) if broker_id != MASTER_ID else RegisterBrokerResult()

    def unregister_broker(self, cluster_name: str, broker_addr: str, broker_name: str, broker_id: int) -> None:
        """UNREGISTER_BROKER, as a broker sends it at shutdown (RouteInfoManager#unregisterBroker).

        The id's current address is removed. With the last address of a name its topics are removed.

        >>> RouteInfoManager().unregister_broker("C", "1:1", "b", 0)
        """
        self.broker_live_table.pop(broker_addr, None)
        self.filter_server_table.pop(broker_addr, None)
        broker_data = self.broker_addr_table.get(broker_name)
        if broker_data is None:
            return
        if self._drop_address(broker_data, broker_id):
            self._drop_from_cluster(cluster_name, broker_name)
            self._drop_topics(broker_name)

    def scan_not_active_broker(self, now: int, broker_channel_expired_time: int = BROKER_CHANNEL_EXPIRED_TIME) -> int:
        """Forget brokers that were silent for longer than the time; return their number.

        A name server does it every 10 s, first after 5 s (RouteInfoManager#scanNotActiveBroker). All in ms,
        now in epoch ms.

        >>> RouteInfoManager().scan_not_active_broker(now=0)
        0
        """
        expired = [
            broker_addr
            for broker_addr in _walk(self.broker_live_table, BROKER_LIVE_TABLE_SIZE)
            if self.broker_live_table[broker_addr].last_update_timestamp + broker_channel_expired_time < now
        ]
        for broker_addr in expired:
            self.on_channel_destroy(broker_addr)
        return len(expired)

    def on_channel_destroy(self, remote_addr: str) -> None:
        """Forget a broker whose channel closed, by its address (RouteInfoManager#onChannelDestroy).

        Of several names with that address only the first that Java's map gives loses it, and of several
        clusters with that name only the first.

        >>> RouteInfoManager().on_channel_destroy("1:1")
        """
        if not remote_addr:
            return
        self.broker_live_table.pop(remote_addr, None)
        self.filter_server_table.pop(remote_addr, None)
        for broker_name in _walk(self.broker_addr_table, BROKER_ADDR_TABLE_SIZE):
            broker_data = self.broker_addr_table[broker_name]
            ids = [broker_id for broker_id, addr in broker_data.broker_addrs.items() if addr == remote_addr]
            if not ids:
                continue
            if self._drop_address(broker_data, ids[0]):
                for cluster_name in _walk(self.cluster_addr_table, CLUSTER_ADDR_TABLE_SIZE):
                    if broker_name in self.cluster_addr_table[cluster_name]:
                        self._drop_from_cluster(cluster_name, broker_name)
                        break
                self._drop_topics(broker_name)
            return

    def wipe_write_perm_of_broker(self, broker_name: str) -> int:
        """Remove the write permission from a broker's topics; return their number.

        It lasts until the broker registers a new version. RouteInfoManager#wipeWritePermOfBrokerByLock.

        >>> RouteInfoManager().wipe_write_perm_of_broker("b")
        0
        """
        return self._set_perm(broker_name, lambda perm: perm & ~PERM_WRITE)

    def add_write_perm_of_broker(self, broker_name: str) -> int:
        """Give a broker's topics only read and write permission; return their number.

        RouteInfoManager#addWritePermOfBrokerByLock.

        >>> RouteInfoManager().add_write_perm_of_broker("b")
        0
        """
        return self._set_perm(broker_name, lambda perm: PERM_READ | PERM_WRITE)

    def pickup_topic_route_data(self, topic: str) -> TopicRouteData | None:
        """Return the answer to GET_ROUTEINFO_BY_TOPIC; None if the topic or its brokers are unknown.

        In the order of Java's maps. RouteInfoManager#pickupTopicRouteData.

        >>> RouteInfoManager().pickup_topic_route_data("T") is None
        True
        """
        queue_datas = self.topic_queue_table.get(topic)
        if queue_datas is None:
            return None
        names = _walk(queue_datas)
        broker_datas = [
            data._replace(broker_addrs=dict(data.broker_addrs))
            for data in (self.broker_addr_table.get(name) for name in _walk(names))
            if data is not None
        ]
        if not broker_datas:
            return None
        addrs = (addr for data in broker_datas for addr in data.broker_addrs.values())
        filters = {addr: self.filter_server_table[addr] for addr in addrs if addr in self.filter_server_table}
        return TopicRouteData([queue_datas[name] for name in names], broker_datas, filters)

    def _put_address(self, cluster_name: str, broker_addr: str, broker_name: str, broker_id: int) -> bool:
        """Whether the id had no address before. A slave become master gives up its old id."""
        known = self.broker_addr_table.get(broker_name) or BrokerData(cluster_name, broker_name, {})
        addrs = {key: addr for key, addr in known.broker_addrs.items() if key == broker_id or addr != broker_addr}
        first = broker_id not in addrs
        addrs[broker_id] = broker_addr
        self.broker_addr_table[broker_name] = known._replace(broker_addrs=addrs)
        return first

    def _changed(self, broker_addr: str, data_version: object) -> bool:
        live = self.broker_live_table.get(broker_addr)
        return live is None or live.data_version != data_version

    def _master_of(self, broker_name: str) -> RegisterBrokerResult:
        master_addr = self.broker_addr_table[broker_name].broker_addrs.get(MASTER_ID)
        live = self.broker_live_table.get(master_addr) if master_addr is not None else None
        return RegisterBrokerResult(master_addr, live.ha_server_addr) if live else RegisterBrokerResult()

    def _drop_address(self, broker_data: BrokerData, broker_id: int) -> bool:
        """Whether that was the name's last address, so that the name went too."""
        addrs = {key: addr for key, addr in broker_data.broker_addrs.items() if key != broker_id}
        self.broker_addr_table[broker_data.broker_name] = broker_data._replace(broker_addrs=addrs)
        if not addrs:
            del self.broker_addr_table[broker_data.broker_name]
        return not addrs

    def _drop_from_cluster(self, cluster_name: str, broker_name: str) -> None:
        names = self.cluster_addr_table.get(cluster_name, set())
        names.discard(broker_name)
        if not names:
            self.cluster_addr_table.pop(cluster_name, None)

    def _drop_topics(self, broker_name: str) -> None:
        for topic in list(self.topic_queue_table):
            self.topic_queue_table[topic].pop(broker_name, None)
            if not self.topic_queue_table[topic]:
                del self.topic_queue_table[topic]

    def _set_perm(self, broker_name: str, change: Callable[[int], int]) -> int:
        changed = 0
        for queue_datas in self.topic_queue_table.values():
            queue_data = queue_datas.get(broker_name)
            if queue_data is not None:
                queue_datas[broker_name] = queue_data._replace(perm=change(queue_data.perm))
                changed += 1
        return changed


def _walk(names: Iterable[str], capacity: int = 16) -> list[str]:
    """The keys of a HashMap in the order Java walks them."""
    return hash_map_order(names, string_hash, capacity)


def registered_topic(config: QueueData, broker_permission: int, version: str = BROKER_4) -> QueueData:
    """A topic as its broker registers it, by the broker's own brokerPermission (BrokerController#registerBrokerAll).

    A broker that may not be read or written registers this permission for all its topics in 4.9, and in 5.x the
    permissions that both have.

    >>> registered_topic(QueueData("b", 4, 4, 2), 4).perm, registered_topic(QueueData("b", 4, 4, 2), 4, "5.3.3").perm
    (4, 0)
    """
    if is_readable(broker_permission) and is_writeable(broker_permission):
        return config
    perm = config.perm & broker_permission if at_least(version, "5.0.0") else broker_permission
    return config._replace(perm=perm)
