"""A topic's route, and the queues that producers and consumers derive from it.

Producers use brokers with a master, in the order of broker names; consumers use every readable queue, with or without
a master. The setting of an order topic has priority. Follows
org.apache.rocketmq.client.impl.factory.MQClientInstance#topicRouteData2TopicPublishInfo and
#topicRouteData2TopicSubscribeInfo. Of static topics of 5.x (topicQueueMappingByBroker) only the logical queues are
followed, not the brokers that have them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from mqreplay.core.java import split_on_char, utf16_key
from mqreplay.core.java_numbers import parse_int
from mqreplay.core.message_queue import MessageQueue, sort_message_queues
from mqreplay.words.errors import ArrayIndexOutOfBounds

PERM_READ = 4
PERM_WRITE = 2
MASTER_ID = 0
LOGICAL_QUEUE_MOCK_BROKER_PREFIX = "__syslo__"
METADATA_SCOPE_GLOBAL = "__global__"


class QueueData(NamedTuple):
    """A topic's settings on one broker name; ``perm`` is a sum of 8 priority, 4 read, 2 write, 1 inherit."""

    broker_name: str
    read_queue_nums: int
    write_queue_nums: int
    perm: int
    topic_sys_flag: int = 0


class BrokerData(NamedTuple):
    """The brokers of one name: broker id -> address; id 0 is the master."""

    cluster: str
    broker_name: str
    broker_addrs: Mapping[int, str]


class TopicRouteData(NamedTuple):
    """What GET_ROUTEINFO_BY_TOPIC answers; ``order_topic_conf`` is None or like ``broker-a:4;broker-b:4``."""

    queue_datas: Sequence[QueueData]
    broker_datas: Sequence[BrokerData]
    filter_server_table: Mapping[str, Sequence[str]] = {}
    order_topic_conf: str | None = None


class TopicQueueMappingInfo(NamedTuple):
    """The logical queues of a static topic (5.x), as one broker knows them: their number in a scope."""

    scope: str | None
    total_queues: int


class TopicPublishInfo(NamedTuple):
    """The queues a producer sends to, in the order in which it takes turns."""

    order_topic: bool
    message_queue_list: tuple[MessageQueue, ...]

    @property
    def ok(self) -> bool:
        """Whether the topic can be sent to at all (TopicPublishInfo#ok).

        >>> TopicPublishInfo(False, ()).ok
        False
        """
        return bool(self.message_queue_list)


def is_readable(perm: int) -> bool:
    """PermName#isReadable.

    >>> is_readable(6), is_readable(2)
    (True, False)
    """
    return perm & PERM_READ == PERM_READ


def is_writeable(perm: int) -> bool:
    """PermName#isWriteable.

    >>> is_writeable(6), is_writeable(4)
    (True, False)
    """
    return perm & PERM_WRITE == PERM_WRITE


def topic_publish_info(topic: str, route: TopicRouteData) -> TopicPublishInfo:
    """The queues of a topic to send to (MQClientInstance#topicRouteData2TopicPublishInfo).

    By broker name, each writable one that has a master. With an ``order_topic_conf`` its queues instead,
    unchecked: ArrayIndexOutOfBounds where a part has no ``:``, NumberFormat where what follows it is no
    int.

    >>> queue_datas = [QueueData("b", 1, 1, 6), QueueData("a", 4, 1, 6), QueueData("c", 1, 1, 4)]
    >>> broker_datas = [BrokerData("C", "a", {0: "1:1"}), BrokerData("C", "b", {1: "2:1"})]
    >>> topic_publish_info("T", TopicRouteData(queue_datas, broker_datas)).message_queue_list
    (MessageQueue(topic='T', broker_name='a', queue_id=0),)
    """
    if route.order_topic_conf:
        return TopicPublishInfo(True, _order_topic_queues(topic, route.order_topic_conf))
    masters: dict[str, bool] = {}
    for broker in route.broker_datas:
        masters.setdefault(broker.broker_name, MASTER_ID in broker.broker_addrs)
    queues = tuple(
        MessageQueue(topic, queue_data.broker_name, queue_id)
        for queue_data in sorted(route.queue_datas, key=lambda qd: utf16_key(qd.broker_name))
        if is_writeable(queue_data.perm) and masters.get(queue_data.broker_name, False)
        for queue_id in range(queue_data.write_queue_nums)
    )
    return TopicPublishInfo(False, queues)


def topic_subscribe_info(topic: str, route: TopicRouteData) -> list[MessageQueue]:
    """The queues of a topic to consume, sorted as a rebalance sorts them.

    All of every readable broker, whether it has a master or any address. (Java makes a set of them.)
    MQClientInstance#topicRouteData2TopicSubscribeInfo.

    >>> topic_subscribe_info("T", TopicRouteData([QueueData("b", 1, 0, 4), QueueData("a", 1, 0, 2)], []))
    [MessageQueue(topic='T', broker_name='b', queue_id=0)]
    """
    queues = {
        MessageQueue(topic, queue_data.broker_name, queue_id)
        for queue_data in route.queue_datas
        if is_readable(queue_data.perm)
        for queue_id in range(queue_data.read_queue_nums)
    }
    return sort_message_queues(queues)


def logical_queue_nums(mappings: Sequence[TopicQueueMappingInfo]) -> dict[str, int]:
    """The number of logical queues of a static topic, by the broker name that clients give them.

    Clients consume queues 0 to n - 1 of that name, whichever broker has them, and also those that none has. A mapping
    without a scope does not count. ClientMetadata#topicRouteData2EndpointsForStaticTopic,
    TopicQueueMappingUtils#getMockBrokerName.

    >>> logical_queue_nums([TopicQueueMappingInfo("__global__", 4), TopicQueueMappingInfo("__global__", 8)])
    {'__syslo__global__': 8}
    >>> logical_queue_nums([TopicQueueMappingInfo("unit", 2), TopicQueueMappingInfo(None, 9)])
    {'__syslo__unit': 2}
    """
    nums: dict[str, int] = {}
    for mapping in mappings:
        if mapping.scope is not None:
            scope = mapping.scope[2:] if mapping.scope == METADATA_SCOPE_GLOBAL else mapping.scope
            name = LOGICAL_QUEUE_MOCK_BROKER_PREFIX + scope
            nums[name] = max(nums.get(name, 0), mapping.total_queues)
    return nums


def write_queue_nums_by_broker(route: TopicRouteData) -> dict[str, int]:
    """Write queues by broker name, writable ones only (TopicPublishInfo#getQueueIdByBroker, 4.9).

    >>> write_queue_nums_by_broker(TopicRouteData([QueueData("b", 1, 4, 6), QueueData("a", 1, 4, 4)], []))
    {'b': 4}
    """
    nums: dict[str, int] = {}
    for queue_data in route.queue_datas:
        if is_writeable(queue_data.perm):
            nums.setdefault(queue_data.broker_name, queue_data.write_queue_nums)
    return nums


def _order_topic_queues(topic: str, order_topic_conf: str) -> tuple[MessageQueue, ...]:
    queues: list[MessageQueue] = []
    for part in split_on_char(order_topic_conf, ";"):
        item = split_on_char(part, ":")
        if len(item) < 2:
            raise ArrayIndexOutOfBounds(f"Index 1 out of bounds for length {len(item)}")
        queues += [MessageQueue(topic, item[0], queue_id) for queue_id in range(parse_int(item[1]))]
    return tuple(queues)
