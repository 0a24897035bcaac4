"""The checks of a broker before it reads messages, in order; the first failure is the answer.

Such an answer has no suggestion, so the client keeps its last one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from mqreplay.core.faq_url import suggest_todo
from mqreplay.core.java import split_on_char
from mqreplay.core.slave_suggestion import SLAVE
from mqreplay.core.system_names import is_system_group
from mqreplay.core.version import BROKER_4, at_least

PERM_READ = 4  # PermName.PERM_READ
OTHER_SYSTEM_GROUPS = ("DEFAULT_CONSUMER", "SCHEDULE_CONSUMER")  # MixAll#isSysConsumerGroupPullMessage

# PullSysFlag's bits.
FLAG_COMMIT_OFFSET = 1
FLAG_SUSPEND = 2
FLAG_SUBSCRIPTION = 4

# ResponseCode and RemotingSysResponseCode.
SYSTEM_ERROR = 1
SYSTEM_BUSY = 2
NO_PERMISSION = 16
TOPIC_NOT_EXIST = 17
SUBSCRIPTION_PARSE_FAILED = 23
SUBSCRIPTION_NOT_EXIST = 24
SUBSCRIPTION_NOT_LATEST = 25
SUBSCRIPTION_GROUP_NOT_EXIST = 26
FILTER_DATA_NOT_EXIST = 27
FILTER_DATA_NOT_LATEST = 28
INVALID_PARAMETER = 29
NOT_LEADER_FOR_QUEUE = 501


class PullRequest(NamedTuple):
    """PullMessageRequestHeader, as far as the answer depends on it; offsets are in messages."""

    topic: str
    consumer_group: str
    queue_id: int
    queue_offset: int
    sys_flag: int = 0
    commit_offset: int = 0
    subscription: str | None = None
    expression_type: str | None = "TAG"
    sub_version: int = 0
    is_lite: bool = False  # LITE_PULL_MESSAGE


class PullBroker(NamedTuple):
    """The broker's settings that a pull meets; min_broker_id_in_group: the lowest living id of its name."""

    broker_ip1: str
    broker_role: str = "ASYNC_MASTER"
    broker_permission: int = 6
    slave_read_enable: bool = False
    offset_check_in_slave: bool = False
    enable_property_filter: bool = False
    broker_id: int = 0
    min_broker_id_in_group: int = 0
    in_broker_container: bool = False
    reject_pull_consumer_enable: bool = False
    lite_pull_message_enable: bool = True


class GroupConfig(NamedTuple):
    """SubscriptionGroupConfig, with its defaults; read_forbidden: the group's forbiddenTable has the topic."""

    consume_enable: bool = True
    consume_broadcast_enable: bool = True
    broker_id: int = 0
    which_broker_when_consume_slowly: int = 1
    read_forbidden: bool = False


class TopicReadConfig(NamedTuple):
    """TopicConfig, as far as reading goes."""

    perm: int = 6
    read_queue_nums: int = 16


class Subscription(NamedTuple):
    """SubscriptionData of a topic; filter_version is that of its compiled filter, None without one."""

    expression_type: str | None = "TAG"
    sub_version: int = 0
    filter_version: int | None = None


class ConsumerGroupInfo(NamedTuple):
    """The heartbeats of a group: CLUSTERING or BROADCASTING, and its subscription by topic.

    is_active_elsewhere: its consumers pull actively, and none of them sent heartbeats on the channel of the pull.
    """

    message_model: str
    subscriptions: Mapping[str, Subscription]
    is_active_elsewhere: bool = False


class Refusal(NamedTuple):
    """An answer without messages and without a suggestion."""

    code: int
    remark: str


def check_pull(
    request: PullRequest,
    broker: PullBroker,
    topic_config: TopicReadConfig | None,
    group_config: GroupConfig | None,
    group_info: ConsumerGroupInfo | None,
    remote_address: str = "",
    version: str = BROKER_4,
) -> Refusal | None:
    """Return why the broker refuses a pull, None if it does not. Config or info None: the broker has none.

    remote_address is the client's, as Java prints a socket address (``/10.0.0.9:5555``).
    Follows PullMessageProcessor#processRequest (and #rejectRequest of 5.x, which answers a slave's readers
    first).

    >>> config = TopicReadConfig(perm=2), GroupConfig(), None
    >>> check_pull(PullRequest("T", "g", 0, 0), PullBroker("10.0.0.1"), *config)
    Refusal(code=16, remark='the topic[T] pulling message is forbidden')
    """
    refusal = _check_rights(request, broker, topic_config, group_config, version)
    if refusal is not None or topic_config is None or group_config is None:
        return refusal
    if not 0 <= request.queue_id < topic_config.read_queue_nums:
        remark = (
            f"queueId[{request.queue_id}] is illegal, topic:[{request.topic}] "
            f"topicConfig.readQueueNums:[{topic_config.read_queue_nums}] consumer:[{remote_address}]"
        )
        return Refusal(INVALID_PARAMETER if at_least(version, "5.3.2") else SYSTEM_ERROR, remark)
    if request.sys_flag & FLAG_SUBSCRIPTION:
        refusal = _check_own_subscription(request, broker)
    else:
        refusal = _check_known_subscription(request, broker, group_config, group_info, version)
    return refusal or _check_pull_consumer(request, broker, group_info, version)


def _check_rights(
    request: PullRequest,
    broker: PullBroker,
    topic_config: TopicReadConfig | None,
    group_config: GroupConfig | None,
    version: str,
) -> Refusal | None:
    """May this broker be read, by this group, of this topic?"""
    topic, group = request.topic, request.consumer_group
    if at_least(version, "5.0.0") and broker.broker_role == SLAVE and not broker.slave_read_enable:
        return Refusal(SYSTEM_BUSY, "[REJECTREQUEST]system busy, start flow control for a while")
    if not broker.broker_permission & PERM_READ:
        return Refusal(NO_PERMISSION, f"the broker[{broker.broker_ip1}] pulling message is forbidden")
    if request.is_lite and not broker.lite_pull_message_enable and at_least(version, "5.0.0"):
        return Refusal(NO_PERMISSION, f"the broker[{broker.broker_ip1}] for lite pull consumer is forbidden")
    if group_config is None:
        remark = f"subscription group [{group}] does not exist, {suggest_todo(version)}"
        return Refusal(SUBSCRIPTION_GROUP_NOT_EXIST, remark)
    if not group_config.consume_enable:
        return Refusal(NO_PERMISSION, f"subscription group no permission, {group}")
    if topic_config is None:
        remark = f"topic[{topic}] not exist, apply first please! {suggest_todo(version)}"
        return Refusal(TOPIC_NOT_EXIST, remark)
    if not topic_config.perm & PERM_READ:
        return Refusal(NO_PERMISSION, f"the topic[{topic}] pulling message is forbidden")
    return None


def _check_own_subscription(request: PullRequest, broker: PullBroker) -> Refusal | None:
    """The request brings its subscription along (FilterAPI#build)."""
    subscription = request.subscription
    if request.expression_type in (None, "TAG"):
        parses = not subscription or bool(split_on_char(subscription, "||"))
    else:
        parses = bool(subscription)
    if not parses:
        return Refusal(SUBSCRIPTION_PARSE_FAILED, "parse the consumer's subscription failed")
    return _check_property_filter(request.expression_type, broker)


def _check_known_subscription(
    request: PullRequest,
    broker: PullBroker,
    group_config: GroupConfig,
    group_info: ConsumerGroupInfo | None,
    version: str,
) -> Refusal | None:
    """Check the request against the heartbeats of the group."""
    if group_info is None:
        return Refusal(SUBSCRIPTION_NOT_EXIST, f"the consumer's group info not exist{suggest_todo(version)}")
    if not group_config.consume_broadcast_enable and group_info.message_model == "BROADCASTING":
        remark = f"the consumer group[{request.consumer_group}] can not consume by broadcast way"
        return Refusal(NO_PERMISSION, remark)
    if group_config.read_forbidden and at_least(version, "5.0.0"):
        remark = f"the consumer group[{request.consumer_group}] is forbidden for topic[{request.topic}]"
        return Refusal(NO_PERMISSION, remark)
    known = group_info.subscriptions.get(request.topic)
    if known is None:
        return Refusal(SUBSCRIPTION_NOT_EXIST, f"the consumer's subscription not exist{suggest_todo(version)}")
    if known.sub_version < request.sub_version:
        return Refusal(SUBSCRIPTION_NOT_LATEST, "the consumer's subscription not latest")
    if not _is_tag_type(known.expression_type):
        if known.filter_version is None:
            remark = "The broker's consumer filter data is not exist!Your expression may be wrong!"
            return Refusal(FILTER_DATA_NOT_EXIST, remark)
        if known.filter_version < request.sub_version:
            return Refusal(FILTER_DATA_NOT_LATEST, "the consumer's consumer filter data not latest")
    return _check_property_filter(known.expression_type, broker)


def _check_pull_consumer(
    request: PullRequest, broker: PullBroker, group_info: ConsumerGroupInfo | None, version: str
) -> Refusal | None:
    """Refuse pulls of consumers that do not send heartbeats, if the broker is set so (5.3.3)."""
    if not broker.reject_pull_consumer_enable or not at_least(version, "5.3.3"):
        return None
    is_known = group_info is not None and not group_info.is_active_elsewhere
    if is_known or is_system_group(request.consumer_group) or request.consumer_group in OTHER_SYSTEM_GROUPS:
        return None
    remark = "the consumer's group info not exist, or the pull consumer is rejected by server."
    return Refusal(SUBSCRIPTION_NOT_EXIST, f"{remark}{suggest_todo(version)}")


def _check_property_filter(expression_type: str | None, broker: PullBroker) -> Refusal | None:
    if _is_tag_type(expression_type) or broker.enable_property_filter:
        return None
    remark = f"The broker does not support consumer to filter message by {expression_type}"
    return Refusal(SYSTEM_ERROR, remark)


def _is_tag_type(expression_type: str | None) -> bool:
    """ExpressionType#isTagType."""
    return not expression_type or expression_type == "TAG"
