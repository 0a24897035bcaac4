"""All rows of evidence of a finding: selected again by the rule of its kind, or as many as it names."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pytest

from evidence_keys import evidence_of
from made_warehouse import CLUSTER, made_warehouse
from mqreplay.answers.whole_evidence import with_whole_evidence
from mqreplay.findings.every import KINDS
from mqreplay.findings.evidence_rules import RULES, rules_of
from mqreplay.lake.contract import load_contracts
from mqreplay.lake.warehouse import Warehouse

BEGIN = dt.datetime(2026, 11, 21, 2, tzinfo=dt.UTC)
SECOND = dt.timedelta(seconds=1)
PLACE = dict.fromkeys(("consumer_group", "topic", "broker_name", "broker_id", "queue_id", "client_id"))
OF_GROUP = {"consumer_group": "g", "topic": "t", "broker_name": "b"}


def at(seconds: float) -> dt.datetime:
    return BEGIN + seconds * SECOND


def finding(kind: str, table: str, kept: list[str], count: int, **differs: Any) -> dict[str, Any]:
    effect = evidence_of("gold.finding", finding_id="e")
    row = {"finding_id": "f", "cluster": CLUSTER, "kind": kind, "from_ts": at(0), "to_ts": at(60)}
    evidence = [*(evidence_of(table, record_id=each) for each in kept), effect]
    return row | PLACE | {"evidence": evidence, "evidence_count": count} | differs


def routed(name: str, seconds: float, **differs: Any) -> dict[str, Any]:
    row = {"record_id": name, "request_ts": at(seconds), "day": BEGIN.date(), "cause": "suggested"}
    return row | {"route_broker_ids": [0, 1], "actual_broker_id": 1, **OF_GROUP} | differs


def pulled(name: str, seconds: float, **differs: Any) -> dict[str, Any]:
    row = {"record_id": name, "request_ts": at(seconds), "day": BEGIN.date(), "error": None, "response_code": None}
    return row | {"broker_id": 0, **OF_GROUP} | differs


def names(found: Any) -> list[str]:
    return [f"{each['record_id'] or each['finding_id']}" for each in found["evidence"]]


ROUTES = [
    *(routed(f"r{n}", 20 * n) for n in range(4)),
    *(routed("before", -1), routed("after", 61), routed("other", 5, consumer_group="h")),
    *(routed("failover", 5, cause="master_gone"), routed("no master", 5, route_broker_ids=[1])),
    routed("of another cluster", 5, cluster="other"),
]


def test_pulls_to_a_slave_are_selected_by_place_and_time(tmp_path: Path) -> None:
    warehouse = made_warehouse(tmp_path, {"gold.pull_route": ROUTES})
    row = finding("slave_pull", "gold.pull_route", ["r1"], 4, **OF_GROUP)
    found = with_whole_evidence(warehouse, row)
    assert names(found) == ["r0", "r1", "r2", "r3", "e"]
    assert found["evidence_count"] == 4
    # As `plain_rows` gives instants.
    naive = row | {name: row[name].replace(tzinfo=None) for name in ("from_ts", "to_ts")}
    assert names(with_whole_evidence(warehouse, naive)) == names(found)


@pytest.mark.parametrize(
    "differs",
    [
        {"evidence_count": 3},  # more are selected than it counts
        {"evidence_count": 1},  # it names all
        {"evidence_count": 100_001},
        {"to_ts": None},
        {"kind": "stuck_queue"},
        {"consumer_group": "h"},  # what it names is not selected
        {"evidence": []},
        {"evidence": [evidence_of("silver.send", record_id="r1")]},
    ],
)
def test_what_is_not_surely_the_same_evidence_is_left_as_it_is(tmp_path: Path, differs: dict[str, Any]) -> None:
    warehouse = made_warehouse(tmp_path, {"gold.pull_route": ROUTES})
    row = finding("slave_pull", "gold.pull_route", ["r1"], 4, **OF_GROUP) | differs
    assert with_whole_evidence(warehouse, row) is row


def test_an_outage_has_errors_of_the_broker_and_pulls_that_failed_over(tmp_path: Path) -> None:
    day = {"day": BEGIN.date()}
    tables = {
        "silver.pull": [
            *(pulled("held", -34, error="timeout"), pulled("too early", -36, error="timeout")),
            *(pulled("answered", 5, response_code=0), pulled("of the slave", 5, error="timeout", broker_id=1)),
        ],
        "silver.broker_runtime": [
            {"record_id": f"poll {s}", "ts": at(s), "broker_name": "b", "broker_id": 0, "error": error} | day
            for s, error in ((0, "refused"), (60, None))
        ],
        "gold.pull_route": [
            *(routed("gone", 90, cause="master_gone"), routed("late", 121, cause="master_gone")),
            *(routed("first", -30, cause="master_gone"), routed("suggested", 10)),
        ],
    }
    warehouse = made_warehouse(tmp_path, tables)
    row = finding("broker_down", "silver.pull", ["held"], 4, broker_name="b", broker_id=0)
    assert names(with_whole_evidence(warehouse, row)) == ["first", "gone", "poll 0", "held", "e"]
    of_slave = finding("broker_down", "silver.pull", ["of the slave"], 4, broker_name="b", broker_id=1)
    assert with_whole_evidence(warehouse, of_slave) is of_slave


def test_a_repeated_delivery_is_one_whose_first_came_before(tmp_path: Path) -> None:
    day = BEGIN.date() - dt.timedelta(days=1)
    place = OF_GROUP | {"queue_topic": "t", "queue_id": 0, "status": "CONSUME_SUCCESS"}
    times = {"a": (-7200, 1), "b": (-7199, 2), "a again": (10, 1), "b again": (20, 2), "c": (30, 3), "b late": (61, 2)}
    rows = [
        place | {"record_id": name, "ts": at(s), "queue_offset": offset, "day": day if s < -7199 else BEGIN.date()}
        for name, (s, offset) in times.items()
    ]
    warehouse = made_warehouse(tmp_path, {"silver.consume": rows})
    row = finding("duplicate_delivery", "silver.consume", ["a again"], 2, consumer_group="g", topic="t")
    assert names(with_whole_evidence(warehouse, row)) == ["a again", "b again", "e"]


def test_failed_messages_do_not_name_their_broker(tmp_path: Path) -> None:
    states = {
        "s1": ("timeout", None),
        "s2": ("timeout", None),
        "ok": (None, "SEND_OK"),
        "unsafe": (None, "FLUSH_DISK_TIMEOUT"),
    }
    rows = [
        {"record_id": name, "ts": at(n), "day": BEGIN.date(), "topic": "t", "error": error, "send_status": status}
        for n, (name, (error, status)) in enumerate(states.items())
    ]
    warehouse = made_warehouse(tmp_path, {"silver.produce": rows})
    row = finding("send_failed", "silver.produce", ["s1"], 2, topic="t", broker_name="b", broker_id=0)
    assert names(with_whole_evidence(warehouse, row)) == ["s1", "s2", "e"]


@pytest.mark.parametrize(
    ("kind", "kept", "expected"),
    [("send_failed", "busy", ["busy", "no perm", "e"]), ("not_stored", "no slave", ["no disk", "no slave", "e"])],
)
def test_tries_of_sends_that_were_recorded(tmp_path: Path, kind: str, kept: str, expected: list[str]) -> None:
    codes = {"ok": 0, "busy": 2, "no disk": 10, "no slave": 11, "no perm": 16, "silent": None}
    place = {"topic": "t", "broker_name": "b", "broker_id": 0, "mode": "sync", "source": "capture", "error": None}
    rows = [
        place | {"record_id": name, "ts": at(n), "day": BEGIN.date(), "response_code": code}
        for n, (name, code) in enumerate(codes.items())
    ]
    warehouse = made_warehouse(tmp_path, {"silver.send": rows})
    row = finding(kind, "silver.send", [kept], 2, topic="t", broker_name="b", broker_id=0)
    assert names(with_whole_evidence(warehouse, row)) == expected


def test_every_rule_is_of_a_kind_and_of_columns_of_its_table() -> None:
    contracts = load_contracts()
    assert RULES.keys() <= KINDS.keys()
    for rule in (rule for alternatives in RULES.values() for rules in alternatives for rule in rules):
        columns = set(contracts[rule.table].arrow_schema.names)
        assert {rule.instant, "record_id"} <= columns
        assert columns & set(rule.place), rule.table


def test_the_tables_that_a_finding_names_choose_the_rules() -> None:
    assert [rule.table for rule in rules_of("slave_pull", {"silver.pull"})] == ["silver.pull"]
    assert [rule.table for rule in rules_of("slave_pull", {"gold.pull_route"})] == ["gold.pull_route"]
    assert rules_of("slave_pull", {"gold.pull_route", "silver.pull"}) == ()
    assert rules_of("of_a_package", set()) == ()


def test_without_tables_nothing_is_selected(tmp_path: Path) -> None:
    row = finding("slave_pull", "gold.pull_route", ["r1"], 4, **OF_GROUP)
    assert with_whole_evidence(Warehouse(str(tmp_path / "none")), row) is row
