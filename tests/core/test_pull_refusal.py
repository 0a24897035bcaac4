"""What each remark of a refused pull says."""

from __future__ import annotations

import pytest

from mqreplay.core.pull_refusal import refusal_of


@pytest.mark.parametrize(
    ("code", "remark", "word"),
    [
        (29, "queueId[3] is illegal, topic:[T] topicConfig.readQueueNums:[3] consumer:[/10.0.0.1:2]", "readQueueNums"),
        (16, "the consumer group[g] is forbidden for topic[T]", "forbiddenTable"),
        (16, "the consumer group[g] can not consume by broadcast way", "consumeBroadcastEnable"),
        (16, "the broker[10.0.0.1] for lite pull consumer is forbidden", "litePullMessageEnable"),
        (16, "the broker[10.0.0.1] pulling message is forbidden", "brokerPermission"),
        (2, "[OVERLOAD]system busy, start flow control for a while", "OVERLOAD"),
        (2, "[REJECTREQUEST]system busy, start flow control for a while", "slaveReadEnable"),
        (2, "[TIMEOUT_CLEAN_QUEUE]broker busy, period in queue: 5011ms, size of queue: 7", "TIMEOUT_CLEAN_QUEUE"),
        (2, "This consumer group is reading cold data. It has been flow control", "coldDataFlowControlEnable"),
        (24, "the consumer's group info not exist, or the pull consumer is rejected", "rejectPullConsumerEnable"),
        (24, "the consumer's group info not exist\nSee", "registered"),
        (1, "store getMessage return null", "store"),
        (501, "T-3 cannot find mapping item in request process of current broker b", "static topic"),
        (1, "org.apache.rocketmq.acl.common.AclException: No accessKey is configured, x", "ACL"),
        (
            1,
            "com.aliyun.openservices.ons.api.AuthenticationException: valid permission failed.",
            "ACL",
        ),
        (16, "User:rmq has no permission to access Topic:t from 10.0.0.9, no matched policies.", "ACL"),
    ],
)
def test_a_remark_has_its_own_words(code: int, remark: str, word: str) -> None:
    refusal = refusal_of(remark)
    assert refusal is not None
    assert code in refusal.codes
    assert word in refusal.words


def test_other_remarks_name_no_reason() -> None:
    assert refusal_of("") is None
    assert refusal_of("[PCBUSY_CLEAN_QUEUE]broker busy") is None  # only sends
