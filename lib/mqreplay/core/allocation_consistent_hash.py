"""CONSISTENT_HASH: each client has several positions on a hash ring; a queue belongs to the next client.

A client keeps nearly all of its queues when another one joins or leaves, but shares are uneven.
"""

from __future__ import annotations

import bisect
import functools
import hashlib
from collections.abc import Callable, Sequence

from mqreplay.core.allocation_check import check
from mqreplay.core.message_queue import MessageQueue
from mqreplay.words.errors import IllegalArgument, NullPointer

# org.apache.rocketmq.common.consistenthash.HashFunction: a key to a Java long.
HashFunction = Callable[[str], int]


def md5_hash(key: str) -> int:
    """Return the first 4 bytes of the MD5 of a key (UTF-8), big-endian: 0 to 2**32 - 1.

    Lone surrogates are hashed as ``?``, as String#getBytes writes them.
    Follows ConsistentHashRouter.MD5Hash#hash.

    >>> md5_hash("c1-0")
    3886541579
    """
    digest = hashlib.md5(key.encode("utf-8", "replace"), usedforsecurity=False).digest()
    return int.from_bytes(digest[:4], "big")


@functools.lru_cache(maxsize=64)
def hash_ring(
    cid_all: tuple[str | None, ...], virtual_node_cnt: int, hash_function: HashFunction = md5_hash
) -> tuple[tuple[int, ...], tuple[str | None, ...]]:
    """Return (ascending hashes, client id of each): virtual_node_cnt positions for each entry of cid_all.

    The key of a place is ``cid-i``. A repeated id continues counting from its existing positions; if two
    places fall on one hash, the later one takes it. Kept for the last few rings: all members of a group share
    theirs.
    Follows ConsistentHashRouter#addNode.

    >>> hash_ring(("b", "a"), 1, len)
    ((3,), ('a',))
    """
    ring: dict[int, str | None] = {}
    places: dict[str | None, int] = {}
    for cid in cid_all:
        # VirtualNode#isVirtualNodeOf calls equals on the keys already there; a null one has none.
        if places.get(None):
            raise NullPointer
        existing_replicas = places.get(cid, 0)
        for i in range(virtual_node_cnt):
            place = hash_function(f"{'null' if cid is None else cid}-{i + existing_replicas}")
            if place in ring:
                places[ring[place]] -= 1
            ring[place] = cid
            places[cid] = places.get(cid, 0) + 1
    hashes = sorted(ring)
    return tuple(hashes), tuple(ring[h] for h in hashes)


def allocate_consistent_hash(
    current_cid: str | None,
    mq_all: Sequence[MessageQueue] | None,
    cid_all: Sequence[str | None] | None,
    virtual_node_cnt: int = 10,
    custom_hash_function: HashFunction | None = None,
) -> list[MessageQueue]:
    """Return the queues of mq_all, in its order, whose next client on the ring is current_cid.

    virtual_node_cnt is the number of positions of a client; custom_hash_function replaces md5_hash. Raises
    IllegalArgument for a negative virtual_node_cnt and for an empty current_cid, mq_all or cid_all. A client without
    positions gets no queue.
    Follows AllocateMessageQueueConsistentHash#allocate, ConsistentHashRouter#routeNode.

    >>> mq_all = [MessageQueue("T", "b", i) for i in range(8)]
    >>> [[mq.queue_id for mq in allocate_consistent_hash(cid, mq_all, ["c1", "c2"])] for cid in ("c1", "c2")]
    [[1, 2, 5, 6], [0, 3, 4, 7]]
    """
    if virtual_node_cnt < 0:
        raise IllegalArgument(f"illegal virtualNodeCnt :{virtual_node_cnt}")
    mq_all, cid_all, index = check(current_cid, mq_all, cid_all)
    if index < 0:
        return []
    hash_function = custom_hash_function or md5_hash
    hashes, owners = hash_ring(tuple(cid_all), virtual_node_cnt, hash_function)
    if not hashes:
        return []
    result = []
    for mq in mq_all:
        place = bisect.bisect_left(hashes, hash_function(str(mq)))
        if owners[place % len(owners)] == current_cid:
            result.append(mq)
    return result
