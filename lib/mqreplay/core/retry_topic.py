"""Retry and dead letter topics of a consumer group: names, and number of retries."""

from __future__ import annotations

from mqreplay.core.java import INT_MAX

RETRY_GROUP_TOPIC_PREFIX = "%RETRY%"
DLQ_GROUP_TOPIC_PREFIX = "%DLQ%"


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
