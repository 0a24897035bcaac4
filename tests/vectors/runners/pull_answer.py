"""The broker's answer to a pull."""

from __future__ import annotations

from typing import Any

from mqreplay.core.get_message import GetMessageResult
from mqreplay.core.pull_answer import PullAnswer, compose_response_header, pull_answer
from mqreplay.core.pull_check import (
    ConsumerGroupInfo,
    GroupConfig,
    PullBroker,
    PullRequest,
    Subscription,
    TopicReadConfig,
    check_pull,
)

SUB_VERSION = 10  # what the requests of the vectors bring
KNOWN = {
    "groupInfo",
    "storeReturns",
    "topicConfig",
    "groupSubscribesTopic",
    "groupConfig",
    "expressionType",
    "subscription",
    "messageModel",
    "consumeBroadcastEnable",
    "topicPerm",
    "consumeEnable",
    "brokerSubVersion",
    "brokerPermission",
    "queueId",
    "enablePropertyFilter",
    "forbidden",
    "lite",
    "litePullMessageEnable",
    "rejectPullConsumerEnable",
    "isActiveElsewhere",
}


def broker_suggest(case: dict[str, Any], version: str = "4.9.7") -> dict[str, Any]:
    kind = case["case"]
    if kind in ("pull.grid", "pull.options"):
        return _pull(case, version)
    if kind.startswith("compose"):
        answer = compose_response_header(
            case["queueOffset"], _broker(case), _group_config(case), _result(case), version
        )
        return {
            "code": answer.code,
            "remark": answer.remark,
            "suggestWhichBrokerId": answer.suggest_which_broker_id,
            "nextBeginOffset": answer.next_begin_offset,
        }
    raise NotImplementedError(kind)


def _broker(case: dict[str, Any]) -> PullBroker:
    other = case.get("otherThan", {})
    return PullBroker(
        "10.0.0.1",
        case["brokerRole"],
        other.get("brokerPermission", 6),
        case["slaveReadEnable"],
        case.get("offsetCheckInSlave", False),
        other.get("enablePropertyFilter", False),
        case.get("brokerId", 0),
        case.get("minBrokerIdInGroup", 0),
        case.get("inBrokerContainer", False),
        other.get("rejectPullConsumerEnable", False),
        other.get("litePullMessageEnable", True),
    )


def _group_config(case: dict[str, Any]) -> GroupConfig:
    other = case.get("otherThan", {})
    return GroupConfig(
        other.get("consumeEnable", True),
        other.get("consumeBroadcastEnable", True),
        case["groupBrokerId"],
        case["whichBrokerWhenConsumeSlowly"],
        other.get("forbidden", False),
    )


def _result(case: dict[str, Any]) -> GetMessageResult:
    return GetMessageResult(
        case["status"],
        case.get("nextBeginOffset", 77),
        case.get("minOffset", 3),
        case.get("maxOffset", 99),
        suggest_pulling_from_slave=case["suggestPullingFromSlave"],
    )


def _group_info(other: dict[str, Any]) -> ConsumerGroupInfo | None:
    if other.get("groupInfo", ...) is None:
        return None
    known = Subscription(other.get("expressionType", "TAG"), other.get("brokerSubVersion", SUB_VERSION))
    subscribed = other.get("groupSubscribesTopic", True)
    model, elsewhere = other.get("messageModel", "CLUSTERING"), other.get("isActiveElsewhere", False)
    return ConsumerGroupInfo(model, {"T": known} if subscribed else {}, elsewhere)


def _pull(case: dict[str, Any], version: str) -> dict[str, Any]:
    other = case["otherThan"]
    if not set(other) <= KNOWN:
        raise NotImplementedError(f"{case['case']}: {sorted(set(other) - KNOWN)}")
    request = PullRequest(
        "T",
        "g",
        other.get("queueId", 0),
        case["queueOffset"],
        case["sysFlag"],
        case["commitOffset"],
        other.get("subscription", "*"),
        other.get("expressionType", "TAG"),
        SUB_VERSION,
        other.get("lite", False),
    )
    broker, group_config = _broker(case), _group_config(case)
    no_topic = other.get("topicConfig", ...) is None
    topic_config = None if no_topic else TopicReadConfig(other.get("topicPerm", 6), case["readQueueNums"])
    known_group = None if other.get("groupConfig", ...) is None else group_config
    refusal = check_pull(request, broker, topic_config, known_group, _group_info(other), "/10.0.0.9:5555", version)
    result = None if other.get("storeReturns", ...) is None else _result(case)
    answer = pull_answer(request, broker, group_config, refusal or result, case["brokerAllowSuspend"], version)
    return _row(answer)


def _row(answer: PullAnswer) -> dict[str, Any]:
    if answer.held:
        return {"committed": answer.committed_offset, "held": 1, "response": None}
    return {
        "code": answer.code,
        "remark": answer.remark,
        "suggestWhichBrokerId": answer.suggest_which_broker_id,
        "nextBeginOffset": answer.next_begin_offset,
        "minOffset": answer.min_offset,
        "maxOffset": answer.max_offset,
        "held": 0,
        "committed": answer.committed_offset,
    }


FILES = {"broker_suggest": broker_suggest, "pull_refusal": broker_suggest}
