"""Several numbers as one: their order is that of the tuples, and each is given back."""

from __future__ import annotations

from itertools import product

from pyspark.sql import functions as F

from mqreplay.replay.digits import as_one, digit, read_signed, signed

ENDS = (-(2**63), -(2**63) + 1, -1, 0, 1, 2**63 - 2, 2**63 - 1)
RANKS, IDS = 6, 2**32


def test_the_order_is_that_of_the_tuples_and_each_is_given_back(spark):
    rows = list(product((0, 1, RANKS - 1), ENDS, (-(2**31), -1, 0, 2**31 - 1)))
    frame = spark.createDataFrame(rows, "rank INT, lag BIGINT, id INT")
    one = as_one((F.col("rank"), RANKS), signed(F.col("lag")), signed(F.col("id"), IDS))
    told = frame.withColumn("one", one).select(
        "one",
        digit(F.col("one"), RANKS, 2**64 * IDS).cast("int"),
        read_signed(F.col("one"), after=IDS).cast("bigint"),
        read_signed(F.col("one"), IDS).cast("int"),
    )
    given_back = [tuple(row)[1:] for row in sorted(told.collect(), key=lambda row: row.one)]
    assert given_back == sorted(rows)
