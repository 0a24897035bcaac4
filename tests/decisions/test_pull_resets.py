"""Answers to pulls without the broker's status: a reset explains them, or may explain them, or cannot."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from mqreplay.decisions.pull_answer import RECORDED, UNRECORDED, answers
from mqreplay.evidence.offsets.held_resets import reset_evidence
from silver_moments import at
from silver_rows import rows

Row = dict[str, Any]
PLACE = {"consumer_group": "g", "topic": "t", "broker_name": "b"}
HOUR_S = 3600
ANSWERED_S = 2 * HOUR_S
# As a client's log has it: whole seconds, and neither the broker's id nor its remark.
LOGGED = PLACE | {"queue_id": 0, "client_id": "c", "request_ts": at(ANSWERED_S), "response_ts": at(ANSWERED_S)}
LOGGED |= {"queue_offset": 56, "response_code": 21, "next_begin_offset": 36, "min_offset": 0, "max_offset": 57}
MASTER = {"broker_name": "b", "broker_id": 0, "ts": at(0), "broker_role": "ASYNC_MASTER", "rocketmq_version": "5.3.3"}
REQUEST = PLACE | {"broker_id": 0, "request_code": 222, "client_addr": "h:1", "ts": at(ANSWERED_S - 1)}
TO_36 = REQUEST | {"reset_offsets": [("t", "b", 0, 36), ("t", "b", 1, 37)]}
LINE = {"broker_name": "b", "broker_id": 0, "full": False, "source": "broker_log"}


def setting(value: str) -> Row:
    return {"properties": [("useServerSideResetOffset", value)]}


def lines(from_s: float, to_s: float, every_s: int = 30, **differs: Any) -> list[Row]:
    """The broker.log of the master: a line every ``every_s`` seconds."""
    return [LINE | {"ts": at(second)} | differs for second in range(int(from_s), int(to_s) + 1, every_s)]


def judged(
    pulls: list[Row],
    brokers: list[Row] | None = None,
    requests: list[Row] | None = None,
    log: list[Row] | None = None,
    changes: list[Row] | None = None,
    skewed: tuple[str, ...] = (),
) -> pl.DataFrame:
    known = reset_evidence(
        rows("silver.server_request", {}, requests or []), rows("silver.broker_runtime", {}, log or []), 60, skewed
    )
    return answers(
        rows("silver.pull", LOGGED, pulls),
        rows("silver.broker", MASTER, [{}] if brokers is None else brokers),
        rows("silver.offset_change", PLACE | {"broker_id": 0, "queue_id": 0}, changes or []),
        known,
    )


def verdict(pull: Row, **evidence: Any) -> str:
    (found,) = judged([pull], **evidence)["judgement"].to_list()
    return str(found)


def test_an_answer_of_a_clients_log_is_undetermined_without_a_record_of_the_reset() -> None:
    (found,) = judged([{}]).select("judgement", "reason", "expected_code", "expected_next_offset").rows()
    assert found == ("undetermined", UNRECORDED, None, None)
    assert verdict({}, brokers=[]) == "undetermined", "the version of the broker is not known"
    assert verdict({"queue_offset": 99}) == "undetermined", "a reset counts for a pull beyond the end, too"


def test_a_recorded_reset_explains_the_answer() -> None:
    (found,) = judged([{}], requests=[TO_36]).select("judgement", "reason", "expected_code").rows()
    assert found == ("agree", RECORDED, 21)
    assert verdict({}, requests=[TO_36], brokers=[]) == "agree"
    assert verdict({"broker_id": 0}, requests=[TO_36]) == "agree"


@pytest.mark.parametrize(
    "broker",
    [
        {"rocketmq_version": "4.9.7"},
        {"rocketmq_version": "5.0.0"},
        {"rocketmq_version": "5.1.4"} | setting("false"),
        setting("false"),
        {"broker_role": "SLAVE"},
    ],
)
@pytest.mark.parametrize("requests", [[], [TO_36]])
def test_a_broker_that_keeps_no_resets_gave_a_wrong_answer(broker: Row, requests: list[Row]) -> None:
    assert verdict({}, brokers=[broker], requests=requests) == "differ"


@pytest.mark.parametrize("broker", [{"rocketmq_version": "5.1.4"}, setting("true"), {"rocketmq_version": "unknown"}])
def test_a_broker_whose_setting_is_not_known_may_keep_resets(broker: Row) -> None:
    assert verdict({}, brokers=[broker]) == "undetermined"


@pytest.mark.parametrize(
    "wrong",
    [
        {"remark": "OFFSET_TOO_SMALL"},
        {"remark": "FOUND"},
        {"response_code": 20, "queue_offset": 99},
        {"response_code": 0, "next_begin_offset": 99},
        {"next_begin_offset": 59},  # a reset leads at most one past the end
        {"next_begin_offset": -1},
        {"broker_id": 1},  # a slave refuses resets
    ],
)
def test_an_answer_that_no_reset_gives_differs(wrong: Row) -> None:
    assert verdict(wrong) == "differ"
    assert verdict(wrong, requests=[REQUEST]) == "differ"


def test_a_wrong_answer_without_a_reset_in_the_brokers_log_differs() -> None:
    log = lines(0, ANSWERED_S + 120)
    assert verdict({}, log=log) == "differ"
    other = [TO_36 | {"consumer_group": "h"}, REQUEST | {"reset_offsets": [("t", "b", 1, 36)]}, TO_36 | {"error": "no"}]
    assert verdict({}, log=log, requests=other) == "differ"
    assert verdict({}, log=log, requests=[REQUEST | {"reset_offsets": [("t", "b", 0, 35)]}]) == "differ"
    assert verdict({}, log=log, requests=[TO_36 | {"ts": at(ANSWERED_S + 61)}]) == "differ"
    assert verdict({}, log=log, requests=[TO_36]) == "agree"


@pytest.mark.parametrize(
    "log",
    [
        lines(ANSWERED_S - HOUR_S, ANSWERED_S + 120),  # a client's clock may be a minute off
        lines(0, ANSWERED_S + 30),
        lines(0, ANSWERED_S - 600) + lines(ANSWERED_S - 300, ANSWERED_S + 120),
        lines(0, ANSWERED_S + 120, source=None),
        lines(0, ANSWERED_S + 120, broker_id=1),
        lines(0, ANSWERED_S + 120, broker_name="other"),
    ],
)
def test_a_log_that_may_lack_the_reset_leaves_the_answer_open(log: list[Row]) -> None:
    assert verdict({}, log=log) == "undetermined"


def test_no_reset_in_the_log_proves_nothing_of_an_old_reset_or_by_a_wrong_clock() -> None:
    log = lines(0, ANSWERED_S + 120)
    assert verdict({"queue_offset": 36}, log=log) == "undetermined", "a client that starts asks for the reset offset"
    assert verdict({}, log=log, skewed=("c",)) == "undetermined"


def test_a_reset_answers_one_pull() -> None:
    later = {"request_ts": at(ANSWERED_S + 300), "response_ts": at(ANSWERED_S + 300)}
    twice = judged([later, {}], requests=[TO_36])
    assert twice["judgement"].to_list() == ["undetermined", "agree"]
    known = judged([later, {"remark": "OFFSET_RESET"}], requests=[TO_36])
    assert known["judgement"].to_list() == ["undetermined", "agree"]
    again = TO_36 | {"ts": at(ANSWERED_S + 299)}
    assert judged([later, {}], requests=[TO_36, again])["judgement"].to_list() == ["agree", "agree"]
    other_queue = later | {"queue_id": 1, "next_begin_offset": 37}
    assert judged([other_queue, {}], requests=[TO_36])["judgement"].to_list() == ["agree", "agree"]
