"""Findings of clients whose clock is off."""

from __future__ import annotations

import datetime as dt
from typing import Any

import polars as pl
import pytest

from evidence_keys import evidence_of
from mqreplay.findings.clocks import activity_of_shard, clock_findings
from mqreplay.findings.shape import SCHEMA
from silver_moments import BEGAN, at
from silver_rows import rows

QUEUE = {"consumer_group": "g", "topic": "T", "broker_name": "b", "queue_id": 0}
CLOCKS = {
    "client_id": pl.String,
    "said_until_ms": pl.Int64,
    "shown_from_ms": pl.Int64,
    "shown_until_ms": pl.Int64,
    "skew_ms": pl.Int64,
    "matches": pl.Int64,
}
MIDNIGHT = dt.datetime.combine(BEGAN.date(), dt.time(), dt.UTC)
Row = dict[str, Any]


def clock(client: str, skew_ms: int, shown_from: float | None = None, shown_until: float | None = None) -> Row:
    from_ms, until_ms = (None if s is None else int(at(s).timestamp() * 1000) for s in (shown_from, shown_until))
    return {"client_id": client, "shown_from_ms": from_ms, "shown_until_ms": until_ms, "skew_ms": skew_ms, "matches": 9}


def found(clocks: list[Row], pulled: list[Row], committed: list[Row], shards: int = 1) -> list[Row]:
    known = pl.DataFrame(clocks, CLOCKS)
    pull = rows("silver.pull", QUEUE | {"queue_offset": 0}, pulled)
    commits = rows("silver.offset_commit", QUEUE | {"kind": "UPDATE"}, committed)
    of_shards = [
        activity_of_shard(known, *(frame.filter(pl.col("queue_id") % shards == n) for frame in (pull, commits)))
        for n in range(shards)
    ]
    return clock_findings(known, pl.concat(of_shards), "c").sort("client_id", "from_ts").to_dicts()


def pulls(client: str, *seconds: float) -> list[Row]:
    return [{"client_id": client, "request_ts": at(s), "queue_id": n} for n, s in enumerate(seconds)]


def commits(client: str, *seconds: float) -> list[Row]:
    return [{"client_id": client, "ts": at(s), "queue_id": n} for n, s in enumerate(seconds)]


@pytest.mark.parametrize("shards", [1, 7])
def test_a_clock_that_is_off_is_reported_of_each_day_it_was_off_on(shards):
    seen = [(MIDNIGHT + dt.timedelta(seconds=s) - at(0)).total_seconds() for s in (-46, -6, 10)]
    both = found([clock("ahead", 76_000)], pulls("ahead", *seen[:2]), commits("ahead", seen[2]), shards)
    assert [(row["from_ts"] - MIDNIGHT).total_seconds() for row in both] == [-46, 10]
    assert [(row["to_ts"] - MIDNIGHT).total_seconds() for row in both] == [-6, 10]
    assert both[0]["summary"] == (
        "The clock of client ahead is about 76 s ahead of the brokers' clocks. Its times were corrected."
    )
    assert both[0]["evidence"] == [evidence_of("silver.offset_commit", client_id="ahead")]
    assert (both[0]["severity"], both[0]["client_id"], both[0]["confidence"]) == ("warning", "ahead", 0.9)


def test_a_clock_that_jumped_is_reported_as_long_as_it_was_off():
    spans = [
        clock("jumped", 0, shown_until=100),
        clock("jumped", -3_600_500, shown_from=101, shown_until=200),
        clock("jumped", 60_499, shown_from=201),
        clock("jumped", 90_000, shown_from=900),  # it was not heard of any more
    ]
    rest = found(spans, pulls("jumped", 0, 150, 500), commits("other", 5))
    assert [(row["from_ts"], row["to_ts"]) for row in rest] == [(at(101), at(200)), (at(201), at(500))]
    texts = [row["summary"].split("client jumped ", 1)[1].split(" the brokers")[0] for row in rest]
    assert texts == [
        "was for a while about 3601 s behind",
        "was for a while about 60 s ahead of",
    ]


def test_no_rows_give_no_findings():
    none = activity_of_shard(
        pl.DataFrame(schema=CLOCKS), rows("silver.pull", {}, []), rows("silver.offset_commit", {}, [])
    )
    assert none.schema == {
        "client_id": pl.String(),
        "day": pl.Date(),
        "first_ts": pl.Datetime("us", "UTC"),
        "last_ts": pl.Datetime("us", "UTC"),
    }
    assert clock_findings(pl.DataFrame(schema=CLOCKS), none, "c").schema == SCHEMA
