from __future__ import annotations

import pytest

from mqreplay.core.get_message import GetMessageResult
from mqreplay.core.pull_answer import (
    may_be_reset_answer,
    pull_answer,
    response_code,
    suggest_which_broker_id,
    uses_server_side_reset,
)
from mqreplay.core.pull_check import (
    FLAG_COMMIT_OFFSET,
    FLAG_SUBSCRIPTION,
    FLAG_SUSPEND,
    ConsumerGroupInfo,
    GroupConfig,
    PullBroker,
    PullRequest,
    Refusal,
    Subscription,
    TopicReadConfig,
    check_pull,
)
from mqreplay.words.errors import IllegalArgument

GROUP = GroupConfig(broker_id=2, which_broker_when_consume_slowly=3)
SLAVE = PullBroker("10.0.0.2", "SLAVE", slave_read_enable=True, broker_id=1)
MASTER = PullBroker("10.0.0.1")
BOTH = PullRequest("T", "g", 0, 5, FLAG_COMMIT_OFFSET | FLAG_SUSPEND, commit_offset=4)


@pytest.mark.parametrize(
    ("slow", "read_enable", "expected"), [(True, True, 3), (False, True, 2), (True, False, 0), (False, False, 0)]
)
def test_suggestion_of_4(slow: bool, read_enable: bool, expected: int) -> None:
    assert suggest_which_broker_id(slow, read_enable, 2, 3) == expected


def test_suggestion_of_5() -> None:
    assert suggest_which_broker_id(True, True, 2, 3, in_broker_container=True, version="5.3.3") == 0
    assert suggest_which_broker_id(False, True, 2, 3, broker_id=1, version="5.3.3") == 0
    gone = suggest_which_broker_id(False, True, 2, 3, broker_id=1, min_broker_id_in_group=1, version="5.3.3")
    assert gone == 2  # no living master to send it to


def test_a_slave_does_not_correct_offsets() -> None:
    result = GetMessageResult("OFFSET_OVERFLOW_BADLY", 5, 0, 5, suggest_pulling_from_slave=True)
    answer = pull_answer(BOTH, SLAVE, GROUP, result)
    assert (answer.code, answer.suggest_which_broker_id) == (20, 2)
    answer = pull_answer(BOTH, SLAVE._replace(offset_check_in_slave=True), GROUP, result)
    assert (answer.code, answer.suggest_which_broker_id) == (21, 3)


def test_who_stores_the_commit_offset() -> None:
    result = GetMessageResult("FOUND", 5, 0, 5)
    stored = {
        (broker.broker_role, version): pull_answer(BOTH, broker, GROUP, result, version=version).committed_offset
        for broker in (MASTER, SLAVE)
        for version in ("4.9.7", "5.3.3")
    }
    assert stored == {
        ("ASYNC_MASTER", "4.9.7"): 4,
        ("ASYNC_MASTER", "5.3.3"): 4,
        ("SLAVE", "4.9.7"): None,
        ("SLAVE", "5.3.3"): 4,
    }
    assert pull_answer(BOTH, MASTER, GROUP, result, broker_allow_suspend=False).committed_offset is None


def test_a_held_pull_is_not_held_twice() -> None:
    result = GetMessageResult("OFFSET_OVERFLOW_ONE", 5, 0, 5)
    assert pull_answer(BOTH, MASTER, GROUP, result).held
    assert not pull_answer(BOTH, MASTER, GROUP, result, broker_allow_suspend=False).held
    assert not pull_answer(BOTH._replace(sys_flag=0), MASTER, GROUP, result).held


def test_a_refusal_suggests_nothing() -> None:
    answer = pull_answer(BOTH, MASTER, GROUP, Refusal(16, "no"))
    assert (answer.code, answer.suggest_which_broker_id, answer.committed_offset) == (16, None, None)


def test_a_status_nobody_knows() -> None:
    with pytest.raises(IllegalArgument, match=r"constant org\.apache\.rocketmq\.store\.GetMessageStatus\.FUND$"):
        response_code("FUND", 0)


def checked(request: PullRequest, known: Subscription, broker: PullBroker = MASTER) -> int | None:
    info = ConsumerGroupInfo("CLUSTERING", {"T": known})
    refusal = check_pull(request, broker, TopicReadConfig(), GROUP, info)
    return None if refusal is None else refusal.code


def test_sql_needs_a_filter_as_new_as_the_request() -> None:
    request = BOTH._replace(sub_version=7)
    filtering = MASTER._replace(enable_property_filter=True)
    assert checked(request, Subscription("SQL92", 6)) == 25
    assert checked(request, Subscription("SQL92", 7)) == 27
    assert checked(request, Subscription("SQL92", 7, 6), filtering) == 28
    assert checked(request, Subscription("SQL92", 7, 7)) == 1
    assert checked(request, Subscription("SQL92", 7, 7), filtering) is None


@pytest.mark.parametrize(
    ("subscription", "expression_type", "code"),
    [("a||b", "TAG", None), ("||", "TAG", 23), ("", None, None), (None, "SQL92", 23), ("a > 1", "SQL92", 1)],
)
def test_a_subscription_brought_along(subscription: str | None, expression_type: str | None, code: int | None) -> None:
    request = BOTH._replace(sys_flag=FLAG_SUBSCRIPTION, subscription=subscription, expression_type=expression_type)
    assert checked(request, Subscription()) == code


def test_a_5_slave_that_may_not_be_read_is_busy() -> None:
    slave = SLAVE._replace(slave_read_enable=False)
    refusals = [
        check_pull(BOTH, slave, TopicReadConfig(), GROUP, ConsumerGroupInfo("CLUSTERING", {}), version=version)
        for version in ("4.9.7", "5.3.3")
    ]
    assert [refusal and refusal.code for refusal in refusals] == [24, 2]


def test_only_5_x_looks_at_the_container_and_at_the_living_master() -> None:
    assert suggest_which_broker_id(True, True, 2, 3, in_broker_container=True) == 3
    assert suggest_which_broker_id(False, True, 2, 3, broker_id=1) == 2


def test_a_slave_of_5_x_is_busy_only_while_it_may_not_be_read() -> None:
    config = TopicReadConfig(), GroupConfig(), ConsumerGroupInfo("CLUSTERING", {"T": Subscription()})
    closed = SLAVE._replace(slave_read_enable=False)
    busy = Refusal(2, "[REJECTREQUEST]system busy, start flow control for a while")
    assert check_pull(BOTH, closed, *config, version="5.3.3") == busy
    assert check_pull(BOTH, closed, *config) is None
    assert check_pull(BOTH, SLAVE, *config, version="5.3.3") is None
    assert check_pull(BOTH, MASTER, *config, version="5.3.3") is None


@pytest.mark.parametrize(
    ("enabled", "model", "code"),
    [(True, "BROADCASTING", None), (False, "BROADCASTING", 16), (False, "CLUSTERING", None)],
)
def test_a_group_that_may_not_broadcast(enabled: bool, model: str, code: int | None) -> None:
    info = ConsumerGroupInfo(model, {"T": Subscription()})
    refusal = check_pull(BOTH, MASTER, TopicReadConfig(), GroupConfig(consume_broadcast_enable=enabled), info)
    assert (refusal and refusal.code) == code


@pytest.mark.parametrize(("perm", "allowed"), [(0, False), (1, False), (2, False), (3, False), (4, True), (6, True)])
def test_reading_is_one_bit(perm: int, allowed: bool) -> None:
    info = ConsumerGroupInfo("CLUSTERING", {"T": Subscription()})
    for broker, topic in (
        (MASTER, TopicReadConfig(perm=perm)),
        (MASTER._replace(broker_permission=perm), TopicReadConfig()),
    ):
        assert (check_pull(BOTH, broker, topic, GroupConfig(), info) is None) == allowed


def test_a_filter_older_than_the_request() -> None:
    known = Subscription("SQL92", 5, filter_version=4)
    broker = MASTER._replace(enable_property_filter=True)
    info = ConsumerGroupInfo("CLUSTERING", {"T": known})
    refusal = check_pull(BOTH._replace(sub_version=5), broker, TopicReadConfig(), GroupConfig(), info)
    assert refusal == Refusal(28, "the consumer's consumer filter data not latest")


def test_a_queue_that_is_none_names_who_asked() -> None:
    config = TopicReadConfig(read_queue_nums=2), GroupConfig(), None
    refusal = check_pull(BOTH._replace(queue_id=2), MASTER, *config, remote_address="/10.0.0.9:5")
    words = "queueId[2] is illegal, topic:[T] topicConfig.readQueueNums:[2] consumer:[/10.0.0.9:5]"
    assert refusal == Refusal(1, words)
    unknown = check_pull(BOTH._replace(queue_id=2), MASTER, *config)
    assert unknown == Refusal(1, words.replace("/10.0.0.9:5", ""))


@pytest.mark.parametrize(
    ("version", "shipped", "switched_on"),
    [("4.9.7", False, False), ("5.0.0", False, False), ("5.1.0", False, True), ("5.1.4", False, True)],
)
def test_brokers_before_5_2_answer_no_pull_with_a_reset_as_shipped(
    version: str, shipped: bool, switched_on: bool
) -> None:
    assert (uses_server_side_reset(version), uses_server_side_reset(version, True)) == (shipped, switched_on)


@pytest.mark.parametrize("version", ["5.2.0", "5.3.3", "5.5.0"])
def test_later_brokers_do_unless_it_is_switched_off(version: str) -> None:
    assert uses_server_side_reset(version)
    assert not uses_server_side_reset(version, False)


@pytest.mark.parametrize(
    ("code", "after", "expected"),
    [(21, 0, True), (21, 50, True), (21, 51, True), (21, 52, False), (21, -1, False), (0, 5, False), (20, 5, False)],
)
def test_an_answer_that_a_reset_gives(code: int, after: int, expected: bool) -> None:
    assert may_be_reset_answer(code, after, max_offset=50) == expected
