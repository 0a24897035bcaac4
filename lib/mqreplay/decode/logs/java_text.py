"""Texts of toString() of RocketMQ's classes in log messages: queues, channels, subscriptions, members."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from mqreplay.core.java import INT_MAX
from mqreplay.decode.columns import TIME_MAX, TIME_MIN
from mqreplay.decode.message_queue import MessageQueue
from mqreplay.words.errors import DecodeError

# The limit of Validators.checkTopic; a longer text is not a name.
NAME: Final = r"[^\s,\[\]{}\"']{1,255}"
# A client id may hold a placeholder that nobody filled in, such as ${clientIP}.
CLIENT_ID: Final = r"[^\s,\[\]\"']{1,255}"
MESSAGE_QUEUE: Final = rf"MessageQueue \[topic={NAME}, brokerName={NAME}, queueId=-?\d{{1,10}}\]"
_QUEUE: Final = re.compile(rf"MessageQueue \[topic=({NAME}), brokerName=({NAME}), queueId=(-?\d{{1,10}})\]", re.ASCII)
# ClientChannelInfo#toString has that of netty's AbstractChannel: netty 4.1 names both addresses by L: and R:, netty 3
# and 4.0 put the client first. Channels of a proxy have texts of their own.
_ADDRESS: Final = r"[^\s,]{1,255}"  # an address of IPv6 has brackets
_LATER_CHANNEL: Final = re.compile(rf"\[id: {NAME}, L:{_ADDRESS} [-!] R:({_ADDRESS})\]", re.ASCII)
_OLD_CHANNEL: Final = re.compile(rf"\[id: {NAME}, ({_ADDRESS}) [=:]> {_ADDRESS}\]", re.ASCII)
_CHANNEL: Final = (
    rf"ClientChannelInfo \[channel=(.{{1,1000}}?), clientId=({CLIENT_ID}), language=\w{{1,20}}, "
    r"version=-?\d{1,10}, lastUpdateTimestamp=(\d{1,19})\]"
)
_CHANNEL_PARTS: Final = re.compile(_CHANNEL, re.ASCII | re.DOTALL)
CHANNEL: Final = _CHANNEL.replace("(", "(?:")
_MESSAGE: Final = re.compile(
    r"queueOffset=(\d{1,19}), .{0,1000}?msgId=([^\s,]{1,255}), .{0,200}?reconsumeTimes=(\d{1,9})", re.ASCII | re.DOTALL
)
_SUBSCRIPTION: Final = "SubscriptionData ["
_CONSUMER: Final = "ConsumerData ["
_LONG: Final = re.compile(r"-?\d{1,19}", re.ASCII)


class Channel(NamedTuple):
    """A client's connection: its address, and the time of its last heartbeat (epoch ms by the broker's clock).

    A connection through a proxy has its text instead of the address.
    """

    client_id: str
    client_addr: str
    heard_ms: int


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


class FailedMessage(NamedTuple):
    """A message in the text of a MessageExt."""

    queue_offset: int
    msg_id: str
    reconsume_times: int


def messages_of(text: str) -> list[FailedMessage]:
    """Return the messages of a Java list of MessageExt, in written order.

    Raises:
        DecodeError: bad_message.

    >>> messages_of("[MessageExt [queueId=0, storeSize=7, queueOffset=14, sysFlag=0, msgId=0A01, commitLogOffset=1, "
    ...     "bodyCRC=1, reconsumeTimes=3, preparedTransactionOffset=0, toString()=Message [topic=t]]]")
    [FailedMessage(queue_offset=14, msg_id='0A01', reconsume_times=3)]
    """
    matches = [_MESSAGE.search(piece) for piece in text.split("MessageExt [")[1:]]
    if not matches or matches[0] is None:
        raise DecodeError("bad_message", f"not a list of messages: {text[:100]!r}")
    return [FailedMessage(int(one[1]), one[2], int(one[3])) for one in matches if one is not None]


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


def int_of(text: str, name: str) -> int:
    """Return a Java int that is not negative.

    Raises:
        DecodeError: bad_number.

    >>> int_of("8", "mqAllSize")
    8
    """
    number = int(text)
    if number > INT_MAX:
        raise DecodeError("bad_number", f"{name} should be 0 to {INT_MAX}, and is {number}")
    return number


def channel_of(text: str) -> Channel:
    """Return the connection of a text that is one ClientChannelInfo.

    Raises:
        DecodeError: bad_message, bad_time.
    """
    match = _CHANNEL_PARTS.fullmatch(text)
    if match is None:
        raise DecodeError("bad_message", f"not a ClientChannelInfo: {text[:100]!r}")
    channel, client_id, heard_ms = match[1], match[2], int(match[3])
    if not TIME_MIN <= heard_ms <= TIME_MAX:
        raise DecodeError("bad_time", f"lastUpdateTimestamp should be epoch ms of 2000 to 2100, and is {heard_ms}")
    if not channel.startswith("[id: "):
        return Channel(client_id, channel, heard_ms)
    addresses = _LATER_CHANNEL.fullmatch(channel) or _OLD_CHANNEL.fullmatch(channel)
    if addresses is None:
        raise DecodeError("bad_message", f"not a channel of netty: {channel[:100]!r}")
    return Channel(client_id, addresses[1].rpartition("/")[2], heard_ms)


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


def consumer_of(text: str) -> dict[str, object]:
    """Return the only ConsumerData of a text.

    Raises:
        DecodeError: bad_message (there are several), and those of `consumers_of`.
    """
    consumers = consumers_of(text)
    if len(consumers) != 1:
        raise DecodeError("bad_message", f"{len(consumers)} groups in one ConsumerData: the line is damaged")
    return consumers[0]


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


def subscription_of(text: str) -> dict[str, object]:
    """Return the only SubscriptionData of a text.

    Raises:
        DecodeError: bad_message (there are several), missing_field, bad_number.

    >>> subscription_of("SubscriptionData [classFilterMode=false, topic=t, subString=a || b, tagsSet=[a, b], "
    ...     "codeSet=[97, 98], subVersion=7, expressionType=TAG]")
    {'topic': 't', 'subString': 'a || b', 'subVersion': 7, 'expressionType': 'TAG'}
    """
    each = list(_subscriptions(text))
    if len(each) != 1:
        raise DecodeError("bad_message", f"{len(each)} subscriptions in one SubscriptionData: the line is damaged")
    return each[0]


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
