"""A group's progress on a queue in an hour, from the changes of a broker's file and the ends of the queue."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl
import pytest

from mqreplay.decisions.queue_progress import queue_progress
from mqreplay.evidence.offsets.queue_events import queue_events
from silver_moments import BEGAN, at
from silver_rows import rows

QUEUE = {"broker_name": "b", "broker_id": 0, "topic": "T", "consumer_group": "g", "queue_id": 0}
MOST = 2**63 - 1
Row = dict[str, Any]


def frame(changes: Sequence[Row], ends: Sequence[Row] = ()) -> pl.DataFrame:
    events = queue_events(
        rows("silver.offset_change", QUEUE | {"source_name": "b-0"}, changes),
        rows("silver.offset_commit", {}, []),
        rows("silver.pull", QUEUE | {"client_id": "c"}, ends),
        rows("silver.topic_stats", {}, []),
        set(),
    )
    return queue_progress(events)


def progress(changes: Sequence[Row], ends: Sequence[Row] = ()) -> list[Row]:
    return frame(changes, ends).sort("hour").to_dicts()


def change(seconds: float, previous: int | None, new: int | None) -> Row:
    return {"to_ts": at(seconds), "previous_offset": previous, "new_offset": new}


def end(seconds: float, offset: int) -> Row:
    return {"request_ts": at(seconds), "max_offset": offset}


def test_an_hour_has_its_first_and_last_offset_and_the_lag_at_its_end() -> None:
    changes = [change(1, 10, 14), change(9, 14, 12), change(20, 12, 30), change(3_700, 30, 31)]
    first, second = progress(changes, [end(5, 90), end(3_599, 40), end(3_800, 31)])
    assert first == QUEUE | {
        "day": BEGAN.date(),
        "hour": at(0),
        "first_offset": 10,
        "last_offset": 30,
        "min_offset": 10,
        "max_offset": 30,
        "advance": 20,
        "changes": 3,
        "queue_max_offset": 40,
        "lag": 10,
    }
    assert (second["hour"], second["advance"], second["lag"]) == (at(3_600), 1, 0)


@pytest.mark.parametrize(
    ("previous", "new", "high", "advance", "lag"),
    [
        (5, 9, None, 4, None),
        (9, 5, 7, -4, 2),
        (5, 9, 7, 4, 0),
        (5, None, 7, None, None),
        (-MOST, MOST, None, MOST, None),
        (MOST, -MOST, MOST, -MOST, None),
    ],
)
def test_advance_and_lag_are_numbers_that_a_bigint_holds(
    previous: int, new: int | None, high: int | None, advance: int | None, lag: int | None
) -> None:
    (row,) = progress([change(1, previous, new)], [] if high is None else [end(2, high)])
    assert (row["advance"], row["lag"]) == (advance, lag)


def test_no_changes_give_no_rows_of_the_same_columns() -> None:
    nothing = frame([], [end(2, 5)])
    assert nothing.is_empty()
    assert nothing.schema == frame([change(1, 10, 14)]).schema
