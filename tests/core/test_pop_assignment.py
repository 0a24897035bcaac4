"""Assignment by a broker: who gets a queue, and which answers take no queue away."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqreplay.core.message_queue import MessageQueue
from mqreplay.core.pop_assignment import RequestMode, allocate_for_pop, message_request_mode, query_assignment
from mqreplay.words.errors import IllegalArgument

STRATEGIES = st.sampled_from(["AVG", "AVG_BY_CIRCLE"])


def queues(count: int) -> list[MessageQueue]:
    return [MessageQueue("T", "broker-a", queue_id) for queue_id in range(count)]


def clients(count: int) -> list[str]:
    return [f"c{index:02}" for index in range(count)]


@given(STRATEGIES, st.integers(1, 12), st.integers(1, 12), st.integers(-1, 12))
def test_every_queue_is_popped_by_a_client_and_every_client_has_one(
    strategy: str, queue_count: int, client_count: int, share: int
) -> None:
    mq_all, cid_all = queues(queue_count), clients(client_count)
    shares = [set(allocate_for_pop(strategy, "g", cid, mq_all, cid_all, share)) for cid in cid_all]
    assert all(shares)
    everything = {MessageQueue("T", "broker-a", -1)}
    assert all(each == everything for each in shares) or set().union(*shares) == set(mq_all)


@given(STRATEGIES, st.integers(3, 12), st.data())
def test_a_queue_is_shared_by_one_client_more_than_the_number_says(
    strategy: str, client_count: int, data: st.DataObject
) -> None:
    share = data.draw(st.integers(1, client_count - 2))
    mq_all, cid_all = queues(client_count), clients(client_count)
    of_clients = [set(allocate_for_pop(strategy, "g", cid, mq_all, cid_all, share)) for cid in cid_all]
    assert {sum(mq in each for each in of_clients) for mq in mq_all} == {share + 1}


def test_a_broadcasting_client_gets_all_queues_whatever_the_clients_are() -> None:
    mode = RequestMode("POP")
    assert query_assignment("T", "g", "c", "BROADCASTING", "AVG", mode, queues(2), None) == queues(2)


@pytest.mark.parametrize(
    ("cid_all", "strategy", "known"), [(None, "AVG", True), (["c"], "MACHINE_ROOM", True), (["c"], "AVG", False)]
)
def test_an_unknown_group_strategy_or_topic_leaves_the_client_as_it_is(
    cid_all: list[str] | None, strategy: str, known: bool
) -> None:
    info = queues(2) if known else None
    assert query_assignment("T", "g", "c", "CLUSTERING", strategy, RequestMode(), info, cid_all) is None


def test_a_client_that_is_not_in_the_group_loses_all_queues_in_mode_pull() -> None:
    assert query_assignment("T", "g", "x", "CLUSTERING", "AVG", RequestMode(), queues(2), ["c"]) == []


def test_without_balancing_by_the_server_each_client_gets_all_queues() -> None:
    arguments = ("T", "g", "c", "CLUSTERING", "AVG", RequestMode("POP"), queues(2), ["c"], False)
    assert query_assignment(*arguments) == queues(2)


def test_a_light_queue_is_at_the_broker_that_is_asked() -> None:
    arguments = ("%LMQ%t", "g", "c", "CLUSTERING", "AVG", RequestMode(), None, ["c"], True)
    assert query_assignment(*arguments, "broker-b") == [MessageQueue("%LMQ%t", "broker-b", 0)]
    with pytest.raises(IllegalArgument, match="name of the broker"):
        query_assignment(*arguments)


def test_a_retry_topic_is_pulled_unless_its_mode_is_stored() -> None:
    assert message_request_mode("%RETRY%g", None, "POP", 3) == ("PULL", 0)
    assert message_request_mode("T", None, "POP", 3) == ("POP", 3)
    assert message_request_mode("T", RequestMode("PULL"), "POP", 3) == ("PULL", 0)
