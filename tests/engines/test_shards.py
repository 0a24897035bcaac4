"""Shards hold whole queues, each once, and none is larger than it must be."""

from __future__ import annotations

import numpy as np
import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from mqreplay.engines.shards import count_buckets, deal, deal_evenly, divided, total
from mqreplay.lake.buckets import BUCKETS, buckets, key_of

QUEUE = key_of(("broker_name", "topic", "queue_id"))


def counted(rows: dict[int, int]) -> np.ndarray:
    counts = np.zeros(BUCKETS, np.int64)
    for bucket, count in rows.items():
        counts[bucket] = count
    return counts


@given(st.dictionaries(st.integers(0, BUCKETS - 1), st.integers(0, 5_000), max_size=60), st.integers(1, 20_000))
def test_every_bucket_is_in_one_shard(rows: dict[int, int], most_rows: int) -> None:
    shards = deal(counted(rows), most_rows)
    assert [bucket for shard in shards for bucket in range(shard.low, shard.high + 1)] == list(range(BUCKETS))


@given(st.integers(1, 50), st.integers(0, 2**32 - 1))
def test_no_shard_is_twice_the_median_unless_it_is_one_bucket(number: int, seed: int) -> None:
    counts = np.random.default_rng(seed).poisson(40, BUCKETS).astype(np.int64)
    shards = deal(counts, -(-int(counts.sum()) // number))
    rows = [int(counts[shard.low : shard.high + 1].sum()) for shard in shards]
    assert number - 1 <= len(shards) <= number + 1
    assert max(rows) <= 2 * np.median(rows)


def test_a_heavy_bucket_is_a_shard_by_itself() -> None:
    counts = np.full(BUCKETS, 10, np.int64)
    counts[7] = 1_000_000
    (heavy,) = [shard for shard in deal(counts, 20_000) if shard.low <= 7 <= shard.high]
    assert counts[heavy.low : heavy.high + 1].sum() < 1_000_100


def test_only_a_queue_that_is_too_large_has_a_task_for_each_part() -> None:
    shards = divided(deal(counted({3: 900, 7: 5_000, 9: 1_400}), 1_000), ("pulls", "queues"), 1_000)
    filled = [shard for shard in shards if shard.rows]
    whole, pulls, _, _ = filled
    assert [(s.rows, s.part) for s in filled] == [(900, ""), (5_000, "pulls"), (5_000, "queues"), (1_400, "")]
    assert [shard.does("pulls") for shard in filled] == [True, True, False, True]
    assert (whole.does("queues"), pulls.does("queues")) == (True, False)


def test_a_day_without_rows_is_one_shard() -> None:
    (shard,) = deal(total([]))
    assert (shard.low, shard.high) == (0, BUCKETS - 1)
    assert len(deal_evenly(0)) == 1
    assert 10 <= len(deal_evenly(1_000_000, 100_000)) <= 12


def test_rows_of_a_queue_share_a_bucket_and_null_is_no_error() -> None:
    rows = pl.DataFrame(
        {"broker_name": ["a", "a", "b", None], "topic": ["t", "t", "t", None], "queue_id": [1, 1, 1, None]},
        schema_overrides={"queue_id": pl.Int32},
    )
    found = buckets(rows, QUEUE).to_list()
    assert found[0] == found[1] != found[2]
    assert count_buckets(pl.Series(found, dtype=pl.Int32)).sum() == 4


def test_a_delivery_is_of_the_queue_that_it_came_from() -> None:
    key = key_of(("queue_topic|topic",))
    rows = pl.DataFrame({"queue_topic": ["%RETRY%g", None], "topic": ["t", "%RETRY%g"]})
    assert len(set(buckets(rows, key).to_list())) == 1


def test_buckets_never_change() -> None:
    """Files of years ago lie by them."""
    rows = pl.DataFrame({"broker_name": ["broker-a"], "topic": ["order-topic"], "queue_id": [3]})
    assert buckets(rows, QUEUE).to_list() == [1564]
