"""Delay levels, messages sent back to the broker, and the consumer's side of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mqreplay.core.delay_level import (
    compute_deliver_timestamp,
    delay_level_to_queue_id,
    parse_delay_level,
    queue_id_to_delay_level,
)
from mqreplay.core.faq_url import client_exception
from mqreplay.core.message_queue import MessageQueue
from mqreplay.core.rebalance_lock_manager import LockEntry, is_lock_all_expired
from mqreplay.core.retry_topic import (
    concurrent_max_reconsume_times,
    dlq_topic,
    orderly_max_reconsume_times,
    retry_topic,
)
from mqreplay.core.send_back import (
    RetryGroup,
    SendBackRequest,
    StoredMessage,
    consumer_send_msg_back,
    is_second_dead_letter,
)
from mqreplay.core.send_back_client import (
    ConsumedMessage,
    RetryMessage,
    check_reconsume_times,
    send_message_back,
)

# What the stubs around RocketMQ's classes held.
OFFSET = 99
STORED_PROPERTIES = {"TAGS": "tg"}
MASTER_ADDR, STORE_HOST = "10.0.0.1:10911", "10.0.0.2:10911"


def delay_levels(asked: dict[str, Any]) -> dict[str, Any]:
    ok, table, max_delay_level = parse_delay_level(asked["messageDelayLevel"])
    stored = asked["storeTimestamp"]
    return {
        "ok": ok,
        "levelsMs": {str(level): ms for level, ms in table.items()},
        "maxDelayLevel": max_delay_level,
        "computeDeliverTimestamp_level_result": [
            [level, compute_deliver_timestamp(level, stored, table)] for level in range(-1, 22)
        ],
    }


def level_queue_id(asked: dict[str, Any]) -> dict[str, Any]:
    level = asked["level"]
    return {
        "delayLevel2QueueId": delay_level_to_queue_id(level),
        "queueId2DelayLevel": queue_id_to_delay_level(level),
    }


def broker_send_back(asked: dict[str, Any]) -> dict[str, Any]:
    request = SendBackRequest(
        asked["group"],
        OFFSET,
        asked["delayLevel"],
        asked["headerMaxReconsumeTimes"],
        asked["unitMode"],
        asked["requestVersion"],
    )
    properties = STORED_PROPERTIES | {
        name: asked[field]
        for name, field in (
            ("RETRY_TOPIC", "propertyRetryTopic"),
            ("ORIGIN_MESSAGE_ID", "propertyOriginMsgId"),
        )
        if asked[field] is not None
    }
    group = RetryGroup(asked["retryQueueNums"], asked["groupRetryMaxTimes"]) if asked["groupKnown"] else None
    message = StoredMessage(asked["topic"], "MSGID", asked["reconsumeTimes"], properties)
    answer = consumer_send_msg_back(request, group, message if asked["messageFound"] else None)
    stored = answer.stored
    return {
        "code": answer.code,
        "remark": answer.remark,
        "topicsMade": [list(made) for made in answer.topics_made],
        "stored": stored
        and {
            "topic": stored.topic,
            "queueId": stored.queue_id,
            "delayTimeLevel": stored.delay_time_level,
            "reconsumeTimes": stored.reconsume_times,
            "properties": stored.properties,
            "tagsCode": stored.tags_code,
        },
    }


def consumed(msg: dict[str, Any]) -> ConsumedMessage:
    return ConsumedMessage(
        msg["topic"], msg["msgId"], msg["reconsumeTimes"], msg["flag"], msg["properties"], STORE_HOST
    )


def shown(msg: RetryMessage) -> dict[str, Any]:
    return {
        "topic": msg.topic,
        "delayTimeLevel": msg.delay_time_level,
        "flag": msg.flag,
        "properties": msg.properties,
    }


def client_send_back(asked: dict[str, Any], version: str) -> dict[str, Any]:
    done = send_message_back(
        consumed(asked["msgs"][0]),
        asked["delayLevel"],
        asked["brokerName"],
        MASTER_ADDR,
        asked["group"],
        asked["maxReconsumeTimes"],
        asked["brokerSendBackOk"],
        version,
    )
    asked_broker = done.sent_back_to_broker
    assert asked_broker is not None
    out: dict[str, Any] = {
        "sentBackToBroker": {
            "addr": asked_broker.addr,
            "brokerName": asked_broker.broker_name,
            "group": asked_broker.group,
            "delayLevel": asked_broker.delay_level,
            "maxReconsumeTimes": asked_broker.max_reconsume_times,
        },
        "sentByProducer": [shown(done.sent_by_producer)] if done.sent_by_producer else [],
    }
    if done.sent_by_producer and not asked["producerSendOk"]:
        out["error"] = str(client_exception(1, "no", version))
    return out


def orderly_check(asked: dict[str, Any], version: str) -> dict[str, Any]:
    msgs = [consumed(msg) for msg in asked["msgs"]]
    done = check_reconsume_times(msgs, asked["group"], asked["maxReconsumeTimes"], asked["producerSendOk"], version)
    return {
        "suspend": done.suspend,
        "reconsumeTimesAfter": list(done.reconsume_times),
        "sent": [shown(msg) for msg in done.sent_by_producer],
    }


def orderly_check_fails(asked: dict[str, Any]) -> dict[str, Any]:
    msgs = [ConsumedMessage("T", f"ID{i}", times) for i, times in enumerate(asked["reconsumeTimes"])]
    done = check_reconsume_times(msgs, "g", asked["maxReconsumeTimes"], send_ok=False)
    return {"suspend": done.suspend, "reconsumeTimesAfter": list(done.reconsume_times)}


def client_max(asked: dict[str, Any]) -> dict[str, Any]:
    field = asked["maxReconsumeTimes"]
    return {
        "concurrent": concurrent_max_reconsume_times(field),
        "orderly": orderly_max_reconsume_times(field),
    }


CASES: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "parseDelayLevel": delay_levels,
    "levelQueueId": level_queue_id,
    "sendMessageBack": broker_send_back,
    "clientMaxReconsumeTimes": client_max,
    "orderlyCheckReconsumeTimes.sendBackFails": orderly_check_fails,
}


VERSIONED: dict[str, Callable[[dict[str, Any], str], dict[str, Any]]] = {
    "clientSendMessageBack": client_send_back,
    "orderlyCheckReconsumeTimes": orderly_check,
}


def delay_retry(asked: dict[str, Any], version: str = "4.9.8") -> dict[str, Any]:
    if asked["case"] in VERSIONED:
        return VERSIONED[asked["case"]](asked, version)
    if asked["case"] not in CASES:
        raise NotImplementedError(asked["case"])
    return CASES[asked["case"]](asked)


def second_try(asked: dict[str, Any], version: str) -> dict[str, Any]:
    if asked["case"] != "handleRetryAndDLQ":
        raise NotImplementedError(asked["case"])
    locks = {MessageQueue("T", "b", n): LockEntry("c", -age) for n, age in enumerate(asked["lockAgesMs"] or ())}
    times, most = asked["reconsumeTimes"], asked["maxReconsumeTimes"]
    is_dead = is_second_dead_letter(times, most, is_lock_all_expired(locks, 0), version)
    return {"topic": dlq_topic("g") if is_dead else retry_topic("g")}


FILES = {"delay_retry": delay_retry, "second_try": second_try}
