"""Groups whose lag grows while they advance, and those that catch up."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import polars as pl
import pytest

from mqreplay.evidence.intervals import INSTANT
from mqreplay.evidence.lags.growing_lag import falling_behind, falling_behind_of_shard
from silver_moments import at
from silver_rows import rows

QUEUE = {"consumer_group": "g", "topic": "T", "broker_name": "b", "broker_id": 0, "queue_id": 0}
ENDS = {"broker_name": pl.String, "topic": pl.String, "queue_id": pl.Int32}
ENDS |= {"at": INSTANT, "queue_min_offset": pl.Int64, "queue_max_offset": pl.Int64}
JUMP = {name: pl.Int32 if name == "queue_id" else pl.String for name in QUEUE} | {"broker_id": pl.Int64}
JUMP |= {"kind": pl.String, "to_ts": INSTANT}
RATE, UNTIL_S, BEHIND_S = 4, 1200, 120
OffsetAt = Callable[[float], float]


def spans(offset: OffsetAt, end: OffsetAt = lambda ts: RATE * ts, jump: float | None = None) -> pl.DataFrame:
    """Return the spans of a group whose offset and whose queue's end are given at each second."""
    copies = [(ts, int(offset(ts))) for ts in range(0, UNTIL_S, 5)]
    changes = [
        {"from_ts": at(since), "to_ts": at(ts), "previous_offset": old, "new_offset": new}
        for (since, old), (ts, new) in pairwise(copies)
        if new != old
    ]
    polls = [("b", "T", 0, at(ts), 0, int(end(ts))) for ts in range(0, UNTIL_S, 30)]
    known = rows("silver.offset_change", QUEUE | {"source_name": "b-0", "source_digest": "d"}, changes)
    found = falling_behind_of_shard(known, pl.DataFrame(polls, ENDS, orient="row"), BEHIND_S)
    jumps = [] if jump is None else [QUEUE | {"kind": "jump", "to_ts": at(jump)}]
    return falling_behind(found, pl.DataFrame(jumps, JUMP))


def test_a_group_that_is_slower_than_its_producers_falls_behind() -> None:
    (row,) = spans(lambda ts: ts).to_dicts()
    assert row["waiting"] - row["lag_before"] == row["arrived"] - row["consumed"]
    seconds = (row["to_ts"] - row["from_ts"]).total_seconds()
    assert (row["arrived"] / seconds, row["consumed"] / seconds) == (RATE, pytest.approx(1, abs=0.02))
    assert row["halved_ts"] is None


def test_a_lag_begins_where_the_group_last_kept_up() -> None:
    def slows_down(ts: float) -> float:
        return RATE * ts - ts / 60 if ts < 600 else RATE * 600 - 10 + (ts - 600)

    (row,) = spans(slows_down).to_dicts()
    assert at(600) <= row["from_ts"] <= at(720)  # not at 0, where its commits begin to lag by some messages
    assert row["waiting"] > 10 * row["lag_before"]


def test_an_offset_that_is_set_ahead_works_nothing_off() -> None:
    def skipped(ts: float) -> float:
        return ts if ts < 600 else RATE * ts

    assert spans(skipped).is_empty()
    assert len(spans(skipped, jump=600)) == 1


@pytest.mark.parametrize(
    ("offset", "end"),
    [
        (lambda ts: RATE * ts - 8, lambda ts: RATE * ts),  # it keeps up
        (lambda ts: RATE * ts - 2000 * (ts > 300), lambda ts: RATE * ts),  # it goes on behind one burst
        (lambda ts: min(RATE * max(ts, 0), 400 + max(0, ts - 400) * 9), lambda ts: RATE * ts),  # a restart of 300 s
        (lambda ts: min(8 * ts, RATE * ts + 3000), lambda ts: RATE * ts + min(3000, 10 * ts)),  # a burst of 300 s
        (lambda ts: 100 * (ts > 60), lambda ts: RATE * ts),  # it stands still: another finding
        (lambda ts: RATE * ts * 0.98, lambda ts: RATE * ts),  # not a minute behind
    ],
)
def test_a_group_that_catches_up_or_keeps_up_does_not(offset: OffsetAt, end: OffsetAt) -> None:
    assert spans(offset, end).is_empty()
