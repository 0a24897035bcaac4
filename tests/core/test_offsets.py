from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqreplay.core.offset_store import (
    MEMORY_FIRST_THEN_STORE,
    READ_FROM_MEMORY,
    READ_FROM_STORE,
    RemoteBrokerOffsetStore,
    compare_and_increase_only,
)
from mqreplay.words.errors import IllegalArgument, MQBrokerError, OffsetNotFound, RocketMQError

LONGS = st.integers(-(2**63), 2**63 - 1)


@given(LONGS, st.lists(LONGS))
def test_an_offset_that_only_increases_ends_at_the_greatest(start: int, values: list[int]) -> None:
    target = start
    for value in values:
        moved, after = compare_and_increase_only(target, value)
        assert moved == (after != target)
        target = after
    assert target == max([start, *values])


def failing(error: type[RocketMQError]) -> int:
    raise error


@pytest.mark.parametrize(
    ("version", "error", "expected"),
    [
        ("4.9.8", MQBrokerError, -1),
        ("4.9.8", IllegalArgument, -2),
        ("5.3.3", OffsetNotFound, -1),
        ("5.3.3", MQBrokerError, -2),
    ],
)
def test_what_a_failure_to_ask_means(version: str, error: type[RocketMQError], expected: int) -> None:
    store: RemoteBrokerOffsetStore[str] = RemoteBrokerOffsetStore(version)
    assert store.read_offset("q", READ_FROM_STORE, lambda: failing(error)) == expected
    assert store.offset_table == {}


def test_memory_first_asks_only_once() -> None:
    store: RemoteBrokerOffsetStore[str] = RemoteBrokerOffsetStore()
    assert store.read_offset("q", READ_FROM_MEMORY, lambda: 7) == -1
    assert store.read_offset("q", MEMORY_FIRST_THEN_STORE, lambda: 7) == 7
    assert store.read_offset("q", MEMORY_FIRST_THEN_STORE, lambda: 9) == 7
    assert store.read_offset("q", READ_FROM_STORE, lambda: 5) == 5
    store.remove_offset("q")
    assert store.read_offset("q", READ_FROM_MEMORY, lambda: 7) == -1


def test_a_queue_that_is_null() -> None:
    store: RemoteBrokerOffsetStore[str] = RemoteBrokerOffsetStore()
    store.update_offset(None, 5, True)
    store.remove_offset(None)
    assert store.read_offset(None, READ_FROM_STORE, lambda: 7) == -1
    assert RemoteBrokerOffsetStore("5.3.3").read_offset(None, READ_FROM_STORE, lambda: 7) == -3
