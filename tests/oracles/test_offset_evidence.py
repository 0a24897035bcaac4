"""Where masters state that a queue begins and ends, and one end of each second."""

from __future__ import annotations

import pytest

from oracles.offset_evidence import QueueEnd, head_of_each_second, pull_end


@pytest.mark.parametrize("broker_id", [1, 7, None])
def test_only_a_master_states_an_end(broker_id: int | None) -> None:
    assert pull_end(broker_id, 1, 2, 0, 9) is None
    assert pull_end(0, 1, 2, 0, 9) == QueueEnd(2, 0, 9, 1)


def test_an_answer_without_an_end_states_nothing() -> None:
    assert pull_end(0, 1, 2, 5, None) is None
    assert pull_end(0, 1, None, None, 0) == QueueEnd(1, None, 0, 1)


def test_one_head_a_second_is_its_highest_end_at_its_last_instant() -> None:
    ends = [QueueEnd(2_000_000, 0, 4), QueueEnd(1_000_000, 0, 7), QueueEnd(1_999_999, 0, 5), QueueEnd(1_500_000, 0, 6)]
    assert head_of_each_second(ends) == head_of_each_second(reversed(ends)) == [(7, 1_999), (4, 2_000)]
    assert head_of_each_second([QueueEnd(1, 3, None)]) == []
    assert head_of_each_second([QueueEnd(1, 3, None), QueueEnd(999_999, 3, 2**63 - 1)]) == [(2**63 - 1, 999)]
