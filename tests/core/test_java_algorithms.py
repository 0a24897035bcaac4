"""Orders that depend on Java's implementation, compared with the JDK's algorithms written out step by step."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mqreplay.core.java import long_hash, spread
from mqreplay.core.java_maps import concurrent_hash_map_order, hash_map_order
from mqreplay.core.message_queue import MessageQueue, compare_message_queues, sort_message_queues

# Few buckets, so that they fill, and many small neighbours.
KEYS = st.lists(st.integers(0, 90) | st.integers(0, 40).map(lambda n: n * 16) | st.integers(0, 2**40), max_size=90)


@dataclass
class Node:
    """ConcurrentHashMap.Node."""

    place: int
    key: int
    next: Node | None = None


def concurrent_walk(keys: list[int], initial_capacity: int) -> list[int]:
    """ConcurrentHashMap, bins never turned into trees."""
    n = 1
    while n < initial_capacity + initial_capacity // 2 + 1:
        n *= 2
    table: list[Node | None] = [None] * n
    size_ctl, size = n * 3 // 4, 0
    for key in keys:
        node = Node(spread(long_hash(key)), key)
        at = node.place % n
        last = table[at]
        while last is not None and last.key != key and last.next is not None:
            last = last.next
        if last is not None and last.key == key:
            continue
        if last is None:
            table[at] = node
        else:
            last.next = node
        size += 1
        while size >= size_ctl:
            table, n = transfer(table, n), n * 2
            size_ctl = n * 3 // 4
    walked = []
    for head in table:
        while head is not None:
            walked.append(head.key)
            head = head.next
    return walked


def transfer(table: list[Node | None], n: int) -> list[Node | None]:
    doubled: list[Node | None] = [None] * (2 * n)
    for at, head in enumerate(table):
        if head is None:
            continue
        last_run, bit = head, head.place & n
        node = head.next
        while node is not None:
            if node.place & n != bit:
                last_run, bit = node, node.place & n
            node = node.next
        low, high = (None, last_run) if bit else (last_run, None)
        node = head
        while node is not last_run:
            assert node is not None
            if node.place & n:
                high = Node(node.place, node.key, high)
            else:
                low = Node(node.place, node.key, low)
            node = node.next
        doubled[at], doubled[at + n] = low, high
    return doubled


@given(KEYS, st.sampled_from([16, 21, 22, 32, 512]))
@example([16 * n for n in range(48)], 16)
@example([*range(24), 512, 1024, 32, 64, 96], 16)
def test_a_concurrent_hash_map(keys: list[int], capacity: int) -> None:
    assert concurrent_hash_map_order(keys, long_hash, capacity) == concurrent_walk(keys, capacity)


def walk(keys: list[int], n: int) -> list[int]:
    """HashMap, buckets never turned into trees."""
    table: list[list[int]] = [[] for _ in range(n)]
    size = 0

    def doubled() -> list[list[int]]:
        halves = [[key for key in bucket if spread(long_hash(key)) & n == half] for half in (0, n) for bucket in table]
        return halves

    for key in keys:
        bucket = table[spread(long_hash(key)) % n]
        if key in bucket:
            continue
        bucket.append(key)
        if len(bucket) - 1 >= 8 and n < 64:  # treeifyBin
            table, n = doubled(), n * 2
        size += 1
        if size > n * 3 // 4:
            table, n = doubled(), n * 2
    return [key for bucket in table for key in bucket]


@given(KEYS, st.sampled_from([1, 16, 32, 64]))
@example([64 * n for n in range(9)], 16)
@example([64 * n for n in range(12)], 16)
@example([64 * n for n in range(12)], 32)
@example([64 * n for n in range(20)], 64)
@example([*range(12), *(16 * n for n in range(1, 12))], 16)
def test_a_hash_map(keys: list[int], capacity: int) -> None:
    assert hash_map_order(keys, long_hash, capacity) == walk(keys, capacity)


def tim_sort(found: list[MessageQueue]) -> list[MessageQueue]:
    """ComparableTimSort#sort of fewer than 32: countRunAndMakeAscending, then binarySort, in place."""
    a = list(found)
    if len(a) < 2:
        return a
    run_hi = 2
    if compare_message_queues(a[1], a[0]) < 0:
        while run_hi < len(a) and compare_message_queues(a[run_hi], a[run_hi - 1]) < 0:
            run_hi += 1
        a[:run_hi] = a[:run_hi][::-1]
    else:
        while run_hi < len(a) and compare_message_queues(a[run_hi], a[run_hi - 1]) >= 0:
            run_hi += 1
    for start in range(run_hi, len(a)):
        pivot, left, right = a[start], 0, start
        while left < right:
            mid = (left + right) >> 1
            if compare_message_queues(pivot, a[mid]) < 0:
                right = mid
            else:
                left = mid + 1
        a[left + 1 : start + 1] = a[left:start]
        a[left] = pivot
    return a


IDS = st.integers(-(2**31), 2**31 - 1) | st.sampled_from([-(2**31), -(2**30), -1, 0, 1, 2**30, 2**31 - 1])
QUEUES = st.builds(MessageQueue, st.just("T"), st.sampled_from("ab"), IDS)


@given(st.lists(QUEUES, max_size=31))
@example([MessageQueue("T", "b", n) for n in (2**31 - 1, 5, -1, 2, 2, -(2**31), 7, 2**30)])
def test_sorting_ids_that_overflow(found: list[MessageQueue]) -> None:
    assert sort_message_queues(found) == tim_sort(found)


def test_only_what_java_sorts_by_insertion_is_followed_into_the_overflow() -> None:
    ids = [2**31 - 1, -(2**31), 0] * 11
    many = [MessageQueue("T", "b", n) for n in ids]
    assert sort_message_queues(many[:31]) == tim_sort(many[:31]) != sorted(many[:31])
    assert sort_message_queues(many[:32]) == sorted(many[:32])


@pytest.mark.parametrize("ids", [(1, 1, -(2**31)), (-(2**31), -(2**31), 0, -(2**31)), (*[-(2**31)] * 3, -(2**30), 0)])
def test_equal_ids_among_those_that_overflow(ids: tuple[int, ...]) -> None:
    found = [MessageQueue("T", "b", n) for n in ids]
    assert sort_message_queues(found) == tim_sort(found)
