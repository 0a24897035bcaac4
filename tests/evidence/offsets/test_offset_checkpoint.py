"""An offset at any instant is that of the last change before it: from the next midnight's checkpoint and the day."""

from __future__ import annotations

import datetime as dt
from random import Random
from typing import Any

import polars as pl
import pytest

from mqreplay.evidence.offsets.carried import CHECKPOINT_KEY, VALUES, offsets_at

FIRST = dt.datetime(2026, 11, 20, tzinfo=dt.UTC)
HOURS = 72
TIME = pl.Datetime("us", "UTC")
SCHEMA = dict.fromkeys(CHECKPOINT_KEY, pl.String) | {"queue_id": pl.Int32, "broker_id": pl.Int64}
SCHEMA |= {"previous_offset": pl.Int64, "new_offset": pl.Int64, "from_ts": TIME, "to_ts": TIME}


def instant(hour: float) -> dt.datetime:
    return FIRST + dt.timedelta(hours=hour)


def changes(seed: int) -> pl.DataFrame:
    """Of five queues; some keep their offset for days, some are removed and come again."""
    random, rows = Random(seed), []
    same = dict.fromkeys(CHECKPOINT_KEY) | {
        "source_name": "broker-a-0",
        "topic": "T",
        "consumer_group": "g",
        "broker_name": "b",
    }
    for queue in range(5):
        offset, before = None, None
        for hour in sorted(random.sample(range(HOURS), random.choice((1, 3, 40)))):
            new = None if offset is not None and random.random() < 0.2 else random.randrange(10**6)
            if new != offset:
                values = {"previous_offset": offset, "new_offset": new, "from_ts": before, "to_ts": instant(hour)}
                rows.append(same | {"queue_id": queue} | values)
            offset, before = new, instant(hour)
    return pl.DataFrame(rows, SCHEMA)


def last_before(changed: pl.DataFrame, at: dt.datetime) -> pl.DataFrame:
    return changed.filter(pl.col("to_ts") < at).sort("to_ts").unique("queue_id", keep="last")


def offsets(rows: pl.DataFrame) -> dict[Any, Any]:
    found = rows.filter(pl.col("new_offset").is_not_null()).sort("to_ts").select("queue_id", "new_offset").rows()
    return dict(found)


def at_instant(changed: pl.DataFrame, hour: float) -> pl.DataFrame:
    """What offsets_at returns where nights keep the checkpoint of the next midnight."""
    midnight = FIRST + dt.timedelta(days=hour // 24 + 1)
    of_day = changed.filter(pl.col("to_ts").is_between(midnight - dt.timedelta(days=1), midnight, closed="left"))
    checkpoint = last_before(changed, midnight).select(*CHECKPOINT_KEY, *VALUES, "to_ts")
    return offsets_at(checkpoint, of_day, instant(hour))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("hour", [0, 5.5, 24, 47.9, 48, 71])
def test_offsets_are_those_of_the_last_changes_before_the_instant(seed: int, hour: float) -> None:
    changed = changes(seed)
    found = at_instant(changed, hour)
    assert offsets(found) == offsets(last_before(changed, instant(hour)))
    assert found["queue_id"].is_unique().all()
