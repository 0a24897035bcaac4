"""A broker's handling of a message that a consumer sends back: retry or dead letter.

The message is stored again in %RETRY%group with a delay that grows with its retries, or, without retries left
or at the consumer's request, in %DLQ%group. Follows
org.apache.rocketmq.broker.processor.SendMessageProcessor (4.9), AbstractSendMessageProcessor (5.x):
#consumerSendMsgBack.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from mqreplay.core.faq_url import suggest_todo
from mqreplay.core.java import is_blank, string_hash, to_int
from mqreplay.core.retry_topic import dlq_topic, retry_topic
from mqreplay.core.version import BROKER_4, at_least

SUCCESS = 0
SYSTEM_ERROR = 1
NO_PERMISSION = 16
SUBSCRIPTION_GROUP_NOT_EXIST = 26

PERM_READ_WRITE = 6
PERM_WRITE = 2
DLQ_NUMS_PER_GROUP = 1
TOPIC_SYS_FLAG_UNIT_SUB = 2
V3_4_9 = 121  # MQVersion's ordinal: earlier clients cannot say how often they retry


class SendBackRequest(NamedTuple):
    """CONSUMER_SEND_MSG_BACK as the broker reads it.

    ``offset`` is the message's place in the commit log (bytes); ``delay_level`` 0 leaves the delay to the
    broker, below 0 asks for a dead letter; ``max_reconsume_times`` None where the client is too old to say;
    ``version`` the ordinal of the client's MQVersion.
    """

    group: str
    offset: int
    delay_level: int
    max_reconsume_times: int | None = None
    unit_mode: bool = False
    version: int = V3_4_9


class RetryGroup(NamedTuple):
    """A group's SubscriptionGroupConfig: queues of its retry topic, and how often to retry."""

    retry_queue_nums: int = 1
    retry_max_times: int = 16


class StoredMessage(NamedTuple):
    """The fields of a message that sending back uses. ``reconsume_times`` counts retries so far."""

    topic: str
    msg_id: str
    reconsume_times: int
    properties: Mapping[str, str]


class SentBack(NamedTuple):
    """The message that is stored again: ``delay_time_level`` 0 is no delay."""

    topic: str
    queue_id: int
    delay_time_level: int
    reconsume_times: int
    properties: Mapping[str, str]
    tags_code: int


class TopicMade(NamedTuple):
    """A topic that must exist now, made with these settings unless it did before."""

    topic: str
    queue_nums: int
    perm: int
    topic_sys_flag: int


class SendBackAnswer(NamedTuple):
    """Response code and remark, the topics needed, in order, and what was stored (None: nothing)."""

    code: int
    remark: str | None
    topics_made: tuple[TopicMade, ...] = ()
    stored: SentBack | None = None


def consumer_send_msg_back(
    request: SendBackRequest,
    group_config: RetryGroup | None,
    msg_ext: StoredMessage | None,
    queue_id_random: int = 0,
    retry_topic_perm: int = PERM_READ_WRITE,
    broker_permission: int = PERM_READ_WRITE,
    broker_ip1: str = "",
    version: str = BROKER_4,
) -> SendBackAnswer:
    """Answer CONSUMER_SEND_MSG_BACK (SendMessageProcessor#consumerSendMsgBack, since 5.0 AbstractSendMessageProcessor).

    ``group_config`` None: the broker does not know the group (code 26); a group with no retry queues gets
    code 0 and nothing is stored: the message is lost. ``msg_ext`` None: there is no message at that offset
    (code 1). ``queue_id_random`` is the random number whose remainder picks the retry queue.
    ``retry_topic_perm`` counts where the topic was there before. ``version`` is the broker's. (The store
    may still refuse: see PutMessageStatus.)

    >>> msg = StoredMessage("T", "ID", 2, {})
    >>> consumer_send_msg_back(SendBackRequest("g", 0, 0), RetryGroup(), msg).stored.delay_time_level
    5
    >>> consumer_send_msg_back(SendBackRequest("g", 0, -1), RetryGroup(), msg).stored.topic
    '%DLQ%g'
    """
    if group_config is None:
        remark = f"subscription group not exist, {request.group} {suggest_todo(version)}"
        return SendBackAnswer(SUBSCRIPTION_GROUP_NOT_EXIST, remark)
    if not broker_permission & PERM_WRITE:
        return SendBackAnswer(NO_PERMISSION, f"the broker[{broker_ip1}] sending message is forbidden")
    if group_config.retry_queue_nums <= 0:
        return SendBackAnswer(SUCCESS, None)
    topics = (_retry_topic_made(request, group_config.retry_queue_nums),)
    if not retry_topic_perm & PERM_WRITE:
        remark = f"the topic[{topics[0].topic}] sending message is forbidden"
        return SendBackAnswer(NO_PERMISSION, remark, topics)
    if msg_ext is None:
        return SendBackAnswer(SYSTEM_ERROR, f"look message by offset failed, {request.offset}", topics)
    if is_dead_letter(request, group_config, msg_ext.reconsume_times):
        dead = TopicMade(dlq_topic(request.group), DLQ_NUMS_PER_GROUP, PERM_READ_WRITE, 0)
        return SendBackAnswer(SUCCESS, None, (*topics, dead), _stored_anew(msg_ext, dead.topic, 0, 0))
    queue_id = queue_id_random % group_config.retry_queue_nums
    level = retry_delay_level(request.delay_level, msg_ext.reconsume_times)
    return SendBackAnswer(SUCCESS, None, topics, _stored_anew(msg_ext, topics[0].topic, queue_id, level))


def is_dead_letter(request: SendBackRequest, group_config: RetryGroup, reconsume_times: int) -> bool:
    """Return whether a message sent back becomes a dead letter: no retries left, or requested by a level below 0.

    The client's own maximum goes before the group's, if the client is of 3.4.9 or later and names one.
    Follows SendMessageProcessor#consumerSendMsgBack.

    >>> is_dead_letter(SendBackRequest("g", 0, 0), RetryGroup(1, 16), 16)
    True
    >>> is_dead_letter(SendBackRequest("g", 0, 0, max_reconsume_times=20), RetryGroup(1, 16), 16)
    False
    """
    max_reconsume_times = group_config.retry_max_times
    if request.version >= V3_4_9 and request.max_reconsume_times is not None:
        max_reconsume_times = request.max_reconsume_times
    return reconsume_times >= max_reconsume_times or request.delay_level < 0


def is_second_dead_letter(
    reconsume_times: int, max_reconsume_times: int, lock_all_expired: bool = True, version: str = BROKER_4
) -> bool:
    """Return whether a message that a client sends to its retry topic itself becomes a dead letter.

    4.x does it at the maximum, 5.0 past it. Since 5.1.1 any unexpired lock of the group on the broker shows that the
    message is of an orderly group, and it has no retry. ``lock_all_expired`` is that of `is_lock_all_expired`, and
    ``reconsume_times`` counts this try too. SendMessageProcessor#handleRetryAndDLQ.

    >>> [is_second_dead_letter(2, 2, version=version) for version in ("4.9.7", "5.0.0")]
    [True, False]
    >>> [is_second_dead_letter(1, 16, False, version) for version in ("5.1.0", "5.1.1")]
    [False, True]
    """
    if not at_least(version, "5.0.0"):
        return reconsume_times >= max_reconsume_times
    return reconsume_times > max_reconsume_times or (at_least(version, "5.1.1") and not lock_all_expired)


def retry_delay_level(delay_level: int, reconsume_times: int) -> int:
    """Return the level of the next retry: as requested, or for 0 the third level plus one for each retry so far.

    Follows SendMessageProcessor#consumerSendMsgBack.

    >>> retry_delay_level(0, 0), retry_delay_level(0, 15), retry_delay_level(2, 15)
    (3, 18, 2)
    """
    return to_int(3 + reconsume_times) if delay_level == 0 else delay_level


def _retry_topic_made(request: SendBackRequest, retry_queue_nums: int) -> TopicMade:
    sys_flag = TOPIC_SYS_FLAG_UNIT_SUB if request.unit_mode else 0
    return TopicMade(retry_topic(request.group), retry_queue_nums, PERM_READ_WRITE, sys_flag)


def _stored_anew(msg_ext: StoredMessage, topic: str, queue_id: int, level: int) -> SentBack:
    properties = dict(msg_ext.properties)
    # The first topic is kept through all retries, and so is the first message id.
    properties.setdefault("RETRY_TOPIC", msg_ext.topic)
    if is_blank(properties.get("ORIGIN_MESSAGE_ID")):
        properties["ORIGIN_MESSAGE_ID"] = msg_ext.msg_id
    properties["WAIT"] = "false"
    properties["DELAY"] = str(level)
    reconsume_times = to_int(msg_ext.reconsume_times + 1)
    tags_code = string_hash(properties.get("TAGS", ""))
    return SentBack(topic, queue_id, level, reconsume_times, properties, tags_code)
