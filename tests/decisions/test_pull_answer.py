"""Answers to pulls against the store's rule: by the range that the answer itself states."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from mqreplay.decisions.pull_answer import answers, stored_rows
from mqreplay.evidence.offsets.held_resets import reset_evidence
from silver_moments import at
from silver_rows import rows

PULL = {"consumer_group": "g", "topic": "t", "broker_name": "b", "queue_id": 0, "client_id": "c", "broker_id": 0}
PULL |= {"request_ts": at(1), "min_offset": 10, "max_offset": 50}
BROKER = {"broker_name": "b", "ts": at(0), "rocketmq_version": "4.9.7", "offset_check_in_slave": False}
MASTER = BROKER | {"broker_id": 0, "broker_role": "ASYNC_MASTER"}
SLAVE = BROKER | {"broker_id": 1, "broker_role": "SLAVE"}
Row = dict[str, Any]


def answer(asked: int, code: int, after: int, remark: str | None = None, last: int | None = None, **more: Any) -> Row:
    named = {"queue_offset": asked, "response_code": code, "next_begin_offset": after, "remark": remark}
    return named | {"last_queue_offset": last} | more


def verdicts(pulls: list[Row], brokers: list[Row]) -> pl.DataFrame:
    resets = reset_evidence(rows("silver.server_request", {}, []), rows("silver.broker_runtime", {}, []), 60)
    changes = rows("silver.offset_change", {}, [])
    return answers(rows("silver.pull", PULL, pulls), rows("silver.broker", {}, brokers), changes, resets)


def verdict(pull: Row, *brokers: Row) -> tuple[str, int | None, int | None]:
    (row,) = verdicts([pull], list(brokers or (MASTER,))).rows(named=True)
    return row["judgement"], row["expected_code"], row["expected_next_offset"]


@pytest.mark.parametrize(
    ("pull", "expected"),
    [
        # Inside of the queue.
        (answer(20, 0, 24, "FOUND", 23), ("agree", 0, None)),
        (answer(20, 0, 24, last=23), ("agree", None, None)),  # without a remark, several codes are possible
        (answer(20, 0, 24, "FOUND", 24), ("differ", None, None)),  # the next offset repeats a message
        (answer(20, 0, 821, "FOUND"), ("differ", None, None)),
        (answer(20, 20, 821, "NO_MATCHED_MESSAGE"), ("differ", None, None)),
        (answer(20, 0, 821, "FOUND", max_msg_nums=801), ("agree", 0, None)),
        (answer(20, 20, 22, "NO_MATCHED_MESSAGE"), ("agree", 20, None)),
        (answer(20, 19, 40, "OFFSET_FOUND_NULL"), ("agree", 19, None)),
        (answer(20, 21, 10), ("differ", None, None)),
        (answer(20, 21, 10, "OFFSET_RESET"), ("agree", 21, None)),
        (answer(20, 19, 20, "OFFSET_OVERFLOW_ONE"), ("differ", None, None)),
        # Outside.
        (answer(50, 19, 50, "OFFSET_OVERFLOW_ONE"), ("agree", 19, 50)),
        (answer(50, 0, 51, "FOUND"), ("differ", None, None)),
        (answer(51, 21, 50), ("agree", 21, 50)),
        (answer(51, 21, 10), ("differ", 21, 50)),
        (answer(51, 19, 50), ("differ", 21, 50)),
        (answer(9, 21, 10), ("agree", 21, 10)),
        (answer(9, 21, 9), ("differ", 21, 10)),
        # An empty queue.
        (answer(0, 19, 0, "NO_MESSAGE_IN_QUEUE", min_offset=0, max_offset=0), ("agree", 19, 0)),
        (answer(5, 21, 0, min_offset=0, max_offset=0), ("agree", 21, 0)),
        (answer(5, 21, 0, "NO_MATCHED_LOGIC_QUEUE", min_offset=0, max_offset=0), ("agree", 21, 0)),
    ],
)
def test_a_master(pull: Row, expected: tuple[str, int | None, int | None]) -> None:
    assert verdict(pull) == expected


@pytest.mark.parametrize(("version", "expected"), [("4.9.8", "agree"), ("5.0.0", "differ"), (None, "agree")])
@pytest.mark.parametrize(("code", "status"), [(0, "FOUND"), (20, "NO_MATCHED_MESSAGE")])
def test_4_reads_messages_that_arrived_meanwhile(version: str | None, expected: str, code: int, status: str) -> None:
    """The loop of DefaultMessageStore#getMessage ends at max_offset since 5.0."""
    assert verdict(answer(20, code, 60, status), MASTER | {"rocketmq_version": version})[0] == expected


def test_a_plug_in_of_the_store_has_rules_of_its_own() -> None:
    tiered = "org.apache.rocketmq.tieredstore.TieredMessageStore"
    for plug_in, expected in ((tiered, "undetermined"), ("", "differ")):
        broker = MASTER | {"rocketmq_version": "5.3.3", "properties": {"messageStorePlugIn": plug_in}}
        # The tiered store corrects no offset of an empty queue, and a reset of its own does not hold.
        assert verdict(answer(5, 21, 5, min_offset=0, max_offset=0), broker)[0] == expected
        assert verdict(answer(20, 0, 24, "FOUND", 23), broker)[0] == "agree"


def test_a_slave_leaves_the_offset_as_it_is() -> None:
    asked = {"broker_id": 1}
    assert verdict(answer(60, 20, 60, **asked), SLAVE) == ("agree", 20, 60)
    assert verdict(answer(60, 21, 50, **asked), SLAVE) == ("differ", 20, 60)
    assert verdict(answer(60, 21, 50, **asked), SLAVE | {"offset_check_in_slave": True}) == ("agree", 21, 50)
    # Not described: it may check or not.
    assert verdict(answer(60, 20, 60, **asked)) == ("agree", None, None)
    assert verdict(answer(60, 21, 50, **asked)) == ("agree", None, None)


def test_a_slave_of_5_sends_back_to_its_master() -> None:
    of_5 = SLAVE | {"rocketmq_version": "5.3.3"}
    assert verdict(answer(50, 20, 50, "OFFSET_OVERFLOW_ONE", broker_id=1), of_5)[0] == "agree"
    assert verdict(answer(50, 20, 50, "OFFSET_OVERFLOW_ONE", broker_id=1), SLAVE)[0] == "differ"


def test_rows_of_one_case_keep_their_own_numbers() -> None:
    pulls = [answer(60, 21, 50), answer(160, 21, 150, max_offset=150)]
    assert verdicts(pulls, [MASTER])["expected_next_offset"].to_list() == [50, 150]


def test_plain_answers_that_agree_are_not_stored() -> None:
    pulls = [answer(20, 0, 24, "FOUND"), answer(50, 19, 50), answer(51, 21, 50), answer(20, 0, 20, "FOUND")]
    assert stored_rows(verdicts(pulls, [MASTER]))["record_id"].to_list() == ["r2", "r3"]


def test_refusals_and_missing_answers_have_no_range() -> None:
    none = [{"response_code": 25, "min_offset": None, "max_offset": None}, {"response_code": None, "max_offset": None}]
    assert verdicts(none, [MASTER]).is_empty()


def test_no_pulls_make_no_rows_but_the_columns_of_the_table() -> None:
    found = verdicts([], [])
    assert found.schema == rows("gold.pull_answer", {}, []).select(found.columns).schema
