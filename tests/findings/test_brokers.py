"""Masters and slaves that were gone, slaves that refuse: what each cost, and how severe it is."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evidence_keys import evidence_of
from mqreplay.findings.brokers import outage_findings, refusals_of_shard, refusing_slaves
from mqreplay.findings.shape import EVIDENCE, SCHEMA
from mqreplay.judge.broker_outages import failovers_of_shard
from silver_moments import at
from silver_rows import rows

GAP_S, AFTER_S = 120, 60
ROUTED = {
    "consumer_group": "g",
    "topic": "T",
    "queue_id": 0,
    "client_id": "c",
    "judgement": "agree",
    "reason": "",
    "from_slave": True,
    "route_broker_ids": [1],
    "expected_broker_id": 1,
    "actual_broker_id": 1,
    "pull_from_which_node": 0,
    "cause": "master_gone",
}


def pulled(broker: str, *seconds: float, **differs: object) -> list[dict[str, object]]:
    row = {"broker_name": broker} | differs
    return [
        row | {"request_ts": at(s), "record_id": f"{broker}{s}{differs.get('consumer_group', '')}"} for s in seconds
    ]


ROUTES = [
    *pulled("down", 100, 149, 210, 211, consumer_group="h"),
    *pulled("down", 120, cause="suggested"),
    *pulled("two groups", 99.999, 100, 150),
    *pulled("two groups", 110, consumer_group="h"),
    *pulled("slave", 120),
]
INSTANT = pl.Datetime("us", "UTC")
AGAIN = [("down", "g", at(s)) for s in (99, 150, 209)] + [("elsewhere", "g", at(150)), ("slave", "g", at(150))]
REPEATED = {"broker_name": pl.String, "consumer_group": pl.String, "ts": INSTANT}
OUTAGES = [("down", 0, 100, 150), ("slave", 1, 100, 150), ("no clients", 0, 100, 149.4), ("two groups", 0, 100, 150.5)]
OUTAGE = {"broker_name": pl.String, "broker_id": pl.Int64, "from_ts": INSTANT, "to_ts": INSTANT}
OUTAGE |= {"errors": pl.Int64, "keys": EVIDENCE}
KEY = evidence_of("silver.broker_runtime", record_id="r")
PULL = {"consumer_group": "g", "client_id": "c", "topic": "T", "queue_id": 0, "queue_offset": 0, "response_code": 2}
REFUSED = [
    *pulled("refusing", 0, 20, 140, broker_id=1),
    *pulled("twice", 0, 120, broker_id=1),
    *pulled("twice", 240.001, broker_id=1),
    *pulled("two groups", 0, broker_id=1),
    *pulled("two groups", 10, broker_id=1, consumer_group="h", queue_id=1),
    *pulled("busy master", 0, 20, broker_id=0),
    *pulled("not known", 0, 20, broker_id=None),
    *pulled("answering", 0, 20, broker_id=1, response_code=0),
]


@pytest.fixture(scope="module")
def down() -> dict[str, dict]:
    route = rows("gold.pull_route", ROUTED, ROUTES)
    outages = pl.DataFrame([(n, i, at(f), at(t), 70, [KEY]) for n, i, f, t in OUTAGES], OUTAGE, orient="row")
    again = pl.DataFrame(AGAIN, REPEATED, orient="row")
    failovers = pl.concat(failovers_of_shard(part) for part in route.iter_slices(3))
    found = outage_findings(outages, failovers, again, "c", AFTER_S)
    assert set(found["kind"]) == {"broker_down"}
    return {row["broker_name"]: row for row in found.to_dicts()}


def test_an_outage_names_its_cost_until_clients_are_back(down):
    assert down["down"]["severity"] == "critical"
    assert down["down"]["summary"] == (
        "The master of down did not answer for 50 s; 3 pulls of 1 group went to a slave instead;"
        " 2 messages delivered again."
    )
    assert down["down"]["evidence"] == [KEY]
    assert (down["down"]["from_ts"], down["down"]["to_ts"]) == (at(100), at(150))


def test_seconds_are_rounded_and_groups_counted_once(down):
    assert down["no clients"]["summary"] == "The master of no clients did not answer for 49 s."
    assert down["two groups"]["summary"] == (
        "The master of two groups did not answer for 51 s; 3 pulls of 2 groups went to a slave instead."
    )


def test_a_slave_that_is_gone_is_no_more_than_a_warning(down):
    assert down["slave"]["severity"] == "warning"
    assert down["slave"]["summary"] == "Slave 1 of slave did not answer for 50 s; 1 message delivered again."


def refusals(refused: list[dict], shards: int = 1) -> pl.DataFrame:
    pull = rows("silver.pull", PULL, refused)
    shard = pl.struct("topic", "broker_name", "queue_id").hash(3) % shards
    parts = [refusals_of_shard(pull.filter(shard == number), GAP_S) for number in range(shards)]
    return refusing_slaves(pl.concat(parts), "c", GAP_S).sort("finding_id")


@pytest.mark.parametrize("shards", [1, 7])
def test_refusals_of_a_slave_are_found_and_those_of_a_busy_master_are_not(shards):
    found: dict[str, list[dict]] = {}
    for row in refusals(REFUSED, shards).sort("from_ts").to_dicts():
        found.setdefault(row["broker_name"], []).append(row)
    assert {name: len(listed) for name, listed in found.items()} == {"refusing": 1, "twice": 2, "two groups": 1}
    (refusing,) = found["refusing"]
    assert refusing["summary"] == (
        "Slave 1 of refusing refused 3 pulls that its master had sent to it: it may not be read."
    )
    assert (refusing["kind"], refusing["severity"]) == ("slave_pull", "critical")
    assert (refusing["consumer_group"], refusing["topic"], refusing["broker_id"]) == ("g", "T", 1)
    assert refusing["advice"].startswith("Set slaveReadEnable=true on the slave")
    assert refusing["evidence"] == [evidence_of("silver.pull", record_id=f"refusing{s}") for s in (0, 140, 20)]
    (several,) = found["two groups"]
    assert (several["consumer_group"], several["topic"]) == (None, "T")


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 600), st.sampled_from("gh")), max_size=20))
def test_the_split_into_shards_changes_nothing(refused) -> None:
    given_rows = [
        {"broker_name": "b", "broker_id": 1, "queue_id": q, "request_ts": at(s), "consumer_group": g}
        for q, s, g in refused
    ]
    assert refusals(given_rows, 4).equals(refusals(given_rows))


def test_a_night_without_rows_has_no_findings() -> None:
    failovers = failovers_of_shard(rows("gold.pull_route", ROUTED, []))
    outages, again = pl.DataFrame(schema=OUTAGE), pl.DataFrame(schema=REPEATED)
    for found in (outage_findings(outages, failovers, again, "c", AFTER_S), refusals([])):
        assert found.is_empty()
        assert found.schema == pl.Schema(SCHEMA)
