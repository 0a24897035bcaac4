"""Retry and dead letter topics of a consumer group: their names, and how often a group tries."""

from __future__ import annotations

from mqreplay.core.java import INT_MAX

RETRY_GROUP_TOPIC_PREFIX = "%RETRY%"
DLQ_GROUP_TOPIC_PREFIX = "%DLQ%"


def retry_topic(consumer_group: str) -> str:
    """The topic that holds a group's messages to be consumed again (MixAll#getRetryTopic).

    >>> retry_topic("g")
    '%RETRY%g'
    """
    return RETRY_GROUP_TOPIC_PREFIX + consumer_group


def dlq_topic(consumer_group: str) -> str:
    """The topic of a group's dead letters, which nobody is made to consume (MixAll#getDLQTopic).

    >>> dlq_topic("g")
    '%DLQ%g'
    """
    return DLQ_GROUP_TOPIC_PREFIX + consumer_group


def is_retry_topic(topic: str) -> bool:
    """Whether a topic is some group's retry topic, which each member subscribes to by itself.

    Follows DefaultMQPushConsumerImpl#copySubscription, which makes it by MixAll#getRetryTopic.

    >>> is_retry_topic("%RETRY%g"), is_retry_topic("T")
    (True, False)
    """
    return topic.startswith(RETRY_GROUP_TOPIC_PREFIX)


def concurrent_max_reconsume_times(max_reconsume_times: int = -1) -> int:
    """Retries before the dead letters, unless messages must keep their order; -1, not set, means 16.

    DefaultMQPushConsumerImpl#getMaxReconsumeTimes.

    >>> concurrent_max_reconsume_times(), concurrent_max_reconsume_times(0)
    (16, 0)
    """
    return 16 if max_reconsume_times == -1 else max_reconsume_times


def orderly_max_reconsume_times(max_reconsume_times: int = -1) -> int:
    """Retries before the dead letters, where messages keep their order; -1, not set, means without end.

    ConsumeMessageOrderlyService#getMaxReconsumeTimes.

    >>> orderly_max_reconsume_times(), orderly_max_reconsume_times(3)
    (2147483647, 3)
    """
    return INT_MAX if max_reconsume_times == -1 else max_reconsume_times
