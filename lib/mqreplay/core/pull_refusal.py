"""The remarks with which a broker refuses a pull, and what each says: from 4.9 to 5.5.

The same code has several reasons, and one reason several codes: only the remark names it. Where a class is not named
below, PullMessageProcessor#processRequest writes the remark.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from mqreplay.core.pull_check import (
    FILTER_DATA_NOT_EXIST,
    FILTER_DATA_NOT_LATEST,
    INVALID_PARAMETER,
    NO_PERMISSION,
    NOT_LEADER_FOR_QUEUE,
    SUBSCRIPTION_GROUP_NOT_EXIST,
    SUBSCRIPTION_NOT_EXIST,
    SUBSCRIPTION_NOT_LATEST,
    SUBSCRIPTION_PARSE_FAILED,
    SYSTEM_BUSY,
    SYSTEM_ERROR,
    TOPIC_NOT_EXIST,
)

# What the broker looked at; the last: how many requests waited, forbiddenTable, the rights of the client, its store.
BROKER, TOPIC, GROUP, INFO, FILTER, LOAD = "broker", "topic", "group", "info", "filter", "load"
FORBIDDEN, ACCESS, STORE = "forbidden", "access", "store"


class PullRefusal(NamedTuple):
    """A reason for which a broker refuses a pull: its codes, what it looked at, the reason in words."""

    codes: tuple[int, ...]
    decided_by: str
    words: str


# By a pattern of the remark's begin; the first that matches counts.
REFUSALS: Final[dict[str, PullRefusal]] = {
    # NettyRemotingAbstract#processRequestCommand; rejectRequest of a pull is false before 5.0
    r"\[REJECTREQUEST\]": PullRefusal((SYSTEM_BUSY,), BROKER, "the slave may not be read (slaveReadEnable)"),
    # NettyRemotingAbstract#processRequestCommand
    r"\[OVERLOAD\]": PullRefusal((SYSTEM_BUSY,), LOAD, "the broker's queue of pulls was full (OVERLOAD)"),
    # BrokerFastFailure#cleanExpiredRequestInQueue (waitTimeMillsInPullQueue)
    r"\[TIMEOUT_CLEAN_QUEUE\]": PullRefusal(
        (SYSTEM_BUSY,), LOAD, "the pull waited too long in the broker (TIMEOUT_CLEAN_QUEUE)"
    ),
    # since 5.1.2
    "This consumer group is reading cold data": PullRefusal(
        (SYSTEM_BUSY,), LOAD, "the group read too much cold data (coldDataFlowControlEnable)"
    ),
    # since 5.0
    r"the broker\[.*\] for lite pull consumer is": PullRefusal(
        (NO_PERMISSION,), BROKER, "the broker does not serve lite pull consumers (litePullMessageEnable)"
    ),
    r"the broker\[": PullRefusal((NO_PERMISSION,), BROKER, "the broker may not be read (brokerPermission)"),
    "subscription group no permission": PullRefusal((NO_PERMISSION,), GROUP, "the group is disabled (consumeEnable)"),
    # since 5.0
    r"the consumer group\[.*\] is forbidden for topic\[": PullRefusal(
        (NO_PERMISSION,), FORBIDDEN, "the group may not read the topic (forbiddenTable)"
    ),
    r"the consumer group\[": PullRefusal(
        (NO_PERMISSION,), GROUP, "the group may not broadcast (consumeBroadcastEnable)"
    ),
    r"the topic\[": PullRefusal((NO_PERMISSION,), TOPIC, "the topic may not be read (perm)"),
    r"topic\[": PullRefusal((TOPIC_NOT_EXIST,), TOPIC, "the broker lacks the topic"),
    # SYSTEM_ERROR before 5.3.2
    r"queueId\[": PullRefusal((SYSTEM_ERROR, INVALID_PARAMETER), TOPIC, "the topic has fewer queues (readQueueNums)"),
    r"subscription group \[": PullRefusal((SUBSCRIPTION_GROUP_NOT_EXIST,), GROUP, "the broker lacks the group"),
    # since 5.3.3
    "the consumer's group info not exist, or the pull consumer": PullRefusal(
        (SUBSCRIPTION_NOT_EXIST,),
        BROKER,
        "the broker refuses pull consumers (rejectPullConsumerEnable)",
    ),
    "the consumer's group info not exist": PullRefusal(
        (SUBSCRIPTION_NOT_EXIST,), INFO, "no consumer of the group was registered with the broker"
    ),
    "the consumer's subscription not exist": PullRefusal(
        (SUBSCRIPTION_NOT_EXIST,), INFO, "the broker knew a subscription of the group without the topic"
    ),
    "the consumer's subscription not latest": PullRefusal(
        (SUBSCRIPTION_NOT_LATEST,), INFO, "the broker knew an older subscription of the group"
    ),
    "parse the consumer's subscription failed": PullRefusal(
        (SUBSCRIPTION_PARSE_FAILED,), FILTER, "the broker could not parse the expression"
    ),
    "The broker does not support": PullRefusal(
        (SYSTEM_ERROR,), BROKER, "the broker does not filter by properties (enablePropertyFilter)"
    ),
    "The broker's consumer filter data": PullRefusal(
        (FILTER_DATA_NOT_EXIST,), FILTER, "the broker has no filter of the expression"
    ),
    "the consumer's consumer filter data": PullRefusal(
        (FILTER_DATA_NOT_LATEST,), FILTER, "the broker has an older filter of the group"
    ),
    # DefaultMessageStore#getMessage: shut, or RunningFlags#isReadable is false
    "store getMessage return null": PullRefusal(
        (SYSTEM_ERROR,), STORE, "the broker's store was shut or could not be read"
    ),
    # PullMessageProcessor#rewriteRequestForStaticTopic, since 5.0
    ".* cannot find mapping item in request process": PullRefusal(
        (NOT_LEADER_FOR_QUEUE,), STORE, "the broker does not have this queue of a static topic"
    ),
    # PlainAccessValidator (the exception is the remark), AuthenticationPipeline and AuthorizationPipeline of 5.3; ONS
    ".*AclException|.*AuthenticationException: |.* has no permission to access |User:.* (?:is|not) "
    "|Authentication failed|Authorization failed"
    "|check signature failed": PullRefusal(
        (SYSTEM_ERROR, NO_PERMISSION), ACCESS, "the client has no right to read (ACL)"
    ),
}
_PATTERNS: Final = {re.compile(pattern): refusal for pattern, refusal in REFUSALS.items()}


def refusal_of(remark: str) -> PullRefusal | None:
    """Return the reason that a remark names, None for a remark that none of 4.9 to 5.5 has.

    Follows PullMessageProcessor#processRequest.

    >>> refusal_of("queueId[3] is illegal, topic:[T] topicConfig.readQueueNums:[3] consumer:[/10.0.0.1:2]").codes
    (1, 29)
    >>> refusal_of("the consumer group[g] is forbidden for topic[T]").words
    'the group may not read the topic (forbiddenTable)'
    """
    return next((refusal for pattern, refusal in _PATTERNS.items() if pattern.match(remark)), None)
