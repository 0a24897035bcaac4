"""How old the last consumed message of a queue is, by the master's answers."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from mqreplay.evidence.offsets.queue_ends import with_age
from mqreplay.words.keys import GROUP_QUEUE
from silver_moments import at
from silver_rows import rows

QUEUE: dict[str, Any] = {"topic": "T", "broker_name": "b", "queue_id": 0}


def answer(second: float, stored: float | None, queue_id: int = 0) -> dict[str, Any]:
    offsets = QUEUE | {"queue_id": queue_id, "broker_offset": 9, "consumer_offset": 5}
    offsets["last_timestamp"] = None if stored is None else at(stored)
    return {"ts": at(second), "consumer_group": "g", "broker_name": "b", "offsets": [offsets]}


@pytest.mark.parametrize(
    ("answers", "age_s"),
    [
        pytest.param([answer(100, 10)], 90, id="at the end of the span"),
        pytest.param([answer(40, 10), answer(100, 30)], 70, id="the last answer counts"),
        pytest.param([answer(40, 10), answer(100, None)], None, id="the broker has the message no more"),
        pytest.param([answer(101, 10)], None, id="no answer until then"),
        pytest.param([answer(100, 10, queue_id=1)], None, id="of another queue"),
        pytest.param([answer(100, 130)], None, id="stored later, by another clock"),
    ],
)
def test_the_age_of_the_last_consumed_message(answers: list[dict[str, Any]], age_s: int | None) -> None:
    span = pl.DataFrame([("g", "T", "b", 0, at(100))], [*GROUP_QUEUE, "to_ts"], orient="row")
    spans = span.with_columns(pl.col("queue_id").cast(pl.Int32), pl.col("to_ts").cast(pl.Datetime("us", "UTC")))
    stated = rows("silver.consume_stats", {}, answers)
    assert with_age(spans, stated, {"g"})["age_s"].to_list() == [age_s]
    assert with_age(spans, stated, {"h"})["age_s"].to_list() == [None], "copies show the offsets of the group"
    assert with_age(spans, None, {"g"})["age_s"].to_list() == [None]
