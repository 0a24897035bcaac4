"""What a broker answers to a group without a stored offset."""

from __future__ import annotations

import pytest

from mqreplay.core.consumer_offset_manager import query_consumer_offset


@pytest.mark.parametrize(
    ("offset", "min_offset", "in_memory", "set_zero", "answer"),
    [
        (5, 100, False, False, 5),
        (0, 100, False, False, 0),  # an entry of 0 is an entry
        (-1, 0, True, None, 0),
        (-1, -1, True, True, 0),  # a queue that the store does not know yet
        (-1, 0, False, None, None),
        (-1, 1, True, None, None),
        (-1, 0, True, False, None),
    ],
)
def test_a_young_queue_is_answered_zero(
    offset: int, min_offset: int, in_memory: bool, set_zero: bool | None, answer: int | None
) -> None:
    assert query_consumer_offset(offset, min_offset, in_memory, set_zero) == answer
