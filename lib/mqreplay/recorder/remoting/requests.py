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

from mqreplay.core.java import INT_MAX
from mqreplay.words.errors import DecodeError

MAX_TEXT_BYTES: Final = 4096  # a topic has at most 127 characters, a group 255; a client id has no limit


class ReadCode(IntEnum):
    """The request codes that can be sent.

    For 202 and 208 a broker reads a message of each queue, from disk if it is old. It logs a warning for 38 if it knows
    no member of the group. Ask 30 and 31 only for queues of the topic's configuration: a broker makes a consume queue
    in memory for any other.
    """

    GET_ALL_TOPIC_CONFIG = 21
    GET_BROKER_CONFIG = 26
    GET_BROKER_RUNTIME_INFO = 28
    GET_MAX_OFFSET = 30  # the next offset of a queue: field ``offset`` of the answer
    GET_MIN_OFFSET = 31  # and the first one
    GET_CONSUMER_LIST_BY_GROUP = 38  # the client ids of a group that a broker knows
    GET_ALL_CONSUMER_OFFSET = 43  # the consumer offsets that a broker holds in memory
    GET_ALL_DELAY_OFFSET = 45  # the offsets of a broker's delay levels
    GET_ROUTEINFO_BY_TOPIC = 105  # the brokers and queues of a topic that a name server knows
    GET_BROKER_CLUSTER_INFO = 106  # the clusters and brokers that a name server knows
    GET_ALL_SUBSCRIPTIONGROUP_CONFIG = 201
    GET_TOPIC_STATS_INFO = 202  # the offsets and the last store time of each queue of a topic
    GET_CONSUMER_CONNECTION_LIST = 203  # the connections and subscriptions of a group that a broker knows
    GET_ALL_TOPIC_LIST_FROM_NAMESERVER = 206
    GET_CONSUME_STATS = 208  # the offsets of a group and the store times of its last consumed messages
    GET_CONSUMER_RUNNING_INFO = 307  # the queues, subscriptions and settings of a client, which the broker asks
    GET_NAMESRV_CONFIG = 319
    GET_ALL_MESSAGE_REQUEST_MODE = 402  # the groups that are set to receive by POP or PULL, of 5.x
    GET_BROKER_HA_STATUS = 907  # the slaves of a master and what each has confirmed, of 5.x


# The field names of each request that has any, in the order of RocketMQ's header classes.
FIELD_NAMES: Final[Mapping[ReadCode, tuple[str, ...]]] = {
    ReadCode.GET_MAX_OFFSET: ("topic", "queueId"),
    ReadCode.GET_MIN_OFFSET: ("topic", "queueId"),
    ReadCode.GET_CONSUMER_LIST_BY_GROUP: ("consumerGroup",),
    ReadCode.GET_ROUTEINFO_BY_TOPIC: ("topic", "acceptStandardJsonOnly"),
    ReadCode.GET_TOPIC_STATS_INFO: ("topic",),
    ReadCode.GET_CONSUMER_CONNECTION_LIST: ("consumerGroup",),
    ReadCode.GET_CONSUME_STATS: ("consumerGroup", "topic"),
    ReadCode.GET_CONSUMER_RUNNING_INFO: ("consumerGroup", "clientId", "jstackEnable"),
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
        if len(set(names)) != len(names) or not set(names) <= set(FIELD_NAMES.get(self.code, ())):
            raise ValueError(f"{self.code.name} has no fields {names}")
        for name, value in self.fields:
            _refuse_bad_text(name, value)


def queue_request(code: ReadCode, topic: str, queue_id: int) -> Request:
    """Return a request about a queue. Raises DecodeError for a queue id that no queue has.

    >>> queue_request(ReadCode.GET_MAX_OFFSET, "orders", 3).fields
    (('topic', 'orders'), ('queueId', '3'))
    """
    if not 0 <= queue_id <= INT_MAX:
        raise DecodeError("bad_number", f"a queue id is 0 to {INT_MAX}, and is {queue_id}")
    return Request(code, (("topic", topic), ("queueId", str(queue_id))))


def _refuse_bad_text(name: str, value: str) -> None:
    try:
        size = len(value.encode("utf-8"))
    except UnicodeEncodeError:
        raise DecodeError("bad_string", f"{name} is not Unicode text") from None
    if not 0 < size <= MAX_TEXT_BYTES:
        raise DecodeError("too_large", f"{name} should have 1 to {MAX_TEXT_BYTES} bytes, and has {size}")
