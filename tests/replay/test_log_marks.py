"""What bounds a broker's view at a pull, whatever the number of groups that rows are dealt into."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator

import pytest
from pyspark.sql import DataFrame, SparkSession

from mqreplay.replay.log_marks import FOUND, SHARES, _shares, with_marks

START = dt.datetime(2026, 11, 20, 1, tzinfo=dt.UTC)
PULL = (
    "record_id STRING, broker_name STRING, broker_id BIGINT, topic STRING, queue_id INT, request_ts TIMESTAMP, "
    "response_ts TIMESTAMP, next_begin_offset BIGINT, first_queue_offset BIGINT, first_commitlog_offset BIGINT, "
    "last_queue_offset BIGINT, last_commitlog_offset BIGINT"
)
CONSUME = (
    "broker_name STRING, queue_topic STRING, topic STRING, queue_id INT, queue_offset BIGINT, commitlog_offset BIGINT"
)
PRODUCE = "broker_name STRING, topic STRING, queue_id INT, queue_offset BIGINT, offset_msg_id STRING"
RUNTIME = "broker_name STRING, broker_id BIGINT, ts TIMESTAMP, commit_log_max_offset BIGINT"
PARTITIONS = "spark.sql.shuffle.partitions"


def at(second: float) -> dt.datetime:
    return START + dt.timedelta(seconds=second)


@pytest.fixture(params=["2", "24"])
def spark_of_a_night(spark: SparkSession, request: pytest.FixtureRequest) -> Iterator[SparkSession]:
    """A short night's session, and a long one's."""
    before = spark.conf.get(PARTITIONS)
    spark.conf.set(PARTITIONS, request.param)
    yield spark
    spark.conf.set(PARTITIONS, before or "2")


def runtime(spark: SparkSession, names: int = 2) -> DataFrame:
    """Each broker's log is polled every ten seconds and grows by 1,000 bytes between."""
    polls = [(f"b{name}", 0, at(10 * n), 1000 * n + name) for name in range(names) for n in range(10)]
    return spark.createDataFrame(polls, RUNTIME)


def test_ends_are_the_brokers_and_places_the_queues(spark_of_a_night: SparkSession) -> None:
    spark = spark_of_a_night
    pulls = [
        # Two answered 25 s in, of the same queue's name on two brokers; messages 3 to 5 were given.
        ("one", "b0", 0, "t", 1, at(25), at(25.5), 6, 3, 1300, 5, 1500),
        ("two", "b1", 0, "t", 1, at(25), at(25.5), 6, None, None, None, None),
        ("past all polls", "b0", 0, "t", 2, at(95), at(96), 9, None, None, None, None),
    ]
    consumed = [("b0", None, "t", 1, 7, 1700), ("b1", "t", "other", 1, 5, 1450)]
    produced = [("b1", "t", 1, 8, "0A000001" + "00002A9F" + f"{1900:016X}"), ("b1", "t", 1, 2, "no place")]
    frame = spark.createDataFrame(pulls, PULL)
    others = spark.createDataFrame([], PULL)
    marked = with_marks(
        frame,
        others,
        runtime(spark),
        spark.createDataFrame(consumed, CONSUME),
        spark.createDataFrame(produced, PRODUCE),
        0,
    )
    found = {row.record_id: tuple(row[name] for name in FOUND) for row in marked.collect()}
    # end_before, end_after, place_before, place_after, next_place
    assert found == {
        "one": (2000, 3000, 1500, 1500, 1700),
        "two": (2001, 3001, 1450, 1450, 1900),
        "past all polls": (9000, None, None, None, None),
    }


def test_a_longer_night_has_more_groups_and_so_has_one_of_fewer_brokers(spark: SparkSession) -> None:
    before = spark.conf.get(PARTITIONS) or "2"
    try:
        spark.conf.set(PARTITIONS, "2")
        assert _shares(runtime(spark)) == SHARES
        spark.conf.set(PARTITIONS, "124")
        assert (_shares(runtime(spark, 1)), _shares(runtime(spark, 16))) == (661, 41)
        assert _shares(runtime(spark).limit(0)) == 661
    finally:
        spark.conf.set(PARTITIONS, before)
