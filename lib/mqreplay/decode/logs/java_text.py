"""Texts of toString() of RocketMQ's classes in log messages: queues, subscriptions, members."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from mqreplay.decode.fields import INT_MAX
from mqreplay.decode.message_queue import MessageQueue
from mqreplay.errors import DecodeError

# The limit of Validators.checkTopic; a longer text is not a name.
NAME: Final = r"[^\s,\[\]{}\"']{1,255}"
# A client id may hold a placeholder that nobody filled in, such as ${clientIP}.
CLIENT_ID: Final = r"[^\s,\[\]\"']{1,255}"
QUEUE: Final = rf"MessageQueue \[topic={NAME}, brokerName={NAME}, queueId=-?\d{{1,10}}\]"
_QUEUE: Final = re.compile(rf"MessageQueue \[topic=({NAME}), brokerName=({NAME}), queueId=(-?\d{{1,10}})\]", re.ASCII)
_SUBSCRIPTION: Final = "SubscriptionData ["
_CONSUMER: Final = "ConsumerData ["
_LONG: Final = re.compile(r"-?\d{1,19}", re.ASCII)


def queue_of(text: str) -> MessageQueue:
    """Return the queue of a text that is one MessageQueue.

    Raises:
        DecodeError: bad_queue.

    >>> queue_of("MessageQueue [topic=t, brokerName=b, queueId=3]")
    MessageQueue(topic='t', broker_name='b', queue_id=3)
    """
    match = _QUEUE.fullmatch(text)
    if match is None or not 0 <= int(match[3]) <= INT_MAX:
        raise DecodeError("bad_queue", f"{text[:100]!r} is not a message queue")
    return MessageQueue(match[1], match[2], int(match[3]))


def queues_of(text: str) -> list[MessageQueue]:
    """Return the queues of a Java list or set of them, in written order.

    Raises:
        DecodeError: bad_queue (the text is none, or cut).

    >>> queues_of("[MessageQueue [topic=t, brokerName=b, queueId=3]]"), queues_of("[]")
    ([MessageQueue(topic='t', broker_name='b', queue_id=3)], [])
    """
    if text == "[]":
        return []
    if not text.startswith("[") or not text.endswith("]]"):
        raise DecodeError("bad_queue", f"{text[:100]!r} is not a list of message queues")
    return [queue_of(f"{one}]") for one in text[1:-2].split("], ")]


def long_of(text: str, name: str) -> int:
    """Return a Java long.

    Raises:
        DecodeError: bad_number.

    >>> long_of("-1", "offset")
    -1
    """
    if _LONG.fullmatch(text) is None or not -(2**63) <= int(text) < 2**63:
        raise DecodeError("bad_number", f"{name} is not a number: {text[:60]!r}")
    return int(text)


def between(text: str, start: str, end: str) -> str:
    """Return the text between the first ``start`` and the next ``end`` in ``text``.

    Raises:
        DecodeError: missing_field.

    >>> between("a=1, b=2, c", "b=", ", ")
    '2'
    """
    at = text.find(start)
    to = text.find(end, at + len(start)) if at >= 0 else -1
    if to < 0:
        raise DecodeError("missing_field", f"{start.strip(' ,=[')} is absent, or the line is cut")
    return text[at + len(start) : to]


def consumers_of(text: str) -> list[dict[str, object]]:
    """Return each ConsumerData of a text as the object that a HEART_BEAT carries (HeartbeatData#consumerDataSet).

    Raises:
        DecodeError: missing_field, bad_number.

    >>> data = consumers_of("ConsumerData [groupName=g, consumeType=CONSUME_PASSIVELY, messageModel=CLUSTERING, "
    ...     "consumeFromWhere=CONSUME_FROM_LAST_OFFSET, unitMode=false, subscriptionDataSet=[SubscriptionData "
    ...     "[classFilterMode=false, topic=t, subString=*, tagsSet=[], codeSet=[], subVersion=7, expressionType=TAG]]]")
    >>> data[0]["groupName"], data[0]["subscriptionDataSet"][0]["subVersion"]
    ('g', 7)
    """
    return [_consumer(piece) for piece in text.split(_CONSUMER)[1:]]


def _consumer(text: str) -> dict[str, object]:
    return {
        "groupName": between(text, "groupName=", ", "),
        "consumeType": between(text, "consumeType=", ", "),
        "messageModel": between(text, "messageModel=", ", "),
        "consumeFromWhere": between(text, "consumeFromWhere=", ", "),
        "unitMode": between(text, "unitMode=", ", ") == "true",
        "subscriptionDataSet": list(_subscriptions(text)),
    }


def _subscriptions(text: str) -> Iterator[dict[str, object]]:
    for piece in text.split(_SUBSCRIPTION)[1:]:
        yield {
            "topic": between(piece, "topic=", ", subString="),
            # An expression of SQL92 may have commas and brackets in it.
            "subString": between(piece, "subString=", ", tagsSet="),
            "subVersion": long_of(between(piece, "subVersion=", ", "), "subVersion"),
            "expressionType": between(piece, "expressionType=", "]"),
        }


def route_of(text: str) -> dict[str, list[dict[str, object]]]:
    """Return the queueDatas and brokerDatas of a TopicRouteData as in its JSON body.

    Raises:
        DecodeError: missing_field, bad_number.

    >>> route = route_of("TopicRouteData [orderTopicConf=null, queueDatas=[QueueData [brokerName=b, readQueueNums=4, "
    ...     "writeQueueNums=4, perm=6, topicSysFlag=0]], brokerDatas=[BrokerData [brokerName=b, "
    ...     "brokerAddrs={0=h:1, 1=h:2}]]")
    >>> route["brokerDatas"]
    [{'brokerName': 'b', 'brokerAddrs': {'0': 'h:1', '1': 'h:2'}}]
    """
    queues, _, brokers = text.partition("brokerDatas=[")
    return {
        "queueDatas": [_queue_data(piece) for piece in queues.split("QueueData [")[1:]],
        "brokerDatas": [_broker_data(piece) for piece in brokers.split("BrokerData [")[1:]],
    }


def _queue_data(text: str) -> dict[str, object]:
    data: dict[str, object] = {"brokerName": between(text, "brokerName=", ", ")}
    for name, end in (("readQueueNums", ", "), ("writeQueueNums", ", "), ("perm", ", "), ("topicSysFlag", "]")):
        number = long_of(between(text, f"{name}=", end), name)
        if not 0 <= number <= INT_MAX:
            raise DecodeError("bad_number", f"{name} should be 0 to {INT_MAX}, and is {number}")
        data[name] = number
    return data


def _broker_data(text: str) -> dict[str, object]:
    addrs: dict[str, str] = {}
    for pair in filter(None, between(text, "brokerAddrs={", "}").split(", ")):
        broker_id, _, addr = pair.partition("=")
        if str(long_of(broker_id, "broker id")) != broker_id or broker_id.startswith("-") or not addr:
            raise DecodeError("bad_number", f"{pair[:60]!r} is not a broker id with its address")
        addrs[broker_id] = addr
    return {"brokerName": between(text, "brokerName=", ", "), "brokerAddrs": addrs}
