"""Which records show that a broker kept a reset offset for the next pull."""

from __future__ import annotations

from typing import Any

import pytest

from mqreplay.evidence.offsets.held_resets import reset_evidence, with_reset_evidence
from silver_moments import at
from silver_rows import rows

Row = dict[str, Any]
PLACE = {"consumer_group": "g", "topic": "t", "broker_name": "b"}
ANSWER = PLACE | {"queue_id": 0, "client_id": "c", "request_ts": at(1000), "queue_offset": 56, "next_begin_offset": 36}
REQUEST = PLACE | {"request_code": 222, "client_addr": "h:1", "ts": at(990)}
PUSH = PLACE | {"request_code": 220, "client_id": "c"}
COPY = PLACE | {"queue_id": 0, "broker_id": 0, "from_ts": at(890), "to_ts": at(900)}
FELL = COPY | {"previous_offset": 50, "new_offset": 36}


def is_reset(answers: list[Row], requests: list[Row], copies: list[Row] | None = None) -> list[bool]:
    known = reset_evidence(rows("silver.server_request", {}, requests), rows("silver.broker_runtime", {}, []), 60)
    moved = rows("silver.pull", ANSWER, answers)
    found = with_reset_evidence(moved, rows("silver.offset_change", {}, copies or []), known)
    assert found.columns == [*moved.columns, "is_reset", "is_logged"]
    return found["is_reset"].to_list()


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        (REQUEST, True),  # to an offset that is not known
        (REQUEST | {"ts": at(1059)}, True),  # within the difference of two clocks
        (REQUEST | {"ts": at(1061)}, False),
        (REQUEST | {"ts": at(1)}, True),  # it waits until the next pull
        (REQUEST | {"error": "no topic"}, False),
        (REQUEST | {"topic": "other"}, False),
        (REQUEST | {"broker_name": "other"}, False),
        (REQUEST | {"reset_offsets": [("t", "b", 0, 36)]}, True),
        (REQUEST | {"reset_offsets": [("t", "b", 0, 35)]}, False),
        (REQUEST | {"reset_offsets": [("t", "b", 1, 36)]}, False),
        (PUSH | {"ts": at(990), "reset_offsets": [("t", "b", 0, 36)]}, False),  # that is an order to a client
    ],
)
def test_a_request(request_: Row, expected: bool) -> None:
    assert is_reset([{}], [request_]) == [expected]


def test_a_broker_that_orders_clients_to_reset_keeps_no_reset() -> None:
    assert is_reset([{}], [REQUEST, PUSH | {"ts": at(990)}]) == [False]
    assert is_reset([{}], [REQUEST, PUSH | {"ts": at(100)}]) == [True]
    assert is_reset([{}], [REQUEST, PUSH | {"ts": at(990), "consumer_group": "h"}]) == [True]


def test_a_later_reset_replaces_one_that_waits() -> None:
    waits = REQUEST | {"ts": at(500), "reset_offsets": [("t", "b", 0, 36)]}
    assert is_reset([{}], [waits, REQUEST | {"ts": at(600), "reset_offsets": [("t", "b", 0, 40)]}]) == [False]
    # The clocks leave open which of them came before the answer.
    assert is_reset([{}], [waits, REQUEST | {"ts": at(990), "reset_offsets": [("t", "b", 0, 40)]}]) == [True]


@pytest.mark.parametrize(
    ("copy", "expected"),
    [
        (FELL, True),
        (FELL | {"new_offset": 37}, False),
        (FELL | {"previous_offset": 30}, False),  # the group committed it
        (FELL | {"previous_offset": None}, False),
        (FELL | {"broker_id": 1}, False),
        (FELL | {"queue_id": 1}, False),
        # The client commits the offset of the answer itself.
        (FELL | {"from_ts": at(999), "to_ts": at(1004)}, False),
        (FELL | {"from_ts": at(940), "to_ts": at(945)}, False),  # by another clock
    ],
)
def test_a_copy_before_the_answer(copy: Row, expected: bool) -> None:
    assert is_reset([{}], [], [copy]) == [expected]


def test_a_copy_shows_a_reset_ahead_past_all_that_the_group_asked_for() -> None:
    ahead = {"queue_offset": 56, "next_begin_offset": 90}
    assert is_reset([ahead], [], [COPY | {"previous_offset": 50, "new_offset": 90}]) == [True]


def test_only_the_last_copy_before_the_answer_counts() -> None:
    assert is_reset([{}], [], [FELL, COPY | {"to_ts": at(910), "previous_offset": 36, "new_offset": 44}]) == [False]


def test_a_reset_is_answered_once() -> None:
    assert is_reset([{}, {"request_ts": at(2000)}], [REQUEST], [FELL]) == [True, False]
