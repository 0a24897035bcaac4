"""broker.log, lock.log and stats.log: members, offsets that moved back, resets, and locks.

Renewals of a lock (every 20 s) leave no line: lock.log shows when a lock began, not how long it was held.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from mqreplay.core.pull_check import (
    FILTER_DATA_NOT_LATEST,
    SUBSCRIPTION_NOT_EXIST,
    SUBSCRIPTION_NOT_LATEST,
    SUBSCRIPTION_PARSE_FAILED,
)
from mqreplay.decode.body import body_of
from mqreplay.decode.logs import broker_life
from mqreplay.decode.logs.broker_facts import (
    Announced,
    CommittedLess,
    FallBehind,
    Joined,
    Left,
    LockLine,
    MinuteCount,
    OffsetCorrected,
    PullRefused,
    ResetDone,
    ResetRefused,
    ResetSent,
    ResetStarted,
    SubscriptionChanged,
    Vanished,
)
from mqreplay.decode.logs.form import Form
from mqreplay.decode.logs.java_text import Channel
from mqreplay.decode.server_requests import reset_offsets_of
from mqreplay.words.errors import DecodeError

OFFLINE: Final = "no member of the group was online"
_SCAN: Final = "SCAN: remove expired channel from ConsumerManager consumerTable. "
_ANNOUNCED: Final = "ClientManageProcessor: registerConsumer info changed"
_TOPIC_GROUP: Final = "topic={topic}, group={group}"
_GOT: Final = (" I got it. ",)
_LOCKED: Final = (" locked by other client. Group",)


def _closed(group: str, channel: Channel) -> Vanished:
    return Vanished(group, channel.client_addr, channel)


def _reset_done(topic: str, group: str, body: str) -> ResetDone:
    if not reset_offsets_of(body_of({"queues": body}, "queues")):
        raise DecodeError("missing_field", "queues has no offsetTable")
    return ResetDone(topic, group, body)


def _refused(reason: str) -> Callable[..., ResetRefused]:
    return partial(_reset_refused, reason)


def _reset_refused(reason: str, topic: str | None = None, group: str | None = None) -> ResetRefused:
    return ResetRefused(topic, group, reason)


_MEMBERS: Final = (
    Form(
        "new consumer connected, group: {group} {consume_type:word} {message_model:word} channel: {channel}",
        Joined,
        "ConsumerGroupInfo#updateChannel",
        start="new consumer connected, ",
    ),
    Form(
        "unregister a consumer[{group}] from consumerGroupInfo {channel}", Left, "ConsumerGroupInfo#unregisterChannel"
    ),
    Form(
        "NETTY EVENT: remove not active channel[{channel}] from ConsumerGroupInfo groupChannelTable, "
        "consumer group: {group}",
        _closed,
        "ConsumerGroupInfo#doChannelCloseEvent",
        start="NETTY EVENT: remove not active channel[ClientChannelInfo [",
    ),
    Form(
        f"{_SCAN}channel={{?/}}{{client_addr:address}}, consumerGroup={{group}}",
        Vanished,
        "ConsumerManager#scanNotActiveChannel",
        constants={"channel": None},
        start="SCAN: ",
        signs=(_SCAN,),
    ),
    Form(
        "registerConsumer info changed {consumer} {?/}{client_addr}",
        Announced,
        "ClientManageProcessor#heartBeat",
        versions="4",
    ),
    Form(
        f"{_ANNOUNCED}, SDK address={{?/}}{{client_addr}}, consumerData={{consumer}}",
        Announced,
        "ClientManageProcessor#heartBeat",
        versions="5",
        prefixes=("", "heartBeatV2 "),
        start="ClientManageProcessor: ",
        signs=(_ANNOUNCED,),
    ),
)
_SUBSCRIPTIONS: Final = tuple(
    Form(
        f"subscription changed, {text}",
        SubscriptionChanged,
        "ConsumerGroupInfo#updateSubscription",
        constants=constants,
        start="subscription changed, ",
    )
    for text, constants in (
        ("add new topic, group: {group} {new:subscription}", {"old": None}),
        ("group: {group} OLD: {old:subscription} NEW: {new:subscription}", {}),
        ("group: {group} remove topic {:key} {old:subscription}", {"new": None}),
    )
)
_OFFSETS: Final = (
    Form(
        "[NOTIFYME]update consumer offset less than store. clientHost={?/}{client_addr}, key={topic:key}@{group}, "
        "queueId={queue_id:int}, requestOffset={request_offset:long}, storeOffset={store_offset:long}",
        CommittedLess,
        "ConsumerOffsetManager#commitOffset",
        start="[NOTIFYME]update consumer offset less than store",
    ),
    Form(
        "PULL_OFFSET_MOVED:correction offset. topic={topic}, groupId={group}, requestOffset={request_offset:long}, "
        "newOffset={new_offset:long}, suggestBrokerId={:long}",
        OffsetCorrected,
        "PullMessageProcessor, DefaultPullMessageResultHandler#handle",
        start="PULL_OFFSET_MOVED:correction offset",
    ),
)
_REFUSED: Final = tuple(
    Form(
        text,
        PullRefused,
        "PullMessageProcessor#processRequest",
        constants={"response_code": code, "remark": remark},
        signs=None,
    )
    for text, code, remark in (
        (
            "the consumer's group info not exist, group: {group}",
            SUBSCRIPTION_NOT_EXIST,
            "the consumer's group info not exist",
        ),
        (
            "the consumer's subscription not exist, group: {group}, topic:{topic:key}",
            SUBSCRIPTION_NOT_EXIST,
            "the consumer's subscription not exist",
        ),
        (
            "The broker's subscription is not latest, group: {group} {:text}",
            SUBSCRIPTION_NOT_LATEST,
            "the consumer's subscription not latest",
        ),
        (
            "The broker's consumer filter data is not latest, group: {group}, topic: {topic:key}, {:text}",
            FILTER_DATA_NOT_LATEST,
            "the consumer's consumer filter data not latest",
        ),
        (
            "Parse the consumer's subscription[{:text}] failed, group: {group}",
            SUBSCRIPTION_PARSE_FAILED,
            "parse the consumer's subscription failed",
        ),
    )
)
_RESETS: Final = (
    Form(
        f"[reset-offset] reset offset started by {{?/}}{{client_addr}}. {_TOPIC_GROUP}, timestamp={{timestamp:long}}, "
        "isForce={is_force:boolean}",
        ResetStarted,
        "AdminBrokerProcessor#resetOffset",
        start="[reset-offset] reset offset started",
    ),
    Form(
        f"[reset-offset] reset offset success. {_TOPIC_GROUP}, clientId={{client_id}}",
        ResetSent,
        "Broker2Client#resetOffset",
        start="[reset-offset] reset offset success",
    ),
    Form(
        "[reset-offset] reset offset failed, no topic in this broker. topic={topic}",
        _refused("the broker does not have the topic"),
        "Broker2Client#resetOffset",
        start="[reset-offset] reset offset failed, no topic",
    ),
    Form(
        f"[reset-offset] reset offset exception. {_TOPIC_GROUP}{{:rest}}",
        _refused("the broker could not send it to a member of the group"),
        "Broker2Client#resetOffset",
        start="[reset-offset] reset offset exception",
    ),
    Form(
        "[reset-offset] the client does not support this feature{:text}",
        _refused("a member of the group is too old for resets"),
        "Broker2Client#resetOffset",
    ),
    Form(
        "Consumer not online, so can not reset offset, Group: {group} Topic: {topic} Timestamp: {:long}",
        _refused(OFFLINE),
        "Broker2Client#resetOffset",
        start="Consumer not online, so can not reset offset",
    ),
    *(
        Form(
            f"Reset offset failed, {absent} does not exist. {_TOPIC_GROUP}",
            _refused(f"the broker does not have the {absent}"),
            "AdminBrokerProcessor#resetOffsetInner",
            versions="5",
            start="Reset offset failed, ",
        )
        for absent in ("topic", "group")
    ),
    Form(
        "Reset offset aborted: no queues to reset{:text}",
        _refused("the topic has no queue"),
        "AdminBrokerProcessor#resetOffsetInner",
        versions="5",
    ),
    Form(
        f"Reset offset, {_TOPIC_GROUP}, queues={{body:object}}",
        _reset_done,
        "AdminBrokerProcessor#resetOffsetInner",
        versions="5",
    ),
)
FORMS: Final = (*_MEMBERS, *_SUBSCRIPTIONS, *_OFFSETS, *_REFUSED, *_RESETS, *broker_life.FORMS)
LOCK_FORMS: Final = (
    Form(
        "tryLock{?Batch}, message queue not locked, I got it. Group: {group} NewClientId: {client_id} {queue}",
        LockLine,
        "RebalanceLockManager#tryLockBatch",
        versions="4",
        constants={"kind": "granted", "other": None},
        signs=_GOT,
    ),
    Form(
        "tryLock{?Batch}, message queue lock expired, I got it. Group: {group} OldClientId: {other} "
        "NewClientId: {client_id} {queue}",
        LockLine,
        "RebalanceLockManager#tryLockBatch",
        versions="4",
        constants={"kind": "granted"},
        signs=_GOT,
    ),
    Form(
        "tryLock{?Batch}, message queue locked by other client. Group: {group} OtherClientId: {other} "
        "NewClientId: {client_id} {queue}",
        LockLine,
        "RebalanceLockManager#tryLockBatch",
        versions="4",
        constants={"kind": "refused"},
        signs=_LOCKED,
    ),
    Form(
        "unlockBatch, Group: {group} {queue} {client_id}",
        LockLine,
        "RebalanceLockManager#unlockBatch",
        versions="4",
        constants={"kind": "unlocked", "other": None},
        start="unlockBatch",
        signs=None,
    ),
    *(
        Form(
            f"RebalanceLockManager#{text}",
            LockLine,
            "RebalanceLockManager",
            versions="5",
            constants=constants,
            start="RebalanceLockManager#",
            signs=None,
        )
        for text, constants in (
            (
                "tryLock{?Batch}: lock a message {?queue }which has not been locked yet, group={group}, "
                "clientId={client_id}, mq={queue}",
                {"kind": "granted", "other": None},
            ),
            (
                "tryLock{?Batch}: try to lock a expired message queue, group={group}, mq={queue}, "
                "old client id={other}, new client id={client_id}",
                {"kind": "granted"},
            ),
            (
                "tryLock{?Batch}: message queue has been locked by other client, group={group}, mq={queue}, "
                "locked client id={other}, current client id={client_id}",
                {"kind": "refused"},
            ),
            (
                "unlockBatch: unlock mq, group={group}, clientId={client_id}, mqs={queue}",
                {"kind": "unlocked", "other": None},
            ),
        )
    ),
)
_MINUTE: Final = "Stats In One Minute, SUM: {total:positive} TPS: {:text}"
STATS_FORMS: Final = (
    *(
        Form(
            f"[{name}] [{key}] {_MINUTE}",
            MinuteCount,
            "BrokerStatsManager, StatsItem#printAtMinutes",
            constants={"what": what},
            start=f"[{name}] [",
            signs=None,
        )
        for name, key, what in (
            ("TOPIC_PUT_NUMS", "{topic:key}", "sent"),
            ("GROUP_GET_NUMS", "{topic:key}@{group}", "read"),
            ("SNDBCK_PUT_NUMS", "{topic:key}@{group}", "sent_back"),
        )
    ),
    *(
        Form(
            f"[GROUP_GET_FALL_{measure.upper()}] [{{queue_id:int}}@{{topic:key}}@{{group}}] Stats Every 5 Minutes, "
            "Value: {value:long}",
            FallBehind,
            "BrokerStatsManager, MomentStatsItem#printAtMinutes",
            constants={"measure": measure},
            start="[GROUP_GET_FALL_",
        )
        for measure in ("size", "time")
    ),
)
