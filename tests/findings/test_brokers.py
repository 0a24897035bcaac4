"""Masters and slaves that were gone, slaves that refuse: what each cost, and how severe it is."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evidence_keys import evidence_of, keys_of
from mqreplay.evidence.brokers.broker_outages import failovers_of_shard, with_outage
from mqreplay.findings.brokers import failover_findings, outage_findings, refusals_of_shard, refusing_slaves
from mqreplay.findings.shape import SCHEMA
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
    # Clients that come back late, without a pause; and pulls long after, or long before, any outage.
    *pulled("late", 149, 209, 329, 449),
    *pulled("late", 570, 600, consumer_group="h"),
    *pulled("twice down", 110, 410),
    *pulled("no outage", 10, 100),
    *pulled("no outage", 20, consumer_group="h", queue_id=1),
    *pulled("no outage", 300),
]
INSTANT = pl.Datetime("us", "UTC")
OUTAGES = [
    ("down", 0, 100, 150),
    ("slave", 1, 100, 150),
    ("no clients", 0, 100, 149.4),
    ("two groups", 0, 100, 150.5),
    ("late", 0, 100, 150),
    ("twice down", 0, 100, 150),
    ("twice down", 0, 400, 450),
]
OUTAGE_KEYS = pl.List(pl.Struct({"table_name": pl.String, "record_id": pl.String}))
OUTAGE = {"broker_name": pl.String, "broker_id": pl.Int64, "from_ts": INSTANT, "to_ts": INSTANT}
OUTAGE |= {"errors": pl.Int64, "keys": OUTAGE_KEYS}
KEY = {"table_name": "silver.broker_runtime", "record_id": "r"}
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
def failovers() -> pl.DataFrame:
    route = rows("gold.pull_route", ROUTED, ROUTES)
    all_of_them = pl.concat(failovers_of_shard(part) for part in route.iter_slices(3))
    return with_outage(all_of_them, outages(), AFTER_S, GAP_S)


def outages() -> pl.DataFrame:
    return pl.DataFrame([(n, i, at(f), at(t), 70, [KEY]) for n, i, f, t in OUTAGES], OUTAGE, orient="row")


@pytest.fixture(scope="module")
def down(failovers) -> dict[str, dict]:
    found = outage_findings(outages(), failovers, "c")
    assert set(found["kind"]) == {"broker_down"}
    return {row["broker_name"]: row for row in found.sort("from_ts").to_dicts()}


def test_an_outage_names_the_pulls_that_it_sent_to_a_slave(down):
    assert down["down"]["severity"] == "critical"
    assert down["down"]["summary"] == (
        "The master of down did not answer for 50 s; 4 pulls of 1 group went to a slave instead."
    )
    pulls = [evidence_of("gold.pull_route", record_id=f"down{s}h") for s in (100, 149, 210, 211)]
    assert down["down"]["evidence"] == [evidence_of("silver.broker_runtime", record_id="r"), *pulls]
    assert down["down"]["evidence_count"] == 74
    assert (down["down"]["from_ts"], down["down"]["to_ts"]) == (at(100), at(150))


def test_seconds_are_rounded_and_groups_counted_once(down):
    assert down["no clients"]["summary"] == "The master of no clients did not answer for 49 s."
    assert down["no clients"]["evidence"] == [evidence_of("silver.broker_runtime", record_id="r")]
    # A pull may come just before the first error that marks the begin.
    assert down["two groups"]["summary"] == (
        "The master of two groups did not answer for 51 s; 4 pulls of 2 groups went to a slave instead."
    )


def test_pulls_belong_to_an_outage_while_they_go_on_without_a_pause(down, failovers):
    assert "; 4 pulls of 1 group went" in down["late"]["summary"]
    of_two = failovers.filter(broker_name="twice down").sort("ts")
    assert of_two["outage_ts"].to_list() == [at(100), at(400)]


def test_a_slave_that_is_gone_is_no_more_than_a_warning(down):
    assert down["slave"]["severity"] == "warning"
    assert down["slave"]["summary"] == "Slave 1 of slave did not answer for 50 s."


def test_pulls_to_a_slave_are_a_finding_only_without_an_outage(failovers):
    listed = failover_findings(failovers, "c", GAP_S).sort("from_ts").to_dicts()
    found = [row for row in listed if row["broker_name"] == "no outage"]
    assert {row["broker_name"] for row in listed} == {"no outage", "late", "slave"}
    first, later = found
    assert first["kind"] == "failover_pull"
    assert first["summary"] == (
        "The master of no outage was missing from the route: 3 pulls of 2 groups went to a slave instead."
    )
    place = tuple(first[name] for name in ("severity", "consumer_group", "topic", "broker_id", "client_id", "queue_id"))
    assert place == ("critical", None, "T", 1, "c", None)
    assert (first["from_ts"], first["to_ts"]) == (at(10), at(100))
    assert keys_of(first["evidence"]) == [f"record_id=no outage{s}" for s in ("10", "100", "20h")]
    assert "1 pull of 1 group went" in later["summary"]
    (late,) = [row for row in listed if row["broker_name"] == "late"]
    assert (late["from_ts"], late["consumer_group"]) == (at(570), "h")


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
        "Slave 1 of refusing refused 3 pulls that its master had sent to it: reads from it are disabled."
    )
    assert (refusing["kind"], refusing["severity"]) == ("slave_pull", "critical")
    assert (refusing["consumer_group"], refusing["topic"], refusing["broker_id"]) == ("g", "T", 1)
    assert refusing["advice"].startswith("Set slaveReadEnable=true on the slave")
    assert refusing["evidence"] == [evidence_of("silver.pull", record_id=f"refusing{s}") for s in (0, 140, 20)]
    (several,) = found["two groups"]
    assert (several["consumer_group"], several["topic"]) == (None, "T")


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 600), st.sampled_from("gh")), max_size=20))
def test_the_split_into_shards_changes_nothing(refused) -> None:
    pull_rows = [
        {"broker_name": "b", "broker_id": 1, "queue_id": q, "request_ts": at(s), "consumer_group": g}
        for q, s, g in refused
    ]
    assert refusals(pull_rows, 4).equals(refusals(pull_rows))


def test_a_night_without_rows_has_no_findings() -> None:
    none = pl.DataFrame(schema=OUTAGE)
    failovers = with_outage(failovers_of_shard(rows("gold.pull_route", ROUTED, [])), none, AFTER_S, GAP_S)
    for found in (outage_findings(none, failovers, "c"), failover_findings(failovers, "c", GAP_S), refusals([])):
        assert found.is_empty()
        assert found.schema == pl.Schema(SCHEMA)
