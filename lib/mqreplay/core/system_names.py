"""Topics and groups that RocketMQ creates itself. Source: TopicValidator, MixAll, BrokerController of 4.9 and 5.3."""

from __future__ import annotations

from typing import Final

from mqreplay.core.delay_level import SCHEDULE_TOPIC
from mqreplay.core.retry_topic import DLQ_GROUP_TOPIC_PREFIX, RETRY_GROUP_TOPIC_PREFIX

_TOPICS: Final = frozenset(
    {
        SCHEDULE_TOPIC,
        "TBW102",
        "BenchmarkTest",
        "SELF_TEST_TOPIC",
        "OFFSET_MOVED_EVENT",
        "TRANS_CHECK_MAX_TIME_TOPIC",
        "RMQ_SYS_TRANS_HALF_TOPIC",
        "RMQ_SYS_TRANS_OP_HALF_TOPIC",
        "RMQ_SYS_TRACE_TOPIC",
    }
)
_TOPIC_PREFIXES: Final = ("rmq_sys_", "RMQ_SYS_")
_GROUPS: Final = frozenset(
    {
        "TOOLS_CONSUMER",
        "FILTERSRV_CONSUMER",
        "SELF_TEST_C_GROUP",
        "__MONITOR_CONSUMER",
        "CID_ONS-HTTP-PROXY",
        "CID_ONSAPI_PERMISSION",
        "CID_ONSAPI_OWNER",
        "CID_ONSAPI_PULL",
        "CID_SYS_RMQ_TRANS",
        "CID_RMQ_SYS_TRANS",
    }
)
_GROUP_PREFIX: Final = "CID_RMQ_SYS_"
# Proxies in cluster mode are its members. Source: AbstractSystemMessageSyncer, ProxyConfig#heartbeatSyncerTopicName.
PROXY_GROUP: Final = "CID_DefaultHeartBeatSyncerTopic"


def is_system_topic(topic: str) -> bool:
    """Return whether a topic is RocketMQ's own. Retry topics and dead letters belong to applications.

    Follows TopicValidator#isSystemTopic, and names that the broker creates besides.

    >>> is_system_topic("SCHEDULE_TOPIC_XXXX"), is_system_topic("rmq_sys_wheel_timer"), is_system_topic("%RETRY%pay")
    (True, True, False)
    """
    return topic in _TOPICS or topic.startswith(_TOPIC_PREFIXES) or topic.endswith("_REPLY_TOPIC")


def is_made_by_brokers(topic: str) -> bool:
    """Return whether a broker creates the topic itself: a topic of the system, a retry topic or one of dead letters.

    Follows TopicValidator#isSystemTopic, MixAll#getRetryTopic and MixAll#getDLQTopic.

    >>> is_made_by_brokers("%RETRY%pay"), is_made_by_brokers("%DLQ%pay"), is_made_by_brokers("payments")
    (True, True, False)
    """
    return is_system_topic(topic) or topic.startswith((RETRY_GROUP_TOPIC_PREFIX, DLQ_GROUP_TOPIC_PREFIX))


def is_system_group(group: str) -> bool:
    """Return whether no application uses the group.

    Follows MixAll#isSysConsumerGroup, and groups that the broker creates besides.

    >>> [is_system_group(group) for group in ("CID_RMQ_SYS_TRANS", "CID_RMQ_SYS_ANY", "pay")]
    [True, True, False]
    """
    return group in _GROUPS or group.startswith(_GROUP_PREFIX)
