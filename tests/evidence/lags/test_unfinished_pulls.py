"""Clients that pull past a message which is not finished, as pulls and commits alone show it."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from mqreplay.decisions.flow_control import COLUMNS, pulled_flow
from mqreplay.evidence.lags.queue_caches import UNFINISHED, long_unfinished, unfinished_pulls_of_shard
from silver_moments import at
from silver_rows import rows

Row = dict[str, Any]
INSTANT = pl.Datetime("us", "UTC")
QUEUE = {"consumer_group": "g", "topic": "t", "broker_name": "b", "queue_id": 0}
PULL = QUEUE | {"client_id": "c1", "response_code": 0}
SPAN = {"offset": 30, "since_ts": at(10), "from_ts": at(10), "to_ts": at(100), "waiting": 9, "arrived": 9}
STILL = {"consumer_group": pl.String, "topic": pl.String, "broker_name": pl.String, "queue_id": pl.Int32}
SPANS = {"offset": pl.Int64, **dict.fromkeys(("since_ts", "from_ts", "to_ts"), INSTANT)}
SPANS |= {"waiting": pl.Int64, "arrived": pl.Int64}
OUTAGES = {"broker_name": pl.String, "broker_id": pl.Int64, "from_ts": INSTANT, "to_ts": INSTANT}


def unfinished(
    *pulls: tuple[float, int],
    consume_type: str = "CONSUME_PASSIVELY",
    broker_id: int = 0,
    response_code: int | None = 0,
    **differs: Any,
) -> pl.DataFrame:
    how = {"broker_id": broker_id, "response_code": response_code}
    sent = [{"request_ts": at(s), "queue_offset": offset} | how for s, offset in pulls]
    still = pl.DataFrame([QUEUE | {"spans": [SPAN | differs]}], STILL | {"spans": pl.List(pl.Struct(SPANS))})
    consumers = pl.DataFrame({"consumer_group": ["g"], "client_id": ["c1"], "consume_type": [consume_type]})
    return unfinished_pulls_of_shard(rows("silver.pull", PULL, sent), still, consumers)


def test_pulls_past_the_offset_show_that_the_client_has_the_message() -> None:
    (row,) = unfinished((11, 30), (12, 31), (14, 45), (101, 46)).rows(named=True)
    assert (row["head_offset"], row["last_offset"]) == (30, 44)
    assert (row["ts"], row["last_pull_ts"], row["until_ts"]) == (at(12), at(14), at(100))
    assert row["record_id"] == "r1"


def test_a_pull_of_the_offset_itself_shows_nothing() -> None:
    found = unfinished((11, 30), (40, 30))
    assert (len(found), dict(found.schema)) == (0, UNFINISHED)
    assert len(unfinished((11, 0), offset=-1)) == 0


def test_pulls_from_a_slave_carry_no_commit() -> None:
    assert len(unfinished((12, 31))) == 1
    assert len(unfinished((12, 31), broker_id=1)) == 0
    assert len(unfinished((12, 31), response_code=None)) == 0, "a master that does not answer takes no commit either"


def test_a_pull_consumer_commits_when_it_likes() -> None:
    assert len(unfinished((12, 31), consume_type="CONSUME_ACTIVELY")) == 0


@pytest.mark.parametrize(
    ("outage", "kept"),
    [(("b", 0, 50, 60), 0), (("b", 1, 50, 60), 1), (("other", 0, 50, 60), 1), (("b", 0, 101, 120), 1)],
)
def test_while_the_master_is_down_nothing_is_committed(outage: tuple[str, int, float, float], kept: int) -> None:
    name, broker_id, since, until = outage
    outages = pl.DataFrame([(name, broker_id, at(since), at(until))], OUTAGES, orient="row")
    assert len(long_unfinished(unfinished((12, 31)), outages, 60)) == kept


def test_a_short_time_is_normal() -> None:
    none = pl.DataFrame(schema=OUTAGES)
    assert len(long_unfinished(unfinished((41, 31)), none, 60)) == 0
    (row,) = pulled_flow(long_unfinished(unfinished((40, 31)), none, 60)).rows(named=True)
    assert tuple(row) == COLUMNS
    assert (row["source"], row["stalled_by"], row["judgement"]) == ("pull", "listener", "undetermined")
    assert (row["ts"], row["next_ts"], row["cached_msgs"]) == (at(40), at(100), None)
