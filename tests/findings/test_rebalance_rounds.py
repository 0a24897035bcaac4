"""Groups that rebalance again and again."""

from __future__ import annotations

from typing import Any

import polars as pl

from evidence_keys import keys_of
from mqreplay.findings.rebalance_rounds import storms
from mqreplay.findings.shape import SCHEMA
from silver_moments import at
from silver_rows import rows

ROUND = {"consumer_group": "g", "joins": 1, "leaves": 1, "members_before": 2, "members_after": 2, "queues": 8}
ROUND |= {"moved": 4, "idle_s": 10.4, "overlap_s": 0.0, "duplicates": 3, "judgement": "agree", "reason": ""}
Row = dict[str, Any]


def found(*cycles: int, apart: int = 300, **differs: Any) -> list[Row]:
    times = [{"from_ts": at(i * apart), "to_ts": at(i * apart + 20)} | differs for i in range(len(cycles))]
    made = rows("gold.rebalance_round", ROUND, times).with_columns(pl.Series("cycles", cycles, pl.Int64))
    result = storms(made, "c", 5)
    assert dict(result.schema) == SCHEMA
    return result.rows(named=True)


def test_a_host_that_joins_again_and_again() -> None:
    (row,) = found(1, 2, 3, 4, 5, 0)
    assert row["summary"] == (
        "Group g rebalanced in 6 rounds within 1520 s: 6 joins, 6 leaves, 24 queue moves; queues had no owner for 62 s"
        " in total; 18 messages delivered again."
    )
    assert (row["consumer_group"], row["severity"], row["from_ts"], row["to_ts"]) == ("g", "warning", at(0), at(1520))
    assert keys_of(row["evidence"])[0] == "consumer_group=g to_ts=2026-11-21 02:00:20"
    assert row["evidence_count"] == 6


def test_a_deployment_is_none() -> None:
    assert found(1, 1, 1, 1, 1, 1, 1, 1) == []
    assert found(1, 2, 3, 4) == []


def test_fewer_rounds_than_the_limit_without_joins() -> None:
    assert found(1, 2, 4, 7, joins=0, leaves=0) == []


def test_what_is_not_known_is_not_zero() -> None:
    (row,) = found(5, joins=5, moved=None, idle_s=None, duplicates=None)
    assert row["summary"] == (
        "Group g rebalanced in 1 round within 20 s: 5 joins, 1 leave; the times without an owner are not known."
    )


def test_rounds_hours_before_are_another_matter() -> None:
    assert [row["from_ts"] for row in found(1, 5, apart=4000, joins=5)] == [at(4000)]
