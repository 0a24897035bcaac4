"""The requests that mqreplay sends to a running cluster. Each one only reads.

`ReadCode` is the allow-list: the encoder writes a code of it and no other. A request has no body. None of the codes
changes what a broker or a name server stores, and 307 is the only one that reaches a client: the client reports what it
holds. Source: RequestCode and the request headers of 4.9.7 and 5.3.3.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from mqreplay.decode.fields import INT_MAX
from mqreplay.errors import DecodeError

MAX_TEXT_BYTES: Final = 4096  # a topic has at most 127 characters, a group 255; a client id has no limit


class ReadCode(IntEnum):
    """The request codes that can be sent."""

    GET_ALL_TOPIC_CONFIG = 21
    GET_BROKER_CONFIG = 26
    GET_BROKER_RUNTIME_INFO = 28
    GET_MAX_OFFSET = 30
    GET_MIN_OFFSET = 31
    GET_CONSUMER_LIST_BY_GROUP = 38
    GET_ALL_CONSUMER_OFFSET = 43
    GET_ALL_DELAY_OFFSET = 45
    GET_ROUTEINFO_BY_TOPIC = 105
    GET_BROKER_CLUSTER_INFO = 106
    GET_ALL_SUBSCRIPTIONGROUP_CONFIG = 201
    GET_TOPIC_STATS_INFO = 202
    GET_CONSUMER_CONNECTION_LIST = 203
    GET_ALL_TOPIC_LIST_FROM_NAMESERVER = 206
    GET_CONSUME_STATS = 208
    GET_CONSUMER_RUNNING_INFO = 307
    GET_NAMESRV_CONFIG = 319
    GET_ALL_MESSAGE_REQUEST_MODE = 402
    GET_BROKER_HA_STATUS = 907


# The field names of each request, in the order of RocketMQ's header classes.
FIELD_NAMES: Final[Mapping[ReadCode, tuple[str, ...]]] = {
    ReadCode.GET_ALL_TOPIC_CONFIG: (),
    ReadCode.GET_BROKER_CONFIG: (),
    ReadCode.GET_BROKER_RUNTIME_INFO: (),
    ReadCode.GET_MAX_OFFSET: ("topic", "queueId"),
    ReadCode.GET_MIN_OFFSET: ("topic", "queueId"),
    ReadCode.GET_CONSUMER_LIST_BY_GROUP: ("consumerGroup",),
    ReadCode.GET_ALL_CONSUMER_OFFSET: (),
    ReadCode.GET_ALL_DELAY_OFFSET: (),
    ReadCode.GET_ROUTEINFO_BY_TOPIC: ("topic", "acceptStandardJsonOnly"),
    ReadCode.GET_BROKER_CLUSTER_INFO: (),
    ReadCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG: (),
    ReadCode.GET_TOPIC_STATS_INFO: ("topic",),
    ReadCode.GET_CONSUMER_CONNECTION_LIST: ("consumerGroup",),
    ReadCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER: (),
    ReadCode.GET_CONSUME_STATS: ("consumerGroup", "topic"),
    ReadCode.GET_CONSUMER_RUNNING_INFO: ("consumerGroup", "clientId", "jstackEnable"),
    ReadCode.GET_NAMESRV_CONFIG: (),
    ReadCode.GET_ALL_MESSAGE_REQUEST_MODE: (),
    ReadCode.GET_BROKER_HA_STATUS: (),
}


@dataclass(frozen=True, slots=True)
class Request:
    """A request that reads. ``fields`` has each field of `FIELD_NAMES` at most once, and no other.

    Raises:
        ValueError: ``code`` is not in the allow-list, or a field does not belong to it.
        DecodeError: a name is empty, too long or not Unicode text. Names come from answers.
    """

    code: ReadCode
    fields: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "code", ReadCode(self.code))
        names = [name for name, _ in self.fields]
        if len(set(names)) != len(names) or not set(names) <= set(FIELD_NAMES[self.code]):
            raise ValueError(f"{self.code.name} has no fields {names}")
        for name, value in self.fields:
            _refuse_bad_text(name, value)


def get_all_consumer_offset() -> Request:
    """Every consumer offset that a broker holds in memory (43)."""
    return Request(ReadCode.GET_ALL_CONSUMER_OFFSET)


def get_all_topic_config() -> Request:
    """Every topic of a broker (21)."""
    return Request(ReadCode.GET_ALL_TOPIC_CONFIG)


def get_all_subscription_group() -> Request:
    """Every consumer group's settings on a broker (201)."""
    return Request(ReadCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG)


def get_all_delay_offset() -> Request:
    """The offsets of a broker's delay levels (45)."""
    return Request(ReadCode.GET_ALL_DELAY_OFFSET)


def get_all_message_request_mode() -> Request:
    """The groups that are set to receive by POP or PULL, on a broker of 5.x (402)."""
    return Request(ReadCode.GET_ALL_MESSAGE_REQUEST_MODE)


def get_broker_ha_status() -> Request:
    """The slaves that are connected to a master and what each has confirmed, on a broker of 5.x (907)."""
    return Request(ReadCode.GET_BROKER_HA_STATUS)


def get_broker_config() -> Request:
    """The settings of a broker, as properties (26)."""
    return Request(ReadCode.GET_BROKER_CONFIG)


def get_name_server_config() -> Request:
    """The settings of a name server, as properties (319)."""
    return Request(ReadCode.GET_NAMESRV_CONFIG)


def get_broker_runtime_info() -> Request:
    """The runtime figures of a broker (28)."""
    return Request(ReadCode.GET_BROKER_RUNTIME_INFO)


def get_topic_stats_info(topic: str) -> Request:
    """The minimum and maximum offset and the last store time of each queue of a topic (202).

    The broker reads a message of each queue for the store time, from disk if the topic is idle.

    >>> get_topic_stats_info("orders").fields
    (('topic', 'orders'),)
    """
    return Request(ReadCode.GET_TOPIC_STATS_INFO, (("topic", topic),))


def get_consumer_list_by_group(group: str) -> Request:
    """The client ids of a group that a broker knows (38). A broker logs a warning if it knows none."""
    return Request(ReadCode.GET_CONSUMER_LIST_BY_GROUP, (("consumerGroup", group),))


def get_consumer_connection_list(group: str) -> Request:
    """The connections and subscriptions of a group that a broker knows (203)."""
    return Request(ReadCode.GET_CONSUMER_CONNECTION_LIST, (("consumerGroup", group),))


def get_consume_stats(group: str, topic: str | None = None) -> Request:
    """The offsets of a group and the store time of its last consumed messages (208), of one topic or of all.

    The broker reads a message of each queue for the store time, from disk if the group is far behind.
    """
    topics = (("topic", topic),) if topic is not None else ()
    return Request(ReadCode.GET_CONSUME_STATS, (("consumerGroup", group), *topics))


def get_consumer_running_info(group: str, client_id: str) -> Request:
    """What a client holds: its queues, subscriptions and settings (307). The broker asks the client.

    The threads' stack traces are never asked for.

    >>> get_consumer_running_info("g", "10.0.0.7@1").fields
    (('consumerGroup', 'g'), ('clientId', '10.0.0.7@1'), ('jstackEnable', 'false'))
    """
    fields = (("consumerGroup", group), ("clientId", client_id), ("jstackEnable", "false"))
    return Request(ReadCode.GET_CONSUMER_RUNNING_INFO, fields)


def get_max_offset(topic: str, queue_id: int) -> Request:
    """The next offset of a queue (30): field ``offset`` of the answer.

    Ask only for queues of the topic's configuration: a broker makes a consume queue in memory for any other.

    >>> get_max_offset("orders", 3).fields
    (('topic', 'orders'), ('queueId', '3'))
    """
    return Request(ReadCode.GET_MAX_OFFSET, _queue(topic, queue_id))


def get_min_offset(topic: str, queue_id: int) -> Request:
    """The first offset of a queue (31): field ``offset`` of the answer. Ask only for queues that exist."""
    return Request(ReadCode.GET_MIN_OFFSET, _queue(topic, queue_id))


def get_broker_cluster_info() -> Request:
    """Every cluster and broker that a name server knows (106)."""
    return Request(ReadCode.GET_BROKER_CLUSTER_INFO)


def get_all_topic_list() -> Request:
    """Every topic that a name server knows (206)."""
    return Request(ReadCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER)


def get_route_info_by_topic(topic: str) -> Request:
    """The brokers and queues of a topic that a name server knows (105), as standard JSON."""
    return Request(ReadCode.GET_ROUTEINFO_BY_TOPIC, (("topic", topic), ("acceptStandardJsonOnly", "true")))


def _queue(topic: str, queue_id: int) -> tuple[tuple[str, str], ...]:
    if not 0 <= queue_id <= INT_MAX:
        raise DecodeError("bad_number", f"a queue id is 0 to {INT_MAX}, and is {queue_id}")
    return ("topic", topic), ("queueId", str(queue_id))


def _refuse_bad_text(name: str, value: str) -> None:
    try:
        size = len(value.encode("utf-8"))
    except UnicodeEncodeError:
        raise DecodeError("bad_string", f"{name} is not Unicode text") from None
    if not 0 < size <= MAX_TEXT_BYTES:
        raise DecodeError("too_large", f"{name} should have 1 to {MAX_TEXT_BYTES} bytes, and has {size}")
