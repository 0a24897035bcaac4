"""Refused pulls against PullMessageProcessor: by the broker's files, its description, and the group's heartbeats."""

from __future__ import annotations

from typing import Any

import pytest

from mqreplay.decisions.pull_refusals import pull_answers, refusal_inputs
from mqreplay.evidence.members.group_states import group_states
from mqreplay.evidence.offsets.held_resets import reset_evidence
from silver_moments import at
from silver_rows import rows

PULL = {"consumer_group": "g", "topic": "t", "broker_name": "b", "queue_id": 0, "client_id": "c", "broker_id": 0}
PULL |= {"request_ts": at(100), "response_ts": at(100.1), "queue_offset": 5, "sub_version": 7, "sys_flag": 3}
TOPIC = {"broker_name": "b", "broker_id": 0, "source_name": "b-0", "topic": "t", "ts": at(0), "change": "first"}
TOPIC |= {"perm": 6, "read_queue_nums": 4}
GROUP = {"broker_name": "b", "broker_id": 0, "source_name": "b-0", "consumer_group": "g", "ts": at(0)}
GROUP |= {"change": "first", "consume_enable": True, "consume_broadcast_enable": True}
BROKER = {"broker_name": "b", "broker_id": 0, "ts": at(0), "broker_role": "ASYNC_MASTER", "rocketmq_version": "5.3.3"}
SLAVE = {"broker_role": "SLAVE", "slave_read_enable": False}
SUBSCRIBED = [{"topic": "t", "expression_type": "TAG", "sub_version": 7}]
Row = dict[str, Any]
FORBIDDEN = (16, "the topic[t] pulling message is forbidden")
NO_TOPIC = (17, "topic[t] not exist, apply first please! \nSee https://rocketmq.apache.org/docs/")
ILLEGAL = (29, "queueId[0] is illegal, topic:[t] topicConfig.readQueueNums:[0] consumer:[/10.0.0.1:2]")
DISABLED = (16, "subscription group no permission, g")
NO_GROUP = (26, "subscription group [g] does not exist, See")
NO_INFO, NO_SUBSCRIPTION = (
    (24, "the consumer's group info not exist\nSee"),
    (24, "the consumer's subscription not exist"),
)
NO_QUEUES = [{"read_queue_nums": 0}]
PULL_CONSUMER = (24, "the consumer's group info not exist, or the pull consumer is rejected by server.\nSee")
NO_LITE = (16, "the broker[10.0.0.1] for lite pull consumer is forbidden")
NOT_LATEST = (25, "the consumer's subscription not latest")
REJECTED = (2, "[REJECTREQUEST]system busy, start flow control for a while")


def beat(seconds: float, version: int = 7, model: str = "CLUSTERING") -> Row:
    group = {"group_name": "g", "message_model": model, "subscriptions": [SUBSCRIBED[0] | {"sub_version": version}]}
    named = {"kind": "HEART_BEAT", "client_id": "c", "broker_name": "b", "broker_id": 0, "ts": at(seconds)}
    return named | {"response_ts": at(seconds + 0.1), "consumer_data_set": [group]}


def verdict(
    refused: tuple[int, str],
    topics: list[Row] | None = None,
    groups: list[Row] | None = None,
    brokers: list[Row] | None = None,
    beats: list[Row] | None = None,
    **pull: Any,
) -> str:
    code, remark = refused
    row = {"response_code": code, "remark": remark} | pull
    known = refusal_inputs(
        rows("silver.topic_config", TOPIC, [{}] if topics is None else topics),
        rows("silver.subscription_group", GROUP, [{}] if groups is None else groups),
        described := rows("silver.broker", BROKER, [{}] if brokers is None else brokers),
        group_states(
            rows("silver.heartbeat", {}, [beat(10)] if beats is None else beats), rows("silver.broker_runtime", {}, [])
        ),
    )
    resets = reset_evidence(rows("silver.server_request", {}, []), rows("silver.broker_runtime", {}, []), 60)
    changes = rows("silver.offset_change", {}, [])
    (found,) = pull_answers(rows("silver.pull", PULL, [row]), described, known, changes, resets).rows(named=True)
    assert found["refusal"] is not None or "max_offset" in pull
    return found["judgement"]


def changed(**values: Any) -> list[Row]:
    """The entry, and a change of it that the copy after the pull shows."""
    return [{}, {"ts": at(110), "change": "changed"} | values]


@pytest.mark.parametrize(
    ("refused", "evidence", "expected"),
    [
        (FORBIDDEN, {"topics": [{"perm": 2}]}, "agree"),
        (FORBIDDEN, {}, "differ"),
        (FORBIDDEN, {"topics": changed(perm=2)}, "agree"),
        (FORBIDDEN, {"topics": [{"perm": 2}, {"ts": at(90), "change": "changed"}]}, "differ"),
        (FORBIDDEN, {"topics": []}, "undetermined"),
        (FORBIDDEN, {"topics": [{"topic": "other", "perm": 2}]}, "differ"),
        (NO_TOPIC, {"topics": [{"topic": "other"}]}, "agree"),
        (NO_TOPIC, {"topics": [{}, {"ts": at(50), "change": "removed"}]}, "agree"),
        (NO_TOPIC, {}, "differ"),
        (ILLEGAL, {"topics": [{"read_queue_nums": 0}]}, "agree"),
        (ILLEGAL, {}, "differ"),
        (ILLEGAL, {"topics": NO_QUEUES, "brokers": [{"rocketmq_version": "5.3.2"}]}, "agree"),
        (ILLEGAL, {"topics": NO_QUEUES, "brokers": [{"rocketmq_version": "5.3.1"}]}, "differ"),
        ((1, ILLEGAL[1]), {"topics": NO_QUEUES, "brokers": [{"rocketmq_version": "V5_3_1"}]}, "agree"),
        ((1, ILLEGAL[1]), {"topics": NO_QUEUES, "brokers": [{"rocketmq_version": "4.9.4"}]}, "agree"),
        ((1, ILLEGAL[1]), {"topics": NO_QUEUES, "brokers": []}, "agree"),
        (ILLEGAL, {"topics": NO_QUEUES, "brokers": []}, "agree"),
        ((1, ILLEGAL[1]), {"topics": NO_QUEUES}, "differ"),
        ((16, "the consumer group[g] is forbidden for topic[t]"), {}, "undetermined"),
        (
            PULL_CONSUMER,
            {"beats": [], "brokers": [{"properties": {"rejectPullConsumerEnable": "true"}}]},
            "undetermined",
        ),
        (PULL_CONSUMER, {"brokers": [{"properties": {"rejectPullConsumerEnable": "true"}}]}, "agree"),
        (PULL_CONSUMER, {"brokers": [{"properties": {"rejectPullConsumerEnable": "false"}}]}, "undetermined"),
        (NO_LITE, {"brokers": [{"properties": {"litePullMessageEnable": "false"}}]}, "agree"),
        (NO_LITE, {"brokers": [{"properties": {"brokerPermission": "2"}}]}, "undetermined"),
        (DISABLED, {"groups": [{"consume_enable": False}]}, "agree"),
        (DISABLED, {}, "differ"),
        (NO_GROUP, {"groups": [{"consumer_group": "other"}]}, "agree"),
        (NO_GROUP, {"groups": []}, "undetermined"),
        ((16, "the consumer group[g] can not consume by broadcast way"), {}, "differ"),
        (
            (16, "the consumer group[g] can not consume by broadcast way"),
            {"groups": [{"consume_broadcast_enable": False}], "beats": [beat(10, model="BROADCASTING")]},
            "agree",
        ),
        (NO_INFO, {"beats": []}, "agree"),
        (NO_INFO, {"beats": [beat(200)]}, "agree"),
        (NO_INFO, {}, "undetermined"),
        (NOT_LATEST, {"beats": [beat(10, 6)]}, "agree"),
        (NOT_LATEST, {}, "undetermined"),
        (NO_SUBSCRIPTION, {"topic": "u", "topics": [{"topic": "u"}]}, "agree"),
        (NO_SUBSCRIPTION, {}, "undetermined"),
        (REJECTED, {"brokers": [SLAVE]}, "agree"),
        (REJECTED, {"brokers": [{"broker_role": "SLAVE", "slave_read_enable": True}]}, "undetermined"),
        (REJECTED, {"brokers": []}, "undetermined"),
        (REJECTED, {"brokers": [SLAVE, SLAVE | {"ts": at(200), "slave_read_enable": True}]}, "agree"),
        (REJECTED, {"brokers": [SLAVE, SLAVE | {"ts": at(50), "slave_read_enable": True}]}, "undetermined"),
        (
            (16, "the broker[10.0.0.1] pulling message is forbidden"),
            {"brokers": [{"properties": {"brokerPermission": "2"}}]},
            "agree",
        ),
        ((16, "the broker[10.0.0.1] pulling message is forbidden"), {}, "undetermined"),
        ((23, "parse the consumer's subscription failed"), {}, "undetermined"),
        ((2, "[PCBUSY_CLEAN_QUEUE]broker busy"), {}, "undetermined"),
        ((17, "the topic[t] pulling message is forbidden"), {"topics": [{"perm": 2}]}, "undetermined"),
    ],
)
def test_a_refusal(refused: tuple[int, str], evidence: Row, expected: str) -> None:
    assert verdict(refused, **evidence) == expected


def test_an_answer_against_the_topics_permission() -> None:
    found = (0, "FOUND")
    asked = {"min_offset": 0, "max_offset": 9, "next_begin_offset": 6}
    assert verdict(found, topics=[{"perm": 2}], **asked) == "differ"
    assert verdict(found, topics=changed(perm=2), **asked) == "agree"
    assert verdict(found, groups=[{"consume_enable": False}], **asked) == "differ"
    assert verdict(found, **asked) == "agree"
