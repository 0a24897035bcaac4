"""The iteration order of Java's hash maps: bucket by bucket, and within a bucket in insertion order.

RocketMQ takes "the first entry" of such a map when a broker is missing, and writes offsets in such an order.
Not followed: buckets of nine and more in a table of 64 and more, which Java keeps as trees.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from itertools import islice
from typing import TypeVar

from mqreplay.core.java import spread

K = TypeVar("K")

# HashMap#TREEIFY_THRESHOLD and MIN_TREEIFY_CAPACITY: an overfull bucket makes a table below 64 grow early.
TREEIFY_THRESHOLD = 8
MIN_TREEIFY_CAPACITY = 64


def hash_map_order(keys: Iterable[K], hash_code: Callable[[K], int], capacity: int = 16) -> list[K]:
    """Return the keys of a java.util.HashMap or HashSet in iteration order; a second put of a key has no effect.

    hash_code is the keys' hashCode; capacity the table's first size, a power of two (16 for ``new
    HashMap()``).
    Follows HashMap#putVal and #resize, which keeps the order within a bucket.

    >>> from mqreplay.core.java import long_hash
    >>> hash_map_order([65537, 2, 65536], long_hash)
    [65537, 65536, 2]
    """
    places = {key: spread(hash_code(key)) for key in keys}
    n = capacity
    filled: Counter[int] = Counter()
    for size, place in enumerate(places.values(), 1):
        before = n
        filled[place & (n - 1)] += 1
        if filled[place & (n - 1)] > TREEIFY_THRESHOLD and n < MIN_TREEIFY_CAPACITY:
            n *= 2
        if size > n * 3 // 4:
            n *= 2
        if n != before:
            filled = Counter(p & (n - 1) for p in islice(places.values(), size))
    return sorted(places, key=lambda key: places[key] & (n - 1))


def concurrent_hash_map_order(keys: Iterable[K], hash_code: Callable[[K], int], initial_capacity: int) -> list[K]:
    """Return the keys of ``new ConcurrentHashMap(initial_capacity)`` in iteration order, put in this order.

    hash_code is the keys' hashCode. A growing table reverses parts of its buckets, which is followed.
    Follows ConcurrentHashMap#putVal, #addCount and #transfer.

    >>> concurrent_hash_map_order([64, 2, 1, 0], lambda key: key, 32)
    [64, 0, 1, 2]
    """
    n = 16
    while n < initial_capacity + (initial_capacity >> 1) + 1:
        n *= 2
    buckets: dict[int, list[tuple[int, K]]] = {}
    for size, key in enumerate(dict.fromkeys(keys), 1):
        # ConcurrentHashMap#spread clears the sign bit; no table is so large that it would matter here.
        place = spread(hash_code(key))
        buckets.setdefault(place & (n - 1), []).append((place, key))
        if size >= n - (n >> 2):
            buckets = _transfer(buckets, n)
            n *= 2
    return [key for bucket in sorted(buckets) for _, key in buckets[bucket]]


def _transfer(buckets: dict[int, list[tuple[int, K]]], n: int) -> dict[int, list[tuple[int, K]]]:
    """ConcurrentHashMap#transfer: a bucket's last run moves as it is, the rest goes before it, reversed."""
    doubled: dict[int, list[tuple[int, K]]] = {}
    for bucket, nodes in buckets.items():
        last_run = len(nodes) - 1
        while last_run > 0 and (nodes[last_run - 1][0] & n) == (nodes[-1][0] & n):
            last_run -= 1
        for half in (0, n):
            moved = [node for node in reversed(nodes[:last_run]) if node[0] & n == half]
            if nodes[-1][0] & n == half:
                moved += nodes[last_run:]
            if moved:
                doubled[bucket + half] = moved
    return doubled
