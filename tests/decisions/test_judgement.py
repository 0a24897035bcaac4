"""gold.judgement: decisions counted by judgement and reason, without the numbers in reasons."""

from __future__ import annotations

import datetime as dt

import polars as pl
import pytest

from mqreplay.decisions.allocation import ALLOCATION
from mqreplay.decisions.judgement import judgement, judgements_of_shard
from mqreplay.decisions.pull_route import PULL_ROUTE

DAY = dt.date(2026, 11, 20)
SHAPE = {"day": pl.Date, "judgement": pl.String, "reason": pl.String}
COUNTS = {"day": pl.Date, "decision": pl.String, "judgement": pl.String, "reason": pl.String, "decisions": pl.Int64}
PULLS = [
    (DAY, "differ", "broker id 1, the client asked 12"),
    (DAY, "differ", "broker id 2, the client asked -3"),
    (DAY, "agree", "broker id 2, the client asked 2"),
    (DAY + dt.timedelta(1), "agree", "the master"),
]
REBALANCES = [(DAY, "agree", "the master")]


@pytest.mark.parametrize("size", [1, 2, 4])
def test_reasons_that_differ_in_numbers_are_one_and_days_are_separate(size: int) -> None:
    pulls = pl.DataFrame(PULLS, SHAPE, orient="row")
    parts = [judgements_of_shard(PULL_ROUTE, part) for part in pulls.iter_slices(size)]
    parts.append(judgements_of_shard(ALLOCATION, pl.DataFrame(REBALANCES, SHAPE, orient="row")))
    found = judgement(pl.concat(parts))
    assert found.schema == pl.Schema(COUNTS)
    assert set(found.rows()) == {
        (DAY, "gold.pull_route", "differ", "broker id N, the client asked N", 2),
        (DAY, "gold.pull_route", "agree", "broker id N, the client asked N", 1),
        (DAY + dt.timedelta(1), "gold.pull_route", "agree", "the master", 1),
        (DAY, "gold.allocation", "agree", "the master", 1),
    }
    assert len(found) == 4


def test_a_table_without_rows_has_no_counts() -> None:
    found = judgement(judgements_of_shard(PULL_ROUTE, pl.DataFrame(schema=SHAPE)))
    assert found.is_empty()
    assert found.schema == pl.Schema(COUNTS)
