"""Message queues in fastjson's form: objects, and often objects as keys."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from mqreplay.core.java import INT_MAX
from mqreplay.decode.fastjson_text import Key, Value, read_fastjson_text
from mqreplay.decode.fields import str_of, wrong_type
from mqreplay.words.errors import DecodeError


class MessageQueue(NamedTuple):
    """A queue; tuples of it sort as RocketMQ sorts queues as long as the names are ASCII."""

    topic: str
    broker_name: str
    queue_id: int


def message_queue_of(value: object, name: str, least: int = 0) -> MessageQueue:
    """The queue that an object {"brokerName", "queueId", "topic"} names. ``name`` is the field, for errors.

    ``least`` is the lowest queue id.

    Raises:
        DecodeError: wrong_type, missing_field, or bad_number (a queue id that is not ``least`` to 2^31 - 1).

    >>> message_queue_of({"brokerName": "b", "queueId": 1, "topic": "t"}, "mqSet")
    MessageQueue(topic='t', broker_name='b', queue_id=1)
    """
    if not isinstance(value, Mapping):
        raise wrong_type(name, "a queue as an object", value)
    topic, broker_name, queue_id = value.get("topic"), value.get("brokerName"), value.get("queueId")
    if topic is None or broker_name is None or queue_id is None:
        raise DecodeError("missing_field", f"a queue in {name} lacks topic, brokerName or queueId")
    if not isinstance(topic, str) or not isinstance(broker_name, str):
        raise wrong_type(f"topic and brokerName in {name}", "strings", (topic, broker_name))
    if type(queue_id) is not int:
        raise wrong_type(f"queueId in {name}", "a whole number", queue_id)
    if not least <= queue_id <= INT_MAX:
        raise DecodeError("bad_number", f"queueId in {name} should be {least} to {INT_MAX}, and is {queue_id}")
    return MessageQueue(topic, broker_name, queue_id)


def message_queues_of(values: object, name: str) -> list[MessageQueue]:
    """The queues of a list, in its order.

    >>> message_queues_of([{"brokerName": "b", "queueId": 1, "topic": "t"}], "mqSet")
    [MessageQueue(topic='t', broker_name='b', queue_id=1)]
    """
    if not isinstance(values, list):
        raise wrong_type(name, "a list of queues", values)
    return [message_queue_of(value, name) for value in values]


def keyed_by_queue(table: Mapping[Key, Value], name: str, least: int = 0) -> Iterable[tuple[MessageQueue, Value]]:
    """The members of an object whose keys are queues, in its order, each queue once.

    A key is an object, or the text of one. ``least`` is the lowest queue id.

    Raises:
        DecodeError: bad_key (a key that is no object), duplicate_key, and those of `message_queue_of`.

    >>> list(keyed_by_queue({(("brokerName", "b"), ("queueId", 1), ("topic", "t")): 5}, "offsetTable"))
    [(MessageQueue(topic='t', broker_name='b', queue_id=1), 5)]
    """
    seen: set[MessageQueue] = set()
    for key, value in table.items():
        queue = message_queue_of(_object_of(key, name), name, least)
        if queue in seen:
            raise DecodeError("duplicate_key", f"{queue} is twice in {name}")
        seen.add(queue)
        yield queue, value


def _object_of(key: Key, name: str) -> Value:
    if isinstance(key, str) and key.startswith("{"):
        return read_fastjson_text(key)
    if not isinstance(key, tuple):
        raise DecodeError("bad_key", f"a key of {name} should be a queue as an object, and is {str_of(key)}")
    return dict(key)
