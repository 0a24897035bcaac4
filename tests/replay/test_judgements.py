"""gold.judgement: decisions counted by judgement and reason, whatever numbers stand in it."""

from __future__ import annotations

import datetime as dt

from chispa import assert_df_equality

from mqreplay.replay.judgements import judgements

DAY = dt.date(2026, 11, 20)
SHAPE = "cluster STRING, day DATE, decision STRING, judgement STRING, reason STRING, decisions BIGINT"


def test_reasons_that_differ_in_numbers_are_one_and_days_are_apart(spark) -> None:
    shape = "cluster STRING, day DATE, judgement STRING, reason STRING"
    pulls = [
        ("c", DAY, "differ", "broker id 1, the client asked 12"),
        ("c", DAY, "differ", "broker id 2, the client asked -3"),
        ("c", DAY, "agree", "broker id 2, the client asked 2"),
        ("c", DAY + dt.timedelta(1), "agree", "the master"),
    ]
    rebalances = [("c", DAY, "agree", "the master")]
    judged = {
        "gold.pull_route": spark.createDataFrame(pulls, shape),
        "gold.allocation": spark.createDataFrame(rebalances, shape),
    }
    expected = [
        ("c", DAY, "gold.pull_route", "differ", "broker id N, the client asked N", 2),
        ("c", DAY, "gold.pull_route", "agree", "broker id N, the client asked N", 1),
        ("c", DAY + dt.timedelta(1), "gold.pull_route", "agree", "the master", 1),
        ("c", DAY, "gold.allocation", "agree", "the master", 1),
    ]
    found = judgements(judged)
    assert_df_equality(found, spark.createDataFrame(expected, SHAPE), ignore_row_order=True, ignore_nullable=True)
