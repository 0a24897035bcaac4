"""When queues had no owner, or several: one reading of the owners for the picture, another due time for the cursor."""

from __future__ import annotations

import datetime as dt

import polars as pl

from mqreplay.moment.night_queues import shared_or_dropped

BEGIN = dt.datetime(2026, 11, 21, 2, tzinfo=dt.UTC)


def owned(*rows: tuple[str, int, int, int]) -> pl.DataFrame:
    """Return owners of queues: client, queue, minute of begin and end."""
    place = {"consumer_group": "g", "topic": "t", "broker_name": "b"}
    spans = [
        place | {"queue_id": queue, "client_id": client, "from_ts": minute(begin), "to_ts": minute(end)}
        for client, queue, begin, end in rows
    ]
    return pl.DataFrame(spans, schema_overrides={name: pl.Datetime("us", "UTC") for name in ("from_ts", "to_ts")})


def minute(number: int) -> dt.datetime:
    """Return an instant of the night."""
    return BEGIN + dt.timedelta(minutes=number)


def test_gaps_and_overlaps_count_while_the_queue_and_the_group_are_there() -> None:
    rows = owned(("x", 0, 0, 10), ("y", 0, 20, 30), ("x", 1, 0, 40), ("y", 1, 5, 6), ("x", 2, 30, 35), ("x", 1, 60, 70))
    spans = shared_or_dropped(rows).select("queue_id", "owners", "from_ts", "to_ts").sort(pl.all()).rows()
    # Nobody of the group is there from 40 to 60, queue 2 comes late, and queue 0 goes early.
    assert spans == [(0, 0, minute(10), minute(20)), (1, 2, minute(5), minute(6))]
