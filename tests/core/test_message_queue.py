from __future__ import annotations

import functools

from hypothesis import given
from hypothesis import strategies as st

from mqreplay.core.message_queue import (
    MessageQueue,
    compare_message_queues,
    sort_client_ids,
    sort_message_queues,
)

QUEUES = st.builds(
    MessageQueue, st.sampled_from("TU\U0001f600\uff21"), st.sampled_from(["a", "ab", ""]), st.integers(-1, 99)
)


@given(st.lists(QUEUES, max_size=40))
def test_sorts_as_its_comparator_says(mqs: list[MessageQueue]) -> None:
    assert sort_message_queues(mqs) == sorted(mqs, key=functools.cmp_to_key(compare_message_queues))


def test_ten_comes_before_nine_only_in_names() -> None:
    queues = [MessageQueue("T", "b", 9), MessageQueue("T", "b", 10), MessageQueue("T", "b10", 0)]
    assert sort_message_queues(reversed(queues)) == queues
    assert sort_client_ids(["b9", "b10"]) == ["b10", "b9"]


def test_overflowing_ids_follow_the_algorithm_of_java() -> None:
    low, high = MessageQueue("T", "b", -2), MessageQueue("T", "b", 2**31 - 1)
    assert compare_message_queues(high, low) < 0
    assert sort_message_queues([low, high]) == [high, low]
    assert sort_message_queues([high, low]) == [high, low]


def test_lists_of_none_and_one() -> None:
    assert sort_message_queues([]) == []
    assert sort_message_queues([MessageQueue("T", "b", 0)]) == [MessageQueue("T", "b", 0)]
