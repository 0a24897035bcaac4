"""The timeline of a failover in words."""

from __future__ import annotations

from typing import Any

from mqreplay.decisions.failover_row import STEPS as ALL_STEPS
from mqreplay.report.failover_words import STEP_TEXTS, timeline_lines
from silver_moments import at

ROW = {"outage_ts": at(0), "step": "left_route", "ts": at(30), "happened": True, "judgement": "agree", "reason": "r"}
ROW |= {"expected_to": at(36), "namesrv_addr": None, "client_id": "c1", "consumer_group": None, "amount": None}


def lines(*differs: dict[str, Any]) -> list[tuple[str, str]]:
    return timeline_lines([ROW | each for each in differs])


def test_every_step_has_words() -> None:
    assert tuple(STEP_TEXTS) == ALL_STEPS


def test_a_step_of_one_client_and_of_several() -> None:
    assert lines({}) == [("02:00:30.000", "a client got a route without it (c1); agree, allowed until 02:00:36.000: r")]
    ((when, what),) = lines({}, {"client_id": "c2", "ts": at(31)}, {"client_id": "c3", "expected_to": at(40)})
    assert when == "02:00:30.000 to 02:00:31.000"
    assert what == "3 clients got routes without it; agree, allowed until 02:00:40.000: r"


def test_late_ones_are_named_and_are_a_line_of_their_own() -> None:
    late = {"judgement": "differ", "happened": False, "reason": "late"}
    found = lines({}, *(late | {"client_id": f"c{i}"} for i in range(2, 6)))
    assert found[1][1] == "4 clients kept it in their routes (c2, c3, ...); differ, allowed until 02:00:36.000: late"


def test_steps_at_one_instant_are_in_the_order_of_a_failover() -> None:
    nobody = {"client_id": None, "expected_to": None, "judgement": None}
    found = lines(nobody | {"step": "answers_again"}, {"step": "first_slave_read", "amount": 7})
    assert found == [
        ("02:00:30.000", "a client read from the slave (c1), 7 pulls; agree, allowed until 02:00:36.000: r"),
        ("02:00:30.000", "the broker answered again: r"),
    ]


def test_messages_of_groups() -> None:
    group = {"step": "delivered_again", "client_id": None, "consumer_group": "g", "amount": 1, "expected_to": None}
    assert lines(group)[0][1] == "messages were delivered again to a group (g), 1 message; agree: r"
