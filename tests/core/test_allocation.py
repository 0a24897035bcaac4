from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqreplay.core.allocation import StrategySettings, allocate
from mqreplay.core.allocation_check import check
from mqreplay.core.allocation_consistent_hash import hash_ring, md5_hash
from mqreplay.core.allocation_machine_room import allocate_machine_room_nearby
from mqreplay.core.message_queue import MessageQueue, sort_client_ids
from mqreplay.words.errors import IllegalArgument, NullPointer, UnknownStrategy

SHARING = ["AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH"]


def queues(n: int, broker_name: str = "b") -> list[MessageQueue]:
    return [MessageQueue("T", broker_name, i) for i in range(n)]


class FirstWord:
    """A room is what stands before the first '-'."""

    def broker_deploy_in(self, message_queue: MessageQueue) -> str | None:
        return self.consumer_deploy_in(message_queue.broker_name)

    def consumer_deploy_in(self, client_id: str | None) -> str | None:
        return client_id.partition("-")[0] if client_id and "-" in client_id else None


@pytest.mark.parametrize("strategy", SHARING)
@given(n=st.integers(1, 40), members=st.sets(st.text("abc\U0001f600", min_size=1, max_size=4), min_size=1))
def test_every_queue_has_one_owner(strategy: str, n: int, members: set[str]) -> None:
    cid_all = sort_client_ids(members)
    shares = [allocate(strategy, "g", cid, queues(n), cid_all) for cid in cid_all]
    assert sorted(mq for share in shares for mq in share) == queues(n)
    if strategy != "CONSISTENT_HASH":
        sizes = [len(share) for share in shares]
        assert max(sizes) - min(sizes) <= 1
        assert sizes == sorted(sizes, reverse=True)


@pytest.mark.parametrize("strategy", [*SHARING, "MACHINE_ROOM"])
def test_arguments_are_checked_in_order(strategy: str) -> None:
    settings = StrategySettings(consumeridcs={"r"})
    for cid, mqs, cids, words in [
        ("", [], [], "currentCID is empty"),
        (None, None, None, "currentCID is empty"),
        ("c", [], [], "mqAll is null or mqAll empty"),
        ("c", queues(1), None, "cidAll is null or cidAll empty"),
    ]:
        with pytest.raises(IllegalArgument) as raised:
            allocate(strategy, "g", cid, mqs, cids, settings)
        assert raised.value.message == words
    assert allocate(strategy, "g", "stranger", queues(4), ["c"], settings) == []


def test_the_first_place_of_an_id_counts() -> None:
    assert [mq.queue_id for mq in allocate("AVG", "g", "c", queues(4), ["c", "d", "c"])] == [0, 1]


def test_unsorted_lists_are_used_as_they_are() -> None:
    mq_all = queues(4)[::-1]
    assert [mq.queue_id for mq in allocate("AVG", "g", "a", mq_all, ["b", "a"])] == [1, 0]


def test_config_is_taken_as_it_is() -> None:
    mine = [MessageQueue("other", "b", 7)]
    assert allocate("CONFIG", None, None, None, None, StrategySettings(mine)) == mine
    assert allocate("CONFIG", "g", "c", queues(1), ["c"], StrategySettings([])) == []


def test_an_id_met_again_goes_on_counting_its_places() -> None:
    assert hash_ring(("a", "a"), 2, lambda key: int(key[2:])) == ((0, 1, 2, 3), ("a",) * 4)


def test_a_null_id_breaks_the_ring_of_whoever_comes_after_it() -> None:
    with pytest.raises(NullPointer):
        hash_ring((None, "a"), 1)
    assert len(hash_ring(("a", None), 1)[0]) == 2


def test_rooms_without_consumers_are_shared_by_all() -> None:
    mq_all = queues(2, "r1-b") + queues(2, "r3-b")
    settings = StrategySettings(machine_room_resolver=FirstWord())
    shares = {
        cid: allocate("MACHINE_ROOM_NEARBY-AVG", "g", cid, mq_all, ["r1-c", "r2-c"], settings)
        for cid in ("r1-c", "r2-c")
    }
    assert shares == {"r1-c": [*queues(2, "r1-b"), queues(1, "r3-b")[0]], "r2-c": [queues(2, "r3-b")[1]]}


def test_a_queue_without_a_room_is_an_error() -> None:
    settings = StrategySettings(machine_room_resolver=FirstWord())
    with pytest.raises(IllegalArgument, match=r"Machine room is null for mq MessageQueue \[topic=T"):
        allocate("MACHINE_ROOM_NEARBY-AVG", "g", "r1-c", queues(1), ["r1-c"], settings)


def test_room_names_need_exactly_two_parts() -> None:
    mq_all = [MessageQueue("T", name, 0) for name in ("r@b", "r@b@", "r@b@c", "r@", "b", "x@b")]
    found = allocate("MACHINE_ROOM", "g", "c", mq_all, ["c"], StrategySettings(consumeridcs={"r"}))
    assert [mq.broker_name for mq in found] == ["r@b", "r@b@"]


def test_a_strategy_of_ones_own_cannot_be_replayed() -> None:
    with pytest.raises(UnknownStrategy) as raised:
        allocate("MY_OWN", "g", "c", queues(1), ["c"])
    assert str(raised.value) == "'MY_OWN' is not one of RocketMQ's own allocation strategies"


def test_places_that_fall_on_one_are_no_longer_counted_for_the_first_owner() -> None:
    # b takes a's one place over, so that a, met again, begins at 0 once more: and takes it back.
    assert hash_ring(("a", "b", "a"), 1, lambda key: int(key[2:])) == ((0,), ("a",))


def test_keys_of_places() -> None:
    keys: dict[str, int] = {}
    hash_ring(("a", None), 2, lambda key: keys.setdefault(key, len(keys)))
    assert list(keys) == ["a-0", "a-1", "null-0", "null-1"]


def test_half_a_character_is_hashed_as_a_question_mark() -> None:
    assert md5_hash("\ud83d") == md5_hash("?") != md5_hash("\U0001f600")


def test_a_queue_whose_hash_is_a_place_goes_there() -> None:
    mq_all = [MessageQueue("T", "b", 0)]
    at = {"a-0": 10, "b-0": 20, str(mq_all[0]): 10}
    settings = StrategySettings(virtual_node_cnt=1, custom_hash_function=at.__getitem__)
    assert allocate("CONSISTENT_HASH", "g", "a", mq_all, ["a", "b"], settings) == mq_all


def test_config_whose_list_was_never_set_gives_null() -> None:
    assert allocate("CONFIG", "g", "c", queues(1), ["c"]) is None
    rooms = StrategySettings(machine_room_resolver=FirstWord())
    with pytest.raises(NullPointer):
        allocate("MACHINE_ROOM_NEARBY-CONFIG", "g", "r1-c", queues(1, "r1-b"), ["r1-c"], rooms)


def test_machine_room_nearby_needs_its_parts() -> None:
    for inner, resolver, words in (
        (None, None, "allocateMessageQueueStrategy is null"),
        (None, FirstWord(), "allocateMessageQueueStrategy is null"),
    ):
        with pytest.raises(NullPointer) as raised:
            allocate_machine_room_nearby("c", queues(1), ["c"], inner, resolver)
        assert raised.value.message == words


def test_a_stranger_has_no_place() -> None:
    assert check("x", queues(1), ["c"]) == (queues(1), ["c"], -1)
