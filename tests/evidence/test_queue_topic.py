"""The topic of the queue that a message came from, where the log of deliveries lacks it."""

from __future__ import annotations

import polars as pl
import pytest

from mqreplay.core.retry_topic import topic_of_queue
from mqreplay.evidence.messages.deliveries import with_queue_topic

SCHEMA = {
    "consumer_group": pl.String,
    "topic": pl.String,
    "queue_topic": pl.String,
    "reconsume_times": pl.Int32,
    "orderly": pl.Boolean,
}


def queue_topic(logged: str | None, reconsume_times: int | None, orderly: bool | None) -> str | None:
    rows = pl.DataFrame([("g", "T", logged, reconsume_times, orderly)], SCHEMA, orient="row")
    return with_queue_topic(rows)["queue_topic"].item()


@pytest.mark.parametrize("orderly", [False, True])
@pytest.mark.parametrize("reconsume_times", [0, 1, 16])
def test_it_follows_the_law(reconsume_times: int, orderly: bool) -> None:
    assert queue_topic(None, reconsume_times, orderly) == topic_of_queue("T", "g", reconsume_times, orderly)


def test_what_the_log_says_counts() -> None:
    assert queue_topic("T", 3, False) == "T"


def test_a_log_that_does_not_count_retries_leaves_it_unknown() -> None:
    assert queue_topic(None, None, False) is None
    assert queue_topic(None, 2, None) == "%RETRY%g", "a listener is concurrent unless the log says otherwise"
