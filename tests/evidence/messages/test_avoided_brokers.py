"""Producers that pass one broker of a topic: only with a cause, and only for whole turns."""

from __future__ import annotations

from typing import Any

from mqreplay.decisions.send_attempt import send_tries
from mqreplay.evidence.brokers.routes import publish_routes
from mqreplay.evidence.messages.failed_sends import AVOIDED, ISOLATED, NOT_IN_ROUTE, avoided_brokers
from silver_moments import at
from silver_rows import rows

Row = dict[str, Any]
MASTERS = [("a", {0: "h:1"}), ("b", {0: "h:2"})]
ROUTE = {"topic": "t", "queue_datas": [(name, 1, 1, 6, 0) for name in "ab"], "broker_datas": MASTERS, "ts": at(0)}
ONLY_B = {"broker_datas": MASTERS[1:]}
SEND = {"topic": "t", "client_id": "c", "producer_group": "p", "mode": "sync", "response_code": 0, "queue_id": 0}
REFUSED = {"response_code": 14}


def avoided(first: Row, pause: int = 40, every: int = 5, routes: list[Row] | None = None) -> list[Row]:
    """The spans of a producer that sends to a, then to b every so many seconds, and after the pause to a again."""
    tries = [{"ts": at(0), "broker_name": "a"} | first]
    tries += [{"ts": at(s), "broker_name": "b"} for s in range(1, pause, every)]
    tries += [{"ts": at(pause), "broker_name": "a"}]
    send = rows("silver.send", SEND, [row | {"msg_id": f"7F{n:02}"} for n, row in enumerate(tries)])
    known = publish_routes(rows("silver.route", ROUTE, routes or [{}]), send["topic"])
    found = avoided_brokers(send_tries(send, *known), *known, least_s=10)
    assert dict(found.schema) == AVOIDED
    return found.rows(named=True)


def test_a_broker_is_avoided_after_a_send_to_it_failed() -> None:
    (span,) = avoided(REFUSED)
    assert (span["broker_name"], span["cause"], span["passed"]) == ("a", ISOLATED, 8)
    assert (span["from_ts"], span["to_ts"]) == (at(0), at(40))


def test_a_broker_is_avoided_while_the_route_lacks_it() -> None:
    (span,) = avoided({}, routes=[{}, ONLY_B | {"ts": at(2)}, {"ts": at(35)}])
    assert (span["cause"], span["passed"]) == (NOT_IN_ROUTE, 8)


def test_no_cause_short_pauses_and_slow_producers_are_none() -> None:
    assert avoided({}) == [], "the application may choose its queues"
    assert avoided(REFUSED, pause=9, every=1) == []
    assert avoided(REFUSED, every=30) == [], "less than two turns"
    assert avoided(REFUSED, pause=1000) == [], "longer than MQFaultStrategy isolates a broker"
