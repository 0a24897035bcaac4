"""First and last offsets of queues, as masters stated them."""

from __future__ import annotations

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from mqreplay.judge.queue_ends import QUEUE, polled_ends, pulled_ends, queue_ends
from silver_moments import at
from silver_rows import rows

PULL = {"consumer_group": "g", "topic": "T", "broker_name": "b", "client_id": "c", "broker_id": 0}
STATS = {"broker_name": "b", "broker_id": 0, "topic": "T"}


def stated(queue: int, low: int | None, high: int | None, topic: str = "T") -> dict[str, object]:
    return {"topic": topic, "broker_name": "b", "queue_id": queue, "min_offset": low, "max_offset": high}


@pytest.fixture
def pull():
    pulls = [
        {"queue_id": 0, "request_ts": at(1), "response_ts": at(2), "min_offset": 3, "max_offset": 9},
        {"queue_id": 1, "request_ts": at(1), "min_offset": 3, "max_offset": 9},
        {"queue_id": 0, "request_ts": at(3), "response_ts": at(4), "max_offset": 10},
        {"queue_id": 0, "request_ts": at(5), "response_ts": at(5), "min_offset": 3, "max_offset": 8, "broker_id": 1},
        {"queue_id": 0, "request_ts": at(6), "response_ts": at(6), "min_offset": 3, "max_offset": 8, "broker_id": None},
        {"queue_id": 0, "request_ts": at(7), "response_ts": at(7), "min_offset": 3},
    ]
    return rows("silver.pull", PULL, pulls)


@pytest.fixture
def topic_stats():
    stats = [
        {"ts": at(2), "offsets": [stated(0, 3, 9), stated(1, 4, None)]},
        {"ts": at(3), "offsets": [stated(0, 0, 2, "%DLQ%g")]},
        {"ts": at(4), "offsets": []},
        {"ts": at(5), "offsets": None},
        {"ts": at(6), "offsets": [stated(0, 1, 5)], "broker_id": 1},
    ]
    return rows("silver.topic_stats", STATS, stats)


def test_only_a_masters_statements_count(pull, topic_stats):
    ends = queue_ends(pull, topic_stats)
    assert ends.columns == [*QUEUE, "at", "queue_min_offset", "queue_max_offset"]
    assert ends.rows() == [
        ("b", "T", 0, at(2), 3, 9),
        ("b", "T", 1, at(1), 3, 9),
        ("b", "T", 0, at(4), None, 10),
        ("b", "T", 0, at(2), 3, 9),
        ("b", "T", 1, at(2), 4, None),
        ("b", "%DLQ%g", 0, at(3), 0, 2),
    ]


def test_shards_together_are_the_whole(pull, topic_stats):
    shards = [pulled_ends(pull.filter(pl.col("queue_id") == queue)) for queue in (0, 1)]
    whole = queue_ends(pull, topic_stats)
    assert_frame_equal(pl.concat([*shards, polled_ends(topic_stats)]), whole, check_row_order=False)


def test_no_rows(pull, topic_stats):
    empty = queue_ends(pull.clear(), topic_stats.clear())
    assert empty.is_empty()
    assert empty.schema == queue_ends(pull, topic_stats).schema
