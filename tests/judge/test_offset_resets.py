"""Resets of offsets that brokers pushed, or sent as the answer to a pull."""

from __future__ import annotations

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from mqreplay.judge.offset_resets import GROUP_QUEUE, moved_resets_of_shard, offset_resets, pushed_resets
from silver_moments import at
from silver_rows import rows

REQUEST = {"client_id": "c", "request_code": 220, "consumer_group": "g"}
PULL = {"consumer_group": "g", "topic": "T", "broker_name": "b", "queue_id": 0, "client_id": "c", "broker_id": 0}
MOVED = PULL | {"response_code": 21, "min_offset": 5, "max_offset": 9, "next_begin_offset": 3, "response_ts": at(4)}


@pytest.fixture
def server_request():
    requests = [
        {"ts": at(1), "reset_offsets": [("T", "b", 0, 7), ("T", "b", 1, 8)]},
        {"ts": at(2), "reset_offsets": []},
        {"ts": at(3), "reset_offsets": None},
    ]
    return rows("silver.server_request", REQUEST, requests)


@pytest.fixture
def pull():
    pulls = [
        {"request_ts": at(1), "queue_offset": 5},
        {"request_ts": at(2), "queue_offset": 9, "response_ts": None, "queue_id": 1},
        # An offset outside of the queue's range is corrected: nobody reset it.
        {"request_ts": at(3), "queue_offset": 4},
        {"request_ts": at(3), "queue_offset": 10},
        {"request_ts": at(3), "queue_offset": 5, "max_offset": None},
        {"request_ts": at(3), "queue_offset": 5, "response_code": 0},
    ]
    return rows("silver.pull", MOVED, pulls)


def test_resets_pushed_and_answered(server_request, pull):
    resets = offset_resets(server_request, pull)
    assert resets.columns == [*GROUP_QUEUE, "offset", "since", "ts", "table_name", "record_id"]
    assert resets.rows() == [
        ("g", "b", "T", 0, 7, at(1), at(1), "silver.server_request", "r0"),
        ("g", "b", "T", 1, 8, at(1), at(1), "silver.server_request", "r0"),
        ("g", "b", "T", 0, 3, at(1), at(4), "silver.pull", "r0"),
        ("g", "b", "T", 1, 3, at(2), at(2), "silver.pull", "r1"),
    ]


def test_shards_together_are_the_whole(server_request, pull):
    shards = [moved_resets_of_shard(pull.filter(pl.col("queue_id") == queue)) for queue in (0, 1)]
    whole = offset_resets(server_request, pull)
    assert_frame_equal(pl.concat([pushed_resets(server_request), *shards]), whole, check_row_order=False)


def test_no_rows(server_request, pull):
    empty = offset_resets(server_request.clear(), pull.clear())
    assert empty.is_empty()
    assert empty.schema == offset_resets(server_request, pull).schema
