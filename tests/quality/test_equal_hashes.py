"""Rows that are equal are never missed, in whichever partition they are."""

from __future__ import annotations

import pytest

from mqreplay.quality.equal_hashes import equal_hashes

ROWS = [("a", 1), ("a", 2), ("b", 1), (None, 1), ("b", None)]


@pytest.mark.parametrize("again", [None, *ROWS], ids=str)
def test_equal_rows_are_seen_and_others_are_not(spark, again):
    rows = spark.createDataFrame(ROWS + ([again] if again else []), "name STRING, number INT")
    assert equal_hashes(rows.repartition(3)) == (again is not None)


def test_of_no_rows_none_are_equal(spark):
    assert not equal_hashes(spark.createDataFrame([], "name STRING"))
