"""Answers of RocketMQ Dashboard, and of brokers and clients, saved as JSON. Pure.

The dashboard wraps an answer as {"status": 0, "data": ...}, and Jackson writes a queue as key by its toString().
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from mqreplay.decode.body import items_of
from mqreplay.decode.fastjson_text import Key, Value, read_fastjson_text
from mqreplay.decode.fields import object_of
from mqreplay.decode.message_queue import MessageQueue, keyed_by_queue, message_queue_of
from mqreplay.decode.running_info import running_info_of
from mqreplay.importer.mqadmin.answers import Record
from mqreplay.importer.mqadmin.clients import client_in, client_of, running_info
from mqreplay.importer.mqadmin.context import AdminContext
from mqreplay.importer.mqadmin.lists import group_of, json_text, object_text
from mqreplay.importer.mqadmin.offsets import by_broker, offset_record
from mqreplay.importer.mqadmin.tables import queue_text
from mqreplay.words.errors import DecodeError

_Row = tuple[MessageQueue, Mapping[Key, Value]]
_QUEUE_KEY = re.compile(r'"MessageQueue \[topic=([^,\]"]*), brokerName=([^,\]"]*), queueId=([0-9]{1,9})\]"(?=\s*:)')
_MOST_OBJECTS: Final = 3  # a header of remoting may be before the answer
RUNNING_INFO: Final = "a client's running info (GET_CONSUMER_RUNNING_INFO)"
CONNECTIONS: Final = "the connections of a group"
TOPIC_STATS: Final = "the offsets of a topic"
CONSUME_STATS: Final = "the progress of a group"
# By members of the object that show it; what else gives the same evidence.
_KINDS: Final = (
    (RUNNING_INFO, ("mqTable",), "mqadmin consumerStatus -g GROUP -i CLIENT"),
    (CONNECTIONS, ("connectionSet",), "mqadmin consumerConnection -g GROUP -b ADDR"),
    (TOPIC_STATS, ("offsetTable", "minOffset"), "mqadmin topicStatus -t TOPIC"),
    (CONSUME_STATS, ("offsetTable", "brokerOffset"), "mqadmin consumerProgress -g GROUP"),
    (CONSUME_STATS, ("queueStatInfoList",), "mqadmin consumerProgress -g GROUP"),
    ("a list of brokers", ("clusterAddrTable", "brokerAddrTable"), "mqadmin clusterList"),
    ("the route of a topic", ("brokerDatas", "queueDatas"), "mqadmin topicRoute -t TOPIC"),
    ("a summary of groups", ("consumeTps", "diffTotal", "group"), "mqadmin consumerProgress -g GROUP"),
    ("the connections of producers", ("producerGroup", "connectionSet"), "mqadmin consumerConnection -g GROUP -b ADDR"),
)


class JsonAnswer(NamedTuple):
    """An answer in a file of JSON: what it is, the mqadmin command that gives the same, and its text."""

    what: str
    instead: str
    text: str

    @property
    def title(self) -> str:
        """Return what it is, for the user."""
        return f"{self.what}, as JSON"


def json_answer_of(text: str) -> JsonAnswer | None:
    """Return the answer that a text consists of; None for another text.

    >>> json_answer_of('{"status":0,"data":{"mqTable":{},"properties":{}}}').what
    "a client's running info (GET_CONSUMER_RUNNING_INFO)"
    >>> json_answer_of('{"a": 1}') is None
    True
    """
    if not text.lstrip().startswith(("{", "[")):
        return None
    rest = text
    for _ in range(_MOST_OBJECTS):
        found = object_text(rest)
        if found is None:
            return None
        for what, members, instead in _KINDS:
            if all(f'"{name}"' in found for name in members):
                whole = text if text.lstrip().startswith("[") else found
                return JsonAnswer(what, instead, _QUEUE_KEY.sub(_as_object, whole))
        rest = rest[rest.index(found) + len(found) :]
    return None


def records_of_json(answer: JsonAnswer, ts_ms: int, names: Sequence[str], context: AdminContext) -> list[Record]:
    """Return the records of an answer from ``ts_ms``. ``names``: parts of its path, nearest first.

    Raises DecodeError: the detail gives the reason and what to do.
    """
    if answer.what not in (RUNNING_INFO, CONNECTIONS, TOPIC_STATS, CONSUME_STATS):
        raise DecodeError("not_used", f"it is {answer.what} as JSON; give the output of {answer.instead}")
    try:
        value = read_fastjson_text(answer.text.strip())
        is_wrapped = isinstance(value, dict) and "data" in value
        body = value["data"] if isinstance(value, dict) and is_wrapped else value
        if answer.what == RUNNING_INFO:
            text = answer.text[answer.text.index('"data"') :] if is_wrapped else answer.text
            return [_assignment(object_of(body, "it"), object_text(text) or text, ts_ms, names)]
        if answer.what == CONNECTIONS:
            return [_connections(object_of(body, "it"), ts_ms)]
        rows = _rows_of_topics(body) if isinstance(body, list) else _rows(object_of(body, "it"))
        return (_topic_stats if answer.what == TOPIC_STATS else _consume_stats)(rows, ts_ms, context)
    except DecodeError as error:
        why = f"it is {answer.what} as JSON, and {error.detail}; give the output of {answer.instead}"
        raise DecodeError(error.code, why) from None


def _assignment(body: Mapping[Key, Value], text: str, ts_ms: int, names: Sequence[str]) -> Record:
    properties = running_info_of(body).properties
    client, group = client_in(names) or client_of(properties), properties.get("consumerGroup")
    if not client or not group:
        raise DecodeError("no_client", f"it does not name its {'group' if client else 'client'}")
    return "assignments", running_info(ts_ms, client, group, text)


def _connections(body: Mapping[Key, Value], ts_ms: int) -> Record:
    table = object_of(body.get("subscriptionTable") or {}, "subscriptionTable")
    group = group_of(name for name in table if isinstance(name, str))
    if group is None:
        raise DecodeError("no_group", "it names no group")
    return "consumer_connections", {"ts": ts_ms, "consumer_group": group, "body": json_text(body)}


def _rows(body: Mapping[Key, Value]) -> list[_Row]:
    table = keyed_by_queue(object_of(body.get("offsetTable"), "offsetTable"), "offsetTable")
    return [(queue, object_of(offsets, "an offset")) for queue, offsets in table]


def _rows_of_topics(topics: Sequence[Value]) -> list[_Row]:
    """Return the rows of TopicConsumerInfo objects."""
    rows: list[_Row] = []
    for topic in topics:
        of_topic = object_of(topic, "a topic")
        for item in items_of(of_topic, "queueStatInfoList"):
            row = object_of(item, "a queue")
            queue = message_queue_of({**row, "topic": of_topic.get("topic")}, "queueStatInfoList")
            names = ("brokerOffset", "consumerOffset", "lastTimestamp")
            rows.append((queue, {name: row[name] for name in names if name in row}))
    return rows


def _topic_stats(rows: Sequence[_Row], ts_ms: int, context: AdminContext) -> list[Record]:
    of_topics: dict[tuple[str, str], list[_Row]] = defaultdict(list)
    for row in rows:
        of_topics[row[0].topic, row[0].broker_name].append(row)
    return [
        offset_record("topic_stats", ts_ms, name, topic, own, context.asked_id(name, ts_ms))
        for (topic, name), own in of_topics.items()
    ]


def _consume_stats(rows: Sequence[_Row], ts_ms: int, context: AdminContext) -> list[Record]:
    group = group_of(queue.topic for queue, _ in rows)
    if group is None:
        raise DecodeError("no_group", "it names no group")
    return [
        offset_record("consume_stats", ts_ms, name, group, own, context.asked_id(name, ts_ms))
        for name, own in by_broker(rows).items()
    ]


def _as_object(match: re.Match[str]) -> str:
    return queue_text(match[1], match[2], int(match[3]))
