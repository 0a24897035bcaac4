"""Stale spans of slaves' copies, against the law: only what was watched is judged."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from mqreplay.evidence.offsets.slave_copies import SLAVE_QUEUE, stale_copies
from oracles.stale_copy import StaleSpan, stale_periods, watched_spans
from silver_moments import at
from silver_rows import rows

SNAPSHOT = {"file_name": "consumerOffset.json", "entries": 1, "changed": 0}
INSTANT = pl.Datetime("us", "UTC")
OUTAGE = {"broker_name": pl.String, "broker_id": pl.Int64, "from_ts": INSTANT, "to_ts": INSTANT}
NUMBERS = ("began_ms", "from_ms", "to_ms", "lacks", "holds", "has")
SPAN = {
    "broker_name": pl.String,
    "slave_id": pl.Int64,
    "consumer_group": pl.String,
    "topic": pl.String,
    "queue_id": pl.Int32,
    **dict.fromkeys(NUMBERS, pl.Int64),
}


Night = tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]
SHORT_S = 10
NAMES, IDS = "xy", (0, 1, 2)
TICK = timedelta(seconds=1)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@st.composite
def stale_nights(draw: st.DrawFn) -> Night:
    """Stale spans, copies and outages of a few brokers within 90 seconds, at full seconds or a microsecond after."""
    random = Random(draw(st.integers(0, 2**32)))

    def instant() -> Any:
        return at(0) + TICK * random.randrange(90) + timedelta(microseconds=random.choice([0, 0, 1]))

    copies, outages, spans = [], [], []
    for name in NAMES:
        for broker_id in IDS:
            source = {"source_name": f"{name}-{broker_id}", "broker_name": name, "broker_id": broker_id}
            number = random.choice([0, 3, 12, 24])
            copies += [
                source | {"ts": ts, "source_digest": str(ts)} for ts in sorted({instant() for _ in range(number)})
            ]
            for _ in range(random.choice([0, 0, 1, 2])):
                outages.append((name, broker_id, *sorted([instant(), instant()])))
        for slave_id in (1, 2):
            for began in random.sample(range(20), random.choice([0, 2, 5])):
                for _ in range(random.randrange(1, 5)):
                    from_ms, to_ms = sorted(int(instant().timestamp() * 1000) for _ in range(2))
                    holds, has = random.randrange(4, 8), random.randrange(4)
                    spans.append((name, slave_id, "g", "T", 0, began, from_ms, to_ms, holds - has, holds, has))
    return (
        pl.DataFrame(spans, SPAN, orient="row"),
        rows("silver.snapshot", SNAPSHOT, copies),
        pl.DataFrame(outages, OUTAGE, orient="row"),
    )


def us(ts: Any) -> int:
    return int((ts - EPOCH) // timedelta(microseconds=1))


def watched_by_law(snapshot: pl.DataFrame, outages: pl.DataFrame, name: str, slave_id: int) -> list[tuple[int, int]]:
    copied: dict[int, list[int]] = {broker_id: [] for broker_id in IDS}
    for row in snapshot.filter(pl.col("broker_name") == name).rows(named=True):
        copied[row["broker_id"]].append(us(row["ts"]))
    gone = [(us(since), us(until)) for of, broker_id, since, until in outages.rows() if (of, broker_id) == (name, 0)]
    return watched_spans(copied[slave_id], copied[0], gone, SHORT_S * 1000)


@given(stale_nights())
def test_only_what_was_watched_is_judged(night):
    spans, snapshot, outages = night
    of_copies: dict[tuple[Any, ...], list[StaleSpan]] = {}
    for *copy, began, from_ms, to_ms, lacks, holds, has in spans.select(*SLAVE_QUEUE, *NUMBERS).rows():
        of_copies.setdefault(tuple(copy), []).append(StaleSpan(began, from_ms, to_ms, lacks, holds, has))
    found = stale_copies(spans, snapshot, outages, SHORT_S)
    wanted = []
    for (name, slave_id, *_), of_copy in of_copies.items():
        watched = watched_by_law(snapshot, outages, name, slave_id)
        for from_ms, to_ms, holds, has, lacks in stale_periods(of_copy, watched, SHORT_S * 1000):
            ended = EPOCH + timedelta(milliseconds=to_ms)
            of_slave = (pl.col("broker_name") == name) & (pl.col("broker_id") == slave_id) & (pl.col("ts") <= ended)
            shown = snapshot.filter(of_slave).sort("ts")["source_digest"].to_list()[-1:] or [None]
            wanted.append((name, slave_id, from_ms, to_ms, lacks, holds, has, *shown))
    epoch = [pl.col(name).dt.epoch("ms") for name in ("from_ts", "to_ts")]
    columns = ["size", "previous_offset", "new_offset", "source_digest"]
    assert sorted(found.select("broker_name", "broker_id", *epoch, *columns).rows()) == sorted(wanted)
