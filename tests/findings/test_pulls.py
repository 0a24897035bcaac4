"""Pulls that went to a slave: what is one finding, how severe it is, and that shards change nothing."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evidence_keys import keys_of
from mqreplay.findings.pulls import exceptional_pulls_of_shard, pull_findings
from mqreplay.findings.shape import SCHEMA
from silver_moments import at
from silver_rows import rows

GAP_S, WARN_S = 120, 10
ROUTED = {
    "consumer_group": "g",
    "topic": "T",
    "queue_id": 0,
    "client_id": "c",
    "judgement": "agree",
    "reason": "",
    "from_slave": True,
    "route_broker_ids": [0, 1],
    "expected_broker_id": 1,
    "actual_broker_id": 1,
    "pull_from_which_node": 1,
    "cause": "suggested",
}
GONE = {"cause": "master_gone", "pull_from_which_node": 0, "route_broker_ids": [1]}


def pulled(broker: str, *seconds: float, **differs: object) -> list[dict[str, object]]:
    row = {"broker_name": broker} | differs
    return [
        row | {"request_ts": at(s), "record_id": f"{broker}{s}{differs.get('consumer_group', '')}"} for s in seconds
    ]


ROUTES = [
    *pulled("nine seconds", 0, 5, 9.999),
    *pulled("ten seconds", 0, 5, 10),
    # The answers of a slave may keep a client there while the master is gone: the failover's doing, no lag.
    *pulled("told to stay", 0, 20, route_broker_ids=[1]),
    *pulled("route not known", 0, 20, route_broker_ids=None),
    *pulled("of the master", 0, 60, cause="as_asked", actual_broker_id=0, pull_from_which_node=0),
    *pulled("of no cause", 0, 60, cause=None),
    *pulled("master gone", 100, 130, **GONE),
    *pulled("master gone", 110, consumer_group="h", **GONE),
    *pulled("master gone", 400, **GONE),
    *pulled("just together", 0, 120, 240),
    *pulled("just apart", 0, 120.001),
    *pulled("two queues", 0),
    *pulled("two queues", 10, queue_id=1),
    *pulled("two groups", 0),
    *pulled("two groups", 10, consumer_group="h"),
]


def judged(routes: pl.DataFrame, shards: int = 1) -> pl.DataFrame:
    of = pl.struct("broker_name", "topic", "queue_id").hash(3) % shards
    parts = [routes.filter(of == shard) for shard in range(shards)]
    runs = pl.concat([exceptional_pulls_of_shard(part, GAP_S) for part in parts])
    return pull_findings(runs, "c", GAP_S, WARN_S)


@pytest.fixture(scope="module")
def found() -> dict[tuple[str, str], list[dict]]:
    by_place: dict[tuple[str, str], list[dict]] = {}
    for row in judged(rows("gold.pull_route", ROUTED, ROUTES)).sort("from_ts").to_dicts():
        by_place.setdefault((row["kind"], row["broker_name"]), []).append(row)
    return by_place


def test_reading_from_a_slave_is_a_warning_once_it_lasts(found: dict) -> None:
    severities = {broker: found["slave_pull", broker][0]["severity"] for broker in ("nine seconds", "ten seconds")}
    assert severities == {"nine seconds": "info", "ten seconds": "warning"}
    assert found["slave_pull", "ten seconds"][0]["summary"] == (
        "Group g read T of ten seconds from a slave in 3 pulls: it lagged further behind than the master keeps in"
        " memory."
    )


def test_other_pulls_are_no_findings(found: dict) -> None:
    reads = {broker for kind, broker in found if kind == "slave_pull"}
    assert reads == {"nine seconds", "ten seconds", "just together", "just apart", "two queues", "two groups"}
    assert {broker for kind, broker in found if kind == "failover_pull"} == {"master gone"}


def test_pulls_that_failed_over_are_one_finding_of_all_groups(found: dict) -> None:
    first, later = found["failover_pull", "master gone"]
    assert first["summary"] == (
        "The master of master gone had left the route: 3 pulls of 2 groups went to a slave instead."
    )
    place = tuple(first[name] for name in ("severity", "consumer_group", "topic", "broker_id", "client_id"))
    assert place == ("critical", None, "T", 1, "c")
    assert (first["from_ts"], first["to_ts"]) == (at(100), at(130))
    assert keys_of(first["evidence"]) == [f"record_id=master gone{s}" for s in ("100", "110h", "130")]
    assert "1 pull of 1 group went" in later["summary"]


def test_a_longer_pause_begins_another_finding(found: dict) -> None:
    assert len(found["slave_pull", "just together"]) == 1
    assert len(found["slave_pull", "just apart"]) == 2


def test_a_place_is_named_where_all_pulls_share_it(found: dict) -> None:
    (two_queues,) = found["slave_pull", "two queues"]
    assert (two_queues["queue_id"], two_queues["client_id"], two_queues["broker_id"]) == (None, "c", 1)
    assert found["slave_pull", "ten seconds"][0]["queue_id"] == 0
    assert [row["consumer_group"] for row in found["slave_pull", "two groups"]] == ["g", "h"]


def test_no_pulls_are_no_findings() -> None:
    none = judged(rows("gold.pull_route", ROUTED, []))
    assert (len(none), dict(none.schema)) == (0, SCHEMA)


PULLS = st.lists(
    st.tuples(
        st.sampled_from("ab"),
        st.sampled_from("gh"),
        st.sampled_from("TU"),
        st.integers(0, 5),
        st.sampled_from("cd"),
        st.integers(0, 40),
        st.sampled_from([{}, GONE, {"actual_broker_id": 2}, {"cause": None}]),
    ),
    max_size=60,
)


@settings(max_examples=60, deadline=None)
@given(PULLS)
def test_findings_over_shards_are_those_of_all_rows(pulls: list[tuple]) -> None:
    names = ("broker_name", "consumer_group", "topic", "queue_id", "client_id")
    listed = [dict(zip(names, pull[:5], strict=True)) | {"request_ts": at(pull[5] * 40.5)} | pull[6] for pull in pulls]
    routes = rows("gold.pull_route", ROUTED, listed)
    whole, parts = (judged(routes, shards).sort("finding_id").to_dicts() for shards in (1, 7))
    assert whole == parts
    assert sum(len(row["evidence"]) for row in whole) == sum(pull[6].get("cause", "") is not None for pull in pulls)
