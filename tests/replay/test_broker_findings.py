"""Pulls that went to a slave, slaves that refuse, masters that were gone: what each cost, and how loud it is."""

from __future__ import annotations

import pytest

from mqreplay.replay.findings.brokers import outage_findings, refusing_slaves
from mqreplay.replay.findings.pulls import pull_findings
from silver_moments import at

GAP_S, WARN_S, AFTER_S = 120, 10, 60
ROUTED = {
    "consumer_group": "g",
    "topic": "T",
    "queue_id": 0,
    "client_id": "c",
    "judgement": "agree",
    "from_slave": True,
}
ROUTED |= {"reason": "", "from_slave": True, "route_broker_ids": [0, 1], "expected_broker_id": 1, "actual_broker_id": 1}
ROUTED |= {"pull_from_which_node": 1, "cause": "suggested"}


def pulled(broker: str, *seconds: float, **differs: object) -> list[dict[str, object]]:
    return [
        {"broker_name": broker, "request_ts": at(s), "record_id": f"{broker}{s}{differs.get('consumer_group', '')}"}
        | differs
        for s in seconds
    ]


GONE = {"cause": "master_gone", "pull_from_which_node": 0, "route_broker_ids": [1]}
ROUTES = [
    *pulled("nine seconds", 0, 5, 9.999),
    *pulled("ten seconds", 0, 5, 10),
    # The answers of a slave may keep a client there while the master is gone: the failover's doing, no lag.
    *pulled("told to stay", 0, 20, route_broker_ids=[1]),
    *pulled("of the master", 0, 60, cause="as_asked", actual_broker_id=0, pull_from_which_node=0),
    *pulled("master gone", 100, 130, **GONE),
    *pulled("master gone", 110, consumer_group="h", **GONE),
    *pulled("master gone", 400, **GONE),
    *pulled("down", 100, 149, 210, 211, consumer_group="h", **GONE),
]
AGAIN = [("c", "down", "g", at(s)) for s in (99, 150, 209)] + [("c", "elsewhere", "g", at(150))]
OUTAGES = [("down", 0, 100, 150), ("slave", 1, 100, 150), ("no clients", 0, 100, 150)]
OUTAGE = "cluster STRING, broker_name STRING, broker_id BIGINT, from_ts TIMESTAMP, to_ts TIMESTAMP, keys ARRAY<STRUCT<"
OUTAGE += "table_name: STRING, key: STRING>>"
PULL = {"consumer_group": "g", "client_id": "c", "topic": "T", "queue_id": 0, "queue_offset": 0, "response_code": 2}
REFUSED = [
    *pulled("refusing", 0, 20, 140, broker_id=1),
    *pulled("busy master", 0, 20, broker_id=0),
    *pulled("answering", 0, 20, broker_id=1, response_code=0),
]


@pytest.fixture(scope="module")
def told(rows, spark):
    route = rows("gold.pull_route", ROUTED, ROUTES)
    gone = route.where("cause = 'master_gone'")
    key = [("silver.broker_runtime", "record_id=r")]
    outages = spark.createDataFrame([("c", n, i, at(f), at(t), key) for n, i, f, t in OUTAGES], OUTAGE)
    again = spark.createDataFrame(AGAIN, "cluster STRING, broker_name STRING, consumer_group STRING, ts TIMESTAMP")
    found = (
        pull_findings(route, GAP_S, WARN_S)
        .unionByName(outage_findings(outages, gone, again, AFTER_S))
        .unionByName(refusing_slaves(rows("silver.pull", PULL, REFUSED), GAP_S))
    )
    by_place: dict[tuple[str, str], list] = {}
    for row in found.orderBy("from_ts").collect():
        by_place.setdefault((row.kind, row.broker_name), []).append(row)
    return by_place


def test_reading_from_a_slave_is_a_warning_once_it_lasts(told):
    severities = {broker: rows[0].severity for (kind, broker), rows in told.items() if kind == "slave_pull"}
    assert severities == {"nine seconds": "info", "ten seconds": "warning", "refusing": "critical"}
    assert "in 3 pulls" in told["slave_pull", "ten seconds"][0].summary


def test_pulls_that_failed_over_are_one_finding_of_all_groups(told):
    first, later = told["failover_pull", "master gone"]
    assert "3 pulls of 2 groups went to a slave" in first.summary
    assert (first.severity, first.consumer_group, first.topic, first.broker_id) == ("critical", None, "T", 1)
    assert "1 pull of 1 group went" in later.summary


def test_an_outage_tells_its_cost_until_clients_are_back(told):
    (down,) = told["broker_down", "down"]
    assert down.severity == "critical"
    assert (
        "did not answer for 50 s; 3 pulls of 1 group went to a slave instead; 2 messages delivered again."
        in down.summary
    )
    (quiet,) = told["broker_down", "no clients"]
    assert quiet.summary == "The master of no clients did not answer for 50 s."


def test_a_slave_that_is_gone_is_no_more_than_a_warning(told):
    (slave,) = told["broker_down", "slave"]
    assert slave.severity == "warning"
    assert slave.summary == "Slave 1 of slave did not answer for 50 s."


def test_refusals_of_a_slave_are_told_and_those_of_a_busy_master_are_not(told):
    (refusing,) = told["slave_pull", "refusing"]
    assert "refused 3 pulls" in refusing.summary
    assert ("slave_pull", "busy master") not in told
    assert ("slave_pull", "answering") not in told
