"""Numbers too far apart, or too many, for a bigint."""

from __future__ import annotations

import pytest
from pyspark.sql import functions as F

from mqreplay.replay.far import MOST, less, total


@pytest.mark.parametrize(
    ("one", "other", "found"),
    [(7, 3, 4), (3, 7, -4), (MOST, -MOST, MOST), (-MOST, MOST, -MOST), (None, 1, None), (1, None, None)],
)
def test_a_difference_ends_where_numbers_do(spark, one, other, found):
    rows = spark.createDataFrame([(one, other)], "one BIGINT, other BIGINT")
    assert rows.select(less("one", "other").alias("less")).first().less == found


@pytest.mark.parametrize(
    ("counts", "found"), [([1, 2], 3), ([1, None], 1), ([None], None), ([MOST, 1], MOST), ([MOST, MOST, None], MOST)]
)
def test_a_sum_ends_where_numbers_do(spark, counts, found):
    rows = spark.createDataFrame([(count,) for count in counts], "messages BIGINT")
    assert rows.agg(total("messages").alias("sum")).first().sum == found
    assert rows.where(F.lit(False)).agg(total("messages").alias("sum")).first().sum is None
