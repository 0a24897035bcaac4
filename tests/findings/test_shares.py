"""Members with more than their share of the queues."""

from __future__ import annotations

import datetime as dt

from evidence_keys import keys_of
from mqreplay.findings.shape import SCHEMA
from mqreplay.findings.shares import uneven_findings, uneven_shares_of_shard
from silver_moments import at
from silver_rows import rows


def took(group: str, client: str, held: int, of: int, seconds: tuple[float, ...], members: int = 2) -> list[dict]:
    row = {"consumer_group": group, "client_id": client, "topic": "T", "strategy": "CONSISTENT_HASH", "reason": ""}
    row |= {"judgement": "agree", "cid_all": [f"c{n}" for n in range(members)], "mq_all": [("b", q) for q in range(of)]}
    row |= {"actual": [("b", q) for q in range(held)]}
    return [row | {"rebalance_ts": at(s), "record_id": f"{group}{client}{s}"} for s in seconds]


LONG = (0, 20, 40)


def test_an_uneven_share_is_two_more_than_fair_for_a_while() -> None:
    allocation = rows(
        "gold.allocation",
        {},
        [
            *took("one more", "c1", 5, 8, LONG),
            *took("two more", "c1", 6, 8, LONG),
            *took("fair is rounded up", "c1", 6, 9, LONG),
            *took("a moment", "c1", 8, 8, (0, 20)),
            *took("alone", "c1", 8, 8, LONG, members=1),
            *[row | {"topic": "%RETRY%g"} for row in took("of retries", "c1", 8, 8, LONG)],
            *[row | {"actual": None} for row in took("unknown", "c1", 8, 8, LONG)],
        ],
    )
    (row,) = uneven_findings(uneven_shares_of_shard(allocation, 2), "c", 20, 45).to_dicts()
    assert (row["consumer_group"], row["kind"], row["severity"]) == ("two more", "uneven_allocation", "info")
    assert row["summary"] == (
        "Consumer c1 of group two more held up to 6 queues of T, where a fair share is 4, by CONSISTENT_HASH."
    )
    assert row["to_ts"] - row["from_ts"] == dt.timedelta(seconds=60)
    assert keys_of(row["evidence"]) == [f"record_id=two morec1{s}" for s in LONG]


def test_the_fair_share_is_that_of_the_last_time_it_held_the_most() -> None:
    at_first = took("g", "c1", 8, 8, (0, 20))
    later = took("g", "c1", 8, 12, (40,))
    fewer = took("g", "c1", 7, 9, (60,))
    allocation = rows("gold.allocation", {}, [*fewer, *later, *at_first])
    (row,) = uneven_findings(uneven_shares_of_shard(allocation, 2), "c", 20, 45).to_dicts()
    assert "held up to 8 queues of T, where a fair share is 6," in row["summary"]


def test_shares_more_than_two_intervals_apart_are_two_findings() -> None:
    (apart,) = (rows("gold.allocation", {}, took("g", "c1", 8, 8, (*LONG, 80.001, 100, 120))),)
    found = uneven_findings(uneven_shares_of_shard(apart, 2), "c", 20, 45)
    assert sorted(found["from_ts"].to_list()) == [at(0), at(80.001)]
    joined = rows("gold.allocation", {}, took("g", "c1", 8, 8, (*LONG, 80, 100, 120)))
    assert len(uneven_findings(uneven_shares_of_shard(joined, 2), "c", 20, 45)) == 1


def test_no_allocations_are_no_findings() -> None:
    found = uneven_findings(uneven_shares_of_shard(rows("gold.allocation", {}, []), 2), "c", 20, 45)
    assert (len(found), dict(found.schema)) == (0, SCHEMA)
