"""stale_route: a name server's route that the brokers no longer have."""

from __future__ import annotations

from typing import Any

from mqreplay.decisions.listed_route import LACKS, OTHER_QUEUES, WIPED
from mqreplay.findings.stale_routes import stale_routes
from silver_moments import at
from silver_rows import rows

SERVER = "10.0.0.9:9876"
OLD = ["a: 4 read and 4 write queues, perm 6; 0 at 10.0.0.1:10911", "b: 2 read and 2 write queues, perm 6; no address"]
NEW = ["a: 8 read and 8 write queues, perm 6; 0 at 10.0.0.1:10911", OLD[1]]


def found(*differs: dict[str, Any]) -> list[dict[str, Any]]:
    base = {
        **{"namesrv_addr": SERVER, "topic": "orders", "broker_name": "a", "from_ts": at(0), "to_ts": at(95)},
        **{"answers": 4, "listed": OLD, "expected": NEW, "judgement": "differ", "reason": OTHER_QUEUES},
        **{"writable": True, "expected_writable": True},
    }
    listed = rows("gold.listed_route", base, list(differs))
    return stale_routes(listed, "harbour", 30).sort("from_ts", "broker_name").to_dicts()


def test_a_name_server_with_an_old_route_is_a_warning() -> None:
    (row,) = found({})
    assert row["summary"] == (
        f"Name server {SERVER} answered with an old route of orders for 95 s. It listed {OLD[0]}. By the broker's"
        f" topics and the list of brokers it has {NEW[0]}."
    )
    assert (row["severity"], row["topic"], row["broker_name"]) == ("warning", "orders", "a")
    assert [(item["table_name"], item["record_id"]) for item in row["evidence"]] == [("silver.route", "r0")]


def test_topics_of_one_broker_at_one_name_server_are_one_finding() -> None:
    (row,) = found({}, {"topic": "bills", "from_ts": at(20), "to_ts": at(110)})
    assert row["summary"].startswith(f"Name server {SERVER} answered with an old route of 2 topics, among them bills")
    assert (row["topic"], row["to_ts"]) == (None, at(110))
    assert len(found({}, {"broker_name": "b"}, {"from_ts": at(300), "to_ts": at(310)})) == 3


def test_a_broker_that_is_not_listed_is_said_to_be_missing() -> None:
    (row,) = found({"listed": [OLD[1]], "reason": LACKS, "namesrv_addr": None})
    assert row["summary"].startswith("A name server answered with an old route of orders for 95 s. It did not list a.")


def test_a_wiped_permission_is_an_information_with_the_command_that_ends_it() -> None:
    (row,) = found({"reason": WIPED})
    assert row["severity"] == "info"
    assert row["advice"].startswith("Somebody took the broker out of use for producers")


def test_a_route_without_a_queue_for_producers_is_critical() -> None:
    (row,) = found({"reason": WIPED, "writable": False})
    assert row["severity"] == "critical"
    assert row["summary"].endswith(" Producers found no queue in the route: their sends failed.")
    assert found({"writable": False, "expected_writable": False})[0]["severity"] == "warning"


def test_no_rows_are_no_findings() -> None:
    assert found() == []
