"""Rows of several days as one."""

from __future__ import annotations

import datetime as dt

from chispa import assert_df_equality
from pyspark.sql import SparkSession

from mqreplay.lake.sql import of_last_day


def test_what_is_told_on_two_days_is_the_last_days(spark: SparkSession) -> None:
    days = [dt.date(2026, 11, day) for day in (20, 21)]
    schema = "cluster STRING, finding_id STRING, day DATE, summary STRING"
    rows = [("c", "over", days[0], "for 9 s"), ("c", "over", days[1], "for 99 s"), ("c", "once", days[0], None)]
    found = of_last_day(spark.createDataFrame(rows, schema), "cluster", "finding_id")
    assert_df_equality(found, spark.createDataFrame(rows[1:], schema), ignore_row_order=True, ignore_nullable=True)
