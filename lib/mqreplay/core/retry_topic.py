"""Retry and dead letter topics of a consumer group: names, and number of retries.

POP has a retry topic per group and topic, in which the broker stores a message again after its invisible time or a
changed one (PopReviveService). The name of version 1, the default, joins group and topic with `_`, which both may
contain: only known groups and topics tell where the group ends. Version 2 (enableRetryTopicV2) joins them with `+`,
which neither may contain.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from mqreplay.core.java import INT_MAX, utf16_units
from mqreplay.words.errors import StringIndexOutOfBounds

RETRY_GROUP_TOPIC_PREFIX = "%RETRY%"
DLQ_GROUP_TOPIC_PREFIX = "%DLQ%"
SEPARATOR_V1 = "_"
SEPARATOR_V2 = "+"


def retry_topic(consumer_group: str) -> str:
    """Return the topic of a group's messages that are consumed again (MixAll#getRetryTopic).

    >>> retry_topic("g")
    '%RETRY%g'
    """
    return RETRY_GROUP_TOPIC_PREFIX + consumer_group


def dlq_topic(consumer_group: str) -> str:
    """Return the topic of a group's dead letters, which no consumer reads by default (MixAll#getDLQTopic).

    >>> dlq_topic("g")
    '%DLQ%g'
    """
    return DLQ_GROUP_TOPIC_PREFIX + consumer_group


def is_retry_topic(topic: str) -> bool:
    """Return whether a topic is a group's retry topic, to which each member subscribes automatically.

    Follows DefaultMQPushConsumerImpl#copySubscription, which makes it by MixAll#getRetryTopic.

    >>> is_retry_topic("%RETRY%g"), is_retry_topic("T")
    (True, False)
    """
    return topic.startswith(RETRY_GROUP_TOPIC_PREFIX)


def topic_of_queue(topic: str, consumer_group: str, reconsume_times: int, orderly: bool) -> str:
    """Return the topic of the queue from which a group received a message of ``topic``.

    A concurrent listener receives a message that came back from the retry topic; its own topic is restored before
    (DefaultMQPushConsumerImpl#resetRetryAndNamespace). An orderly one retries it in its queue
    (ConsumeMessageOrderlyService#checkReconsumeTimes).

    >>> topic_of_queue("T", "g", 0, False), topic_of_queue("T", "g", 2, False), topic_of_queue("T", "g", 2, True)
    ('T', '%RETRY%g', 'T')
    """
    return retry_topic(consumer_group) if reconsume_times > 0 and not orderly else topic


def concurrent_max_reconsume_times(max_reconsume_times: int = -1) -> int:
    """Return the retries before a dead letter for concurrent consumption; -1, the default, means 16.

    DefaultMQPushConsumerImpl#getMaxReconsumeTimes.

    >>> concurrent_max_reconsume_times(), concurrent_max_reconsume_times(0)
    (16, 0)
    """
    return 16 if max_reconsume_times == -1 else max_reconsume_times


def orderly_max_reconsume_times(max_reconsume_times: int = -1) -> int:
    """Return the retries before a dead letter for orderly consumption; -1, the default, means unlimited.

    ConsumeMessageOrderlyService#getMaxReconsumeTimes.

    >>> orderly_max_reconsume_times(), orderly_max_reconsume_times(3)
    (2147483647, 3)
    """
    return INT_MAX if max_reconsume_times == -1 else max_reconsume_times


class RetryTopicOwner(NamedTuple):
    """The group that reads a retry topic, and the topic whose messages it holds.

    ``version``: 1 or 2 for a retry topic of POP. 0 for the group's own one (MixAll#getRetryTopic), which holds messages
    of all topics: ``topic`` is then None.
    """

    consumer_group: str
    topic: str | None
    version: int


def build_pop_retry_topic(topic: str, cid: str, enable_retry_v2: bool = False) -> str:
    """Return the retry topic of group ``cid`` for ``topic`` (KeyBuilder#buildPopRetryTopic).

    >>> build_pop_retry_topic("T", "g"), build_pop_retry_topic("T", "g", True)
    ('%RETRY%g_T', '%RETRY%g+T')
    """
    return f"{RETRY_GROUP_TOPIC_PREFIX}{cid}{SEPARATOR_V2 if enable_retry_v2 else SEPARATOR_V1}{topic}"


def is_pop_retry_topic_v2(topic: str) -> bool:
    """Return whether a topic has the form of version 2 (KeyBuilder#isPopRetryTopicV2).

    >>> is_pop_retry_topic_v2("%RETRY%g+T"), is_pop_retry_topic_v2("%RETRY%g_T"), is_pop_retry_topic_v2("g+T")
    (True, False, False)
    """
    return is_retry_topic(topic) and SEPARATOR_V2 in topic


def parse_normal_topic(retry_topic: str, cid: str | None = None) -> str:
    """Return the topic whose messages a retry topic holds (KeyBuilder#parseNormalTopic).

    Without the group ``cid``, only version 2 has an answer; any other name comes back as it is. With it, the broker
    removes as many characters as the group's prefix has, and does not check that they are the prefix.
    Raises StringIndexOutOfBounds where the name is shorter.

    >>> parse_normal_topic("%RETRY%g_T", "g"), parse_normal_topic("%RETRY%g+T"), parse_normal_topic("%RETRY%g_T")
    ('T', 'T', '%RETRY%g_T')
    """
    if cid is None:
        parts = _parts_v2(retry_topic)
        return parts[1] if parts else retry_topic
    if not is_retry_topic(retry_topic):
        return retry_topic
    length = len(utf16_units(build_pop_retry_topic("", cid)))
    units = len(utf16_units(retry_topic))
    if length > units:
        raise StringIndexOutOfBounds(f"begin {length}, end {units}, length {units}")
    return _from_unit(retry_topic, length)


def parse_group(retry_topic: str) -> str:
    """Return the group of a retry topic, if its name is of version 2 or the group's own (KeyBuilder#parseGroup).

    The broker removes the prefix without looking: a name of version 1 gives group and topic together, and any other
    topic loses 7 characters. Raises StringIndexOutOfBounds where it has fewer.

    >>> parse_group("%RETRY%g+T"), parse_group("%RETRY%g"), parse_group("%RETRY%g_T")
    ('g', 'g', 'g_T')
    """
    parts = _parts_v2(retry_topic)
    name = parts[0] if parts else retry_topic
    length = len(RETRY_GROUP_TOPIC_PREFIX)
    units = len(utf16_units(name))
    if length > units:
        raise StringIndexOutOfBounds(f"begin {length}, end {units}, length {units}")
    return _from_unit(name, length)


def retry_topic_owners(retry_topic: str, groups: Collection[str], topics: Collection[str]) -> list[RetryTopicOwner]:
    """Return each reading of a retry topic's name that fits known groups and topics, version 0 first.

    A name of version 2 needs neither, as `+` can be in no group or topic. No method of RocketMQ: the broker always
    has the group at hand.

    >>> [tuple(owner) for owner in retry_topic_owners("%RETRY%a_b_c", {"a", "a_b"}, {"c", "b_c"})]
    [('a', 'b_c', 1), ('a_b', 'c', 1)]
    """
    if not is_retry_topic(retry_topic):
        return []
    name = retry_topic[len(RETRY_GROUP_TOPIC_PREFIX) :]
    owners = [RetryTopicOwner(name, None, 0)] if name in groups else []
    parts = _parts_v2(retry_topic)
    if parts:
        owners.append(RetryTopicOwner(parts[0][len(RETRY_GROUP_TOPIC_PREFIX) :], parts[1], 2))
        return owners
    for end, char in enumerate(name):
        group, topic = name[:end], name[end + 1 :]
        # Messages of a retry topic go back into the same one: it has no retry topic of its own.
        if char == SEPARATOR_V1 and group in groups and topic in topics and not is_retry_topic(topic):
            owners.append(RetryTopicOwner(group, topic, 1))
    return owners


def parse_retry_topic(retry_topic: str, groups: Collection[str], topics: Collection[str]) -> RetryTopicOwner | None:
    """Return whose retry topic this is; None if no known group and topic fit its name, or more than one reading does.

    No method of RocketMQ: see retry_topic_owners.

    >>> parse_retry_topic("%RETRY%a_b_c", {"a", "a_b"}, {"b_c"})
    RetryTopicOwner(consumer_group='a', topic='b_c', version=1)
    >>> parse_retry_topic("%RETRY%a_b_c", {"a", "a_b"}, {"c", "b_c"}), parse_retry_topic("%RETRY%a_b_c", {"x"}, {"c"})
    (None, None)
    >>> parse_retry_topic("%RETRY%a_b_c", {"a_b_c"}, set())
    RetryTopicOwner(consumer_group='a_b_c', topic=None, version=0)
    """
    owners = retry_topic_owners(retry_topic, groups, topics)
    return owners[0] if len(owners) == 1 else None


def _parts_v2(retry_topic: str) -> tuple[str, str] | None:
    """Prefix with group, and topic, of a name of version 2; Java's split leaves out empty parts at the end."""
    if not is_pop_retry_topic_v2(retry_topic):
        return None
    parts = retry_topic.rstrip(SEPARATOR_V2).split(SEPARATOR_V2)
    return (parts[0], parts[1]) if len(parts) == 2 else None


def _from_unit(text: str, begin: int) -> str:
    """String#substring(begin), which counts UTF-16 units."""
    return text.encode("utf-16-be", "surrogatepass")[2 * begin :].decode("utf-16-be", "surrogatepass")
