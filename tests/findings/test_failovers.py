"""Failovers that took longer than the rules allow."""

from __future__ import annotations

from typing import Any

import pytest

from evidence_keys import keys_of
from mqreplay.findings.failovers import slow_failovers
from silver_moments import at
from silver_rows import rows

STEP = {"outage_ts": at(0), "broker_name": "b", "broker_id": 0, "judgement": "differ", "ts": at(130), "happened": False}
STEP |= {"step": "removed_by_name_server", "namesrv_addr": "n:1", "expected_to": at(130), "before_ts": at(200)}
STEP |= {"evidence": [{"table_name": "silver.cluster_info", "record_id": "l1"}]}
CLIENT = {"step": "left_route", "namesrv_addr": None, "client_id": "c1", "expected_to": at(40), "before_ts": at(100)}
CLIENT |= {"evidence": [{"table_name": "silver.route", "record_id": "a"}]}
Row = dict[str, Any]


def slow(*differs: Row) -> list[Row]:
    return slow_failovers(rows("gold.failover_step", STEP, differs), "c", 45).to_dicts()


def test_a_name_server_that_kept_the_broker() -> None:
    (found,) = slow({})
    assert (found["kind"], found["severity"], found["from_ts"], found["to_ts"]) == (
        *("slow_failover", "warning"),
        *(at(130), at(200)),
    )
    assert found["summary"] == (
        "1 name server (n:1) still listed the master of b 200 s after it had stopped answering; the limit is 130 s."
    )
    assert keys_of(found["evidence"]) == ["record_id=l1"]


def test_late_clients_of_one_failover_are_one_finding() -> None:
    other = CLIENT | {
        "client_id": "c2",
        "before_ts": at(110),
        "evidence": [{"table_name": "silver.route", "record_id": "b"}],
    }
    (found,) = slow(CLIENT, other)
    assert found["summary"] == (
        "2 clients (c1, c2) still had the master of b in the route 110 s after it had stopped answering;"
        " the limit is 40 s."
    )
    assert (found["client_id"], keys_of(found["evidence"])) == (None, ["record_id=a", "record_id=b"])


def test_a_client_that_did_not_get_a_slave_back() -> None:
    (found,) = slow(CLIENT | {"step": "back_in_route", "broker_id": 2})
    assert (
        found["summary"]
        == "1 client (c1) did not have slave 2 of b in the route 60 s after it was due, when it was listed again."
    )
    assert found["client_id"] == "c1"


def test_many_clients_are_counted() -> None:
    (found,) = slow(*(CLIENT | {"client_id": f"c{i}"} for i in range(9)))
    assert found["summary"].startswith("9 clients (c0, c1, c2, c3, c4, ...) still had")


@pytest.mark.parametrize(
    "differs",
    [
        {"judgement": "agree"},
        {"judgement": "undetermined"},
        {"judgement": None},
        {"before_ts": at(175)},
        {"before_ts": None},
        {"step": "listed_again"},
    ],
)
def test_steps_in_time_and_steps_that_other_findings_have_are_none(differs: Row) -> None:
    assert slow(differs) == []


def test_two_failovers_are_two_findings() -> None:
    assert (
        len(
            {
                row["finding_id"]
                for row in slow({}, CLIENT, {"outage_ts": at(500), "expected_to": at(630)} | {"before_ts": at(700)})
            }
        )
        == 3
    )
