"""Lag by slots: the last offset and end at or before each slot; an offset that is negative or gone has no lag."""

from __future__ import annotations

import polars as pl
import pytest

from mqreplay.moment.night_queues import QueueFrames, lag_of_lines
from mqreplay.moment.night_states import _lag_slots
from mqreplay.words.keys import GROUP, GROUP_QUEUE

QUEUE = {"broker_name": "b", "topic": "t"}
Slots = list[tuple[int, int, int | None]]  # queue, slot, value


def frames(offsets: Slots, ends: Slots) -> QueueFrames:
    """Return the frames of one group and topic."""
    number, offset = pl.Int32(), pl.Int64()
    committed = pl.DataFrame(
        [QUEUE | {GROUP: "g", "queue_id": queue, "slot": slot, "offset": value} for queue, slot, value in offsets],
        schema_overrides={"queue_id": number, "slot": number, "offset": offset},
    )
    ended = pl.DataFrame(
        [QUEUE | {"queue_id": queue, "slot": slot, "offset": value} for queue, slot, value in ends],
        schema_overrides={"queue_id": number, "slot": number, "offset": offset},
    )
    lines = committed.select(GROUP_QUEUE).unique().sort(GROUP_QUEUE).with_row_index("line")
    none = pl.DataFrame()
    return QueueFrames(none, none, lines.select(GROUP_QUEUE), lines, lag_of_lines(lines, committed, ended), ended)


@pytest.mark.parametrize(
    ("offsets", "ends", "lag"),
    [
        ([(0, 1, 5)], [(0, 0, 7), (0, 3, 9)], [None, 2, 2, 4]),
        ([(0, 0, 5), (0, 2, None)], [(0, 0, 7)], [2, 2, None, None]),
        ([(0, 0, 5), (0, 2, None), (0, 3, 1)], [(0, 0, 7)], [2, 2, None, 6]),
        ([(0, 0, 5)], [(0, 2, 4)], [None, None, 0, 0]),
        ([(0, 0, -1), (0, 2, 0)], [(0, 0, 4)], [None, None, 4, 4]),
        ([(0, 0, 5), (1, 1, 2)], [(0, 0, 7), (1, 1, 3), (1, 2, 6)], [2, 3, 6, 6]),
    ],
)
def test_lag(offsets: Slots, ends: Slots, lag: list[int | None]) -> None:
    assert _lag_slots(frames(offsets, ends), 4) == {("g", "t"): lag}
