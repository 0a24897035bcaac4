"""Each contradiction that finding_sums.py looks for is found where it is, and not where it is not."""

from __future__ import annotations

import datetime as dt
from typing import Any

import polars as pl
import pytest

from mqreplay.lake.warehouse import Warehouse
from night.finding_sums import contradictions

NOON = dt.datetime(2026, 11, 24, 12, tzinfo=dt.UTC)


def finding(finding_id: str, kind: str, summary: str, at_s: int = 0, **columns: Any) -> dict[str, Any]:
    names = ("consumer_group", "topic", "broker_name", "broker_id", "queue_id", "client_id", "follows_from")
    at = NOON + dt.timedelta(seconds=at_s)
    times = {"from_ts": at, "to_ts": at + dt.timedelta(seconds=60)}
    return {"finding_id": finding_id, "kind": kind, "summary": summary, **dict.fromkeys(names), **times, **columns}


def outage(summary: str, **columns: Any) -> dict[str, Any]:
    return finding("down", "broker_down", summary, broker_name="a", broker_id=0, **columns)


def duplicates(summary: str, **columns: Any) -> dict[str, Any]:
    return finding("dup", "duplicate_delivery", summary, **{"consumer_group": "g", **columns})


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    """One pull that failed over from broker a, two messages delivered twice to group g, one queue of client c."""
    empty = Warehouse(str(tmp_path_factory.mktemp("empty")))
    at = NOON + dt.timedelta(seconds=10)
    queue = {"consumer_group": "g", "topic": "t", "broker_name": "a", "queue_id": 0}
    consumed = [
        queue | {"queue_topic": "t", "queue_offset": offset, "client_id": "c", "ts": ts, "status": "CONSUME_SUCCESS"}
        for offset in (1, 2)
        for ts in (NOON, at)
    ]
    owned = [queue | {"client_id": "c", "topic": topic, "from_ts": NOON, "to_ts": at} for topic in ("t", "%RETRY%g")]
    made = {
        "gold.pull_route": [queue | {"request_ts": at, "cause": "master_gone"}],
        "silver.consume": consumed,
        "gold.queue_owner": owned,
    }

    def table(name: str) -> pl.DataFrame:
        schema = empty.read(name).collect_schema()
        return pl.DataFrame(made.get(name, []), schema={column: schema[column] for column in schema})

    return table


AGAIN = "Group g was given 2 messages more than once."
DOWN = "The master of a did not answer; 1 pull of 1 group went to a slave instead"


@pytest.mark.parametrize(
    "findings",
    [
        [outage(f"{DOWN}.")],
        [outage(f"{DOWN}; 2 messages delivered again."), duplicates(AGAIN, follows_from="down", broker_name="a")],
        [outage(f"{DOWN}; at most 2 messages delivered again."), duplicates(AGAIN, follows_from="down")],
        [
            outage(f"{DOWN}."),
            finding("lost", "consumer_lost", "It held 1 queue.", 5, consumer_group="g", client_id="c"),
        ],
    ],
)
def test_findings_that_add_up(rows, findings):
    assert contradictions(findings, rows) == []


@pytest.mark.parametrize(
    ("findings", "said"),
    [
        ([outage("It did not answer.")], "counts 0 pulls, gold.pull_route 1"),
        ([outage(DOWN, at_s=20)], "failed over without an outage"),
        ([outage(f"{DOWN}."), finding("x", "failover_pull", "3 pulls.", follows_from="down")], "another number"),
        ([outage(f"{DOWN}; 3 messages delivered again."), duplicates(AGAIN, follows_from="down")], "its duplicates 2"),
        ([outage(f"{DOWN}; at most 1 message delivered again."), duplicates(AGAIN, follows_from="down")], "at most 1"),
        ([outage(f"{DOWN}."), duplicates(AGAIN, follows_from="down", broker_name="b")], "names another broker"),
        ([outage(f"{DOWN}."), duplicates("Group g was given 3 messages more than once.")], "counts 3 messages"),
        ([outage(f"{DOWN}."), duplicates("Group g was given 0 messages more than once.")], "says '0 messages'"),
        ([outage(f"{DOWN}."), duplicates("Group g was given 1 messages more than once.")], "says '1 messages'"),
        ([outage(f"{DOWN}."), duplicates(AGAIN, follows_from="none")], "follows from no first cause"),
        ([outage(f"{DOWN}."), duplicates(AGAIN, at_s=-40, follows_from="down")], "begins 40 s before its cause"),
        (
            [
                outage(f"{DOWN}."),
                finding("first", "offset_reset", "Back by 9.", -60, consumer_group="g"),
                finding("next", "offset_reset", "Back by 5.", -20, consumer_group="g"),
                duplicates(AGAIN, follows_from="first"),
            ],
            "not from the later offset_reset next",
        ),
        (
            [
                outage(f"{DOWN}."),
                finding("set", "slave_pull", "It kept 9 pulls of 2 groups.", broker_name="a"),
                finding("one", "slave_pull", "Group g read t in 8 pulls.", consumer_group="g", follows_from="set"),
            ],
            "counts 9 pulls, those below it 8",
        ),
        (
            [
                outage(f"{DOWN}."),
                finding("lost", "consumer_lost", "It held 2 queues.", 5, consumer_group="g", client_id="c"),
            ],
            "counts 2 queues, gold.queue_owner 1",
        ),
    ],
)
def test_a_contradiction_is_found(rows, findings, said):
    assert any(said in found for found in contradictions(findings, rows)), contradictions(findings, rows)
