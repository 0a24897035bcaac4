"""The facts in answers of name servers, brokers and clients that the recorder itself needs."""

from __future__ import annotations

import json
import re
from collections.abc import Hashable, Iterable, Mapping
from typing import Any, Final, NamedTuple

from mqreplay.core.flow_control import (
    CONSUME_CONCURRENTLY_MAX_SPAN,
    PULL_THRESHOLD_FOR_QUEUE,
    PULL_THRESHOLD_SIZE_FOR_QUEUE,
    flow_control,
)
from mqreplay.core.java import INT_MAX
from mqreplay.decode.body import broker_addrs_of, items_of, texts_of
from mqreplay.decode.fastjson_text import Key, Value
from mqreplay.decode.fields import int_field, object_of, table_of, text_field, wrong_type
from mqreplay.recorder.network.bounded import read_bounded
from mqreplay.words.errors import DecodeError

# Settings with secret values, which are not recorded.
SECRET = re.compile(r"(?i)secret|password|passwd|credential|access_?key|token|AuthenticationUser")
HIDDEN: Final = "(not recorded)"

# Figures and times, which differ in each answer to 307.
_FIGURES = re.compile(
    rb'"(?:commitOffset|cachedMsg\w+|transactionMsg\w+|tryUnlockTimes|last\w+Timestamp|waitAckCount|subVersion)":-?[0-9]+'
)
_STATUS = re.compile(rb'"statusTable":\{(?:"[^"]*":\{[^{}]*\},?)*\}')
# The queues that a client holds: each key is an object, and no value has objects inside.
_QUEUE_STATE = re.compile(rb"\}:\{([^{}]*)\}")
_CACHE = re.compile(
    rb'"((?:cached|transaction)Msg(?:Count|MinOffset)|cachedMsgMaxOffset|cachedMsgSizeInMiB)":(-?[0-9]{1,19})'
)
_THRESHOLD = re.compile(
    rb'"(pullThresholdForQueue|pullThresholdSizeForQueue|consumeConcurrentlyMaxSpan)":"([0-9]{1,10})"'
)
_DATA_VERSION = re.compile(rb'"dataVersion":\{[^{}]*\},?')


class Brokers(NamedTuple):
    """The clusters' names, and the address of each broker, from one name server."""

    clusters: tuple[str, ...]
    addrs: dict[tuple[str, int], tuple[str, str]]  # {(broker name, id): (cluster, address)}


class Connected(NamedTuple):
    """The members of a group and their subscriptions, from one broker."""

    languages: dict[str, str]
    topics: frozenset[str]
    signature: Hashable
    hosts: frozenset[str] = frozenset()  # of the members, as the broker sees them


def read_brokers(body: bytes) -> Brokers:
    """Read an answer to 106.

    >>> read_brokers(b'{"brokerAddrTable":{"b":{"brokerAddrs":{0:"h:1"},"brokerName":"b","cluster":"C"}}}').addrs
    {('b', 0): ('C', 'h:1')}
    """
    addrs: dict[tuple[str, int], tuple[str, str]] = {}
    for name, value in table_of(read_bounded(body), "brokerAddrTable").items():
        data = object_of(value, "a broker")
        cluster = text_field(data, "cluster", None) or ""
        for broker_id, addr in broker_addrs_of(data.get("brokerAddrs"), "brokerAddrs").items():
            addrs[str(name), broker_id] = cluster, addr
    return Brokers(tuple(sorted({cluster for cluster, _ in addrs.values()})), addrs)


def read_topic_list(body: bytes) -> frozenset[str]:
    """Read an answer to 206."""
    return frozenset(texts_of(items_of(object_of(read_bounded(body), "the answer"), "topicList"), "topicList"))


def read_names(body: bytes, table: str) -> frozenset[str]:
    """Return the names in a table of an answer to 21 or 201.

    >>> sorted(read_names(b'{"subscriptionGroupTable":{"a":{},"b":{}}}', "subscriptionGroupTable"))
    ['a', 'b']
    """
    return frozenset(map(str, table_of(read_bounded(body), table)))


def read_queue_counts(body: bytes) -> dict[str, int]:
    """Return how many queues each topic has on a broker, from an answer to 21.

    >>> read_queue_counts(b'{"topicConfigTable":{"t":{"readQueueNums":4,"writeQueueNums":8}}}')
    {'t': 8}
    """
    counts = {}
    for topic, value in table_of(read_bounded(body), "topicConfigTable").items():
        config = object_of(value, str(topic))
        counts[str(topic)] = max(int_field(config, "readQueueNums", 16), int_field(config, "writeQueueNums", 16))
    return counts


def read_members(body: bytes) -> tuple[str, ...]:
    """Read an answer to 38: the client ids of a group, sorted. Processes with the same id are listed one by one.

    >>> read_members(b'{"consumerIdList":["b","a","b"]}')
    ('a', 'b', 'b')
    """
    root = object_of(read_bounded(body), "the answer")
    return tuple(sorted(texts_of(items_of(root, "consumerIdList"), "consumerIdList")))


def read_connected(body: bytes) -> Connected:
    """Read an answer to 203. Its signature ignores the order of connections, which changes at each answer."""
    root = object_of(read_bounded(body), "the answer")
    connections = [object_of(each, "a connection") for each in items_of(root, "connectionSet")]
    table = root.get("subscriptionTable")
    subscriptions = {} if table is None else object_of(table, "subscriptionTable")
    signature = (
        _unordered(
            tuple(_plain(c, name) for name in ("clientId", "clientAddr", "language", "version")) for c in connections
        ),
        _unordered(
            (str(topic), *(_plain(object_of(each, str(topic)), name) for name in ("subString", "expressionType")))
            for topic, each in subscriptions.items()
        ),
        *(_plain(root, name) for name in ("consumeType", "messageModel", "consumeFromWhere")),
    )
    languages = {_plain(each, "clientId"): _plain(each, "language") for each in connections}
    hosts = frozenset(str(_plain(each, "clientAddr")).rpartition(":")[0].removeprefix("/") for each in connections)
    return Connected(languages, frozenset(map(str, subscriptions)), signature, hosts - {""})


def read_route(body: bytes) -> Hashable:
    """Return the signature of an answer to 105: its brokers and queues, regardless of order."""
    root = object_of(read_bounded(body), "the answer")
    return tuple(
        _unordered(json.dumps(each, sort_keys=True) for each in items_of(root, name) if _is_object(each, name))
        for name in ("brokerDatas", "queueDatas")
    )


def read_runtime(body: bytes) -> dict[str, str]:
    """Return the table of an answer to 28.

    >>> read_runtime(b'{"table":{"brokerVersionDesc":"V5_3_3"}}')
    {'brokerVersionDesc': 'V5_3_3'}
    """
    table = table_of(read_bounded(body), "table")
    if not all(isinstance(name, str) and isinstance(value, str) for name, value in table.items()):
        raise wrong_type("table", "an object of strings", table)
    return {str(name): str(value) for name, value in table.items()}


def read_ha_status(body: bytes) -> None:
    """Refuse an answer to 907 that has no list of slaves: silver.ha_status reads it.

    >>> read_ha_status(b'{"master":true,"haConnectionInfo":[]}')
    """
    items_of(object_of(read_bounded(body), "the answer"), "haConnectionInfo")


def read_max_offsets(body: bytes) -> dict[int, int]:
    """Return the maximum offset of each queue of an answer to 202."""
    offsets: dict[int, int] = {}
    for key, value in table_of(read_bounded(body, object_keys=True), "offsetTable").items():
        if not isinstance(key, tuple):
            raise wrong_type("a key of offsetTable", "a queue as an object", key)
        queue_id = dict(key).get("queueId")
        if type(queue_id) is not int or not 0 <= queue_id <= INT_MAX:
            raise wrong_type("queueId", f"a whole number, 0 to {INT_MAX}", queue_id)
        offsets[queue_id] = int_field(object_of(value, "an offset"), "maxOffset", 0, high=2**63 - 1)
    return offsets


def read_properties(body: bytes) -> dict[str, str]:
    """Return the settings of an answer to 26, without secrets.

    >>> read_properties(b"brokerName=b-1\\nfilterExpression=a=b\\naclSecret=x\\n")
    {'brokerName': 'b-1', 'filterExpression': 'a=b', 'aclSecret': '(not recorded)'}
    """
    properties = {}
    for line in text_of_body(body).splitlines():
        name, equals, value = line.partition("=")
        if equals and name:
            properties[name] = HIDDEN if SECRET.search(name) and value else value
    if not properties:
        raise DecodeError("foreign", "the answer has no settings")
    return properties


def running_signature(body: bytes) -> Hashable:
    """Return the signature of an answer to 307: queues, subscriptions and settings, without figures.

    >>> one = b'{"mqTable":{{"queueId":0}:{"commitOffset":5,"droped":false}},"statusTable":{"t":{"pullRT":1.5}}}'
    >>> two = b'{"mqTable":{{"queueId":0}:{"commitOffset":6,"droped":false}},"statusTable":{}}'
    >>> running_signature(one) == running_signature(two), running_signature(one.replace(b"false", b"true")) == one
    (True, False)
    """
    return _FIGURES.sub(b"", _STATUS.sub(b"", body, count=1))


class Caches(NamedTuple):
    """The messages that a client caches, from an answer to 307.

    ``heads``: (place of the queue in the answer, smallest offset that the listener has not finished). ``is_large``: a
    queue has more than half of what stops its pulls.
    """

    heads: frozenset[tuple[int, int]]
    is_large: bool


def read_caches(body: bytes) -> Caches:
    """Read the caches in an answer to 307. An orderly listener takes messages out of the cache (ProcessQueue).

    >>> body = b'{"mqTable":{{"queueId":0}:{"cachedMsgCount":20,"cachedMsgMinOffset":7},{"queueId":1}:{}}}'
    >>> read_caches(body), read_caches(body + b'"pullThresholdForQueue":"39"').is_large
    (Caches(heads=frozenset({(0, 7)}), is_large=False), True)
    """
    limits = {name: int(text) for name, text in _THRESHOLD.findall(body)}
    thresholds = (
        limits.get(b"pullThresholdForQueue", PULL_THRESHOLD_FOR_QUEUE),
        limits.get(b"pullThresholdSizeForQueue", PULL_THRESHOLD_SIZE_FOR_QUEUE),
        limits.get(b"consumeConcurrentlyMaxSpan", CONSUME_CONCURRENTLY_MAX_SPAN),
    )
    heads, is_large = set(), False
    for place, state in enumerate(_QUEUE_STATE.findall(body)):
        cache = {name: int(number) for name, number in _CACHE.findall(state)}
        cached, taken = cache.get(b"cachedMsgCount", 0), cache.get(b"transactionMsgCount", 0)
        if cached > 0 or taken > 0:
            head = cache.get(b"transactionMsgMinOffset" if taken > 0 else b"cachedMsgMinOffset", 0)
            heads.add((place, head))
            span = cache.get(b"cachedMsgMaxOffset", head) - head
            mib = cache.get(b"cachedMsgSizeInMiB", 0)
            is_large |= flow_control(2 * (cached + taken), 2 * mib, 2 * span, False, *thresholds) is not None
    return Caches(frozenset(heads), is_large)


def table_signature(body: bytes) -> Hashable:
    """Return the signature of a table of topics, groups or delays: all but its dataVersion.

    >>> table_signature(b'{"dataVersion":{"counter":1},"offsetTable":{}}')
    b'{"offsetTable":{}}'
    """
    return _DATA_VERSION.sub(b"", body, count=1)


def text_of_body(body: bytes) -> str:
    """Return a body as the text for a line."""
    return body.decode("utf-8", "backslashreplace")


def _unordered(items: Iterable[Hashable]) -> Hashable:
    """Return a signature of items in any order. Repeats count: a set would lose them."""
    return tuple(sorted(items, key=repr))


def _plain(fields: Mapping[Key, Value], name: str) -> Any:
    value = fields.get(name)
    if isinstance(value, (dict, list)):
        raise wrong_type(name, "a plain value", value)
    return value


def _is_object(value: Value, name: str) -> bool:
    object_of(value, f"an entry of {name}")
    return True
