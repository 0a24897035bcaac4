"""The first pull of a queue against RebalanceImpl#computePullFromWhere, with the answers that the client had."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from mqreplay.decisions.queue_start import consumers, queue_start
from mqreplay.evidence.recorded_versions import client_versions
from silver_moments import at
from silver_rows import rows

QUEUE = {"client_id": "c1", "consumer_group": "g", "topic": "t", "broker_name": "b", "queue_id": 0}
QUERY = QUEUE | {"kind": "QUERY", "ts": at(10), "response_ts": at(10.1), "response_code": 22, "broker_id": 0}
PULL = QUEUE | {"request_ts": at(11), "queue_offset": 0, "min_offset": 0, "max_offset": 900, "broker_id": 0}
LOOKUP = {name: QUEUE[name] for name in ("client_id", "topic", "broker_name", "queue_id")}
LOOKUP |= {"kind": "MAX", "ts": at(10.2), "answer_offset": 890, "response_code": 0}
ORDINALS = {"4.9.4": 401, "4.9.8": 409, "5.0.0": 413, "5.3.3": 479}  # MQVersion
NEW = pl.DataFrame({"client_id": ["c1", "c9"]})
Row = dict[str, Any]
STORED, NOT_FOUND = {"response_code": 0}, {"response_code": 22}


def beat(where: str, seconds: float = 9, model: str = "CLUSTERING", kind: str = "CONSUME_PASSIVELY") -> Row:
    group = {"group_name": "g", "consume_from_where": where, "message_model": model, "consume_type": kind}
    return {"kind": "HEART_BEAT", "client_id": "c1", "ts": at(seconds), "consumer_data_set": [group]}


def starts(
    pulls: list[Row],
    queries: list[Row],
    lookups: list[Row] | None = None,
    changes: list[Row] | None = None,
    beats: list[Row] | None = None,
    version: str | None = None,
) -> list[Row]:
    heartbeat = rows("silver.heartbeat", {}, [beat("CONSUME_FROM_LAST_OFFSET")] if beats is None else beats)
    connection = {"client_id": "c1", "language": "JAVA", "version": ORDINALS.get(version or "")}
    connected = rows("silver.consumer_connection", {"consumer_group": "g"}, [{"connections": [connection]}])
    return queue_start(
        rows("silver.pull", PULL, pulls),
        rows("silver.offset_commit", QUERY, queries),
        rows("silver.offset_lookup", LOOKUP, lookups or []),
        rows("silver.offset_change", QUEUE | {"client_id": None, "broker_id": 0}, changes or []),
        consumers(heartbeat),
        NEW,
        client_versions(connected),
    ).rows(named=True)


def start(*args: Any, **more: Any) -> Row:
    (row,) = starts(*args, **more)
    return row


def verdict(row: Row) -> tuple[str, int | None]:
    return row["judgement"], row["expected_offset"]


@pytest.mark.parametrize(
    ("query", "began", "expected"),
    [
        (STORED | {"answer_offset": 7}, 7, ("agree", 7)),
        (STORED | {"answer_offset": 7}, 8, ("differ", 7)),
        (NOT_FOUND, 890, ("agree", 890)),
        (NOT_FOUND, 0, ("differ", 890)),
        ({"response_code": None}, 0, ("undetermined", None)),
    ],
)
def test_the_answer_of_the_store_decides(query: Row, began: int, expected: tuple[str, int | None]) -> None:
    assert verdict(start([{"queue_offset": began}], [query], [{}])) == expected


@pytest.mark.parametrize(
    ("where", "topic", "began", "expected"),
    [
        ("CONSUME_FROM_FIRST_OFFSET", "t", 0, ("agree", 0)),
        ("CONSUME_FROM_FIRST_OFFSET", "t", 890, ("differ", 0)),
        ("CONSUME_FROM_LAST_OFFSET", "%RETRY%g", 0, ("agree", 0)),
        ("CONSUME_FROM_MIN_OFFSET", "t", 890, ("agree", 890)),  # a deprecated name: the last offset
        ("CONSUME_FROM_TIMESTAMP", "t", 300, ("agree", 300)),
        ("CONSUME_FROM_TIMESTAMP", "t", 890, ("differ", 300)),
        ("CONSUME_FROM_TIMESTAMP", "%RETRY%g", 890, ("agree", 890)),
        ("SOMETHING_NEW", "t", 0, ("undetermined", None)),
    ],
)
def test_without_a_stored_offset_consume_from_where_decides(
    where: str, topic: str, began: int, expected: tuple[str, int | None]
) -> None:
    lookups: list[Row] = [{"topic": topic}, {"topic": topic, "kind": "SEARCH", "answer_offset": 300}]
    row = start([{"topic": topic, "queue_offset": began}], [{"topic": topic}], lookups, beats=[beat(where)])
    assert verdict(row) == expected


def test_no_heartbeat_no_verdict() -> None:
    assert verdict(start([{}], [{}], [{}], beats=[])) == ("undetermined", None)


def test_the_end_is_that_of_the_pull_if_nothing_arrived_since() -> None:
    assert verdict(start([{"queue_offset": 900}], [{}])) == ("agree", 900)
    row = start([{"queue_offset": 890}], [{}])
    assert verdict(row) == ("undetermined", None)
    assert "maxOffset was not recorded" in row["reason"]
    # The request for the end of an earlier start is not this one's.
    assert verdict(start([{"queue_offset": 890}], [{}], [{"ts": at(3)}])) == ("undetermined", None)


def test_the_last_question_before_the_pull_counts() -> None:
    asked = [STORED | {"answer_offset": 3}, STORED | {"answer_offset": 5, "ts": at(10.5), "response_ts": at(10.6)}]
    later = {"ts": at(30), "response_ts": at(30.1)}
    answered = {"queue_offset": 6, "request_ts": at(12), "response_ts": at(12.1)}
    pulls: list[Row] = [{"queue_offset": 5}, answered, {"queue_offset": 9, "request_ts": at(31)}]
    found = starts(pulls, [*asked, STORED | later | {"answer_offset": 9}])
    assert [(row["actual_offset"], *verdict(row)) for row in found] == [(5, "agree", 5), (9, "agree", 9)]
    assert [row["record_id"] for row in found] == ["r0", "r2"]


@pytest.mark.parametrize(
    ("version", "began", "expected"),
    [
        ("4.9.4", 890, ("agree", 890)),  # RemoteBrokerOffsetStore#readOffset of 4.x: any error is no stored offset
        ("4.9.8", 7, ("differ", 890)),
        ("5.0.0", 890, ("differ", -1)),  # no start: the next rebalance asks again
        ("5.3.3", 7, ("differ", -1)),
        (None, 890, ("agree", 890)),
        (None, 7, ("differ", 890)),
    ],
)
@pytest.mark.parametrize("code", [1, 2])
def test_a_refused_question_is_no_stored_offset_before_5(
    code: int, version: str | None, began: int, expected: tuple[str, int | None]
) -> None:
    row = start([{"queue_offset": began}], [{"response_code": code}], [{}], version=version)
    assert verdict(row) == expected
    if expected[0] == "agree":
        assert row["reason"] == (
            f"the broker refused to tell the stored offset, which a client before 5.0 takes for none (code {code});"
            " no stored offset, and CONSUME_FROM_LAST_OFFSET, whose maxOffset is 890"
        )


def test_a_question_of_another_client_or_queue_does_not_count() -> None:
    other: list[Row] = [{"client_id": "c2"}, {"queue_id": 1}]
    assert starts([{}], [other[1]]) == []
    # c1 began in the recording, and nothing recorded its question.
    row = start([{}], [other[0]])
    assert (row["judgement"], row["reason"]) == (
        "undetermined",
        "the client's question for the stored offset was not recorded",
    )
    assert starts([{"client_id": "older"}], [other[0]]) == []


def test_a_broadcasting_client_has_its_own_file() -> None:
    row = start([{}], [], beats=[beat("CONSUME_FROM_LAST_OFFSET", model="BROADCASTING")])
    assert (row["judgement"], row["reason"]) == (
        "undetermined",
        "a broadcasting client keeps its offsets in a file of its own",
    )


def test_a_pull_consumer_may_choose() -> None:
    active = [beat("CONSUME_FROM_LAST_OFFSET", kind="CONSUME_ACTIVELY")]
    stored = STORED | {"answer_offset": 7}
    assert verdict(start([{"queue_offset": 7}], [stored], beats=active)) == ("agree", 7)
    assert verdict(start([{"queue_offset": 8}], [stored], beats=active)) == ("undetermined", None)


def test_what_was_before_the_start() -> None:
    late = {"queue_offset": 890, "min_offset": 40, "max_offset": 895}
    row = start([late], [{}], [{}])
    assert [row[name] for name in ("had_offset", "skipped", "min_offset", "max_offset")] == [False, 850, 40, 895]
    # An answer without these numbers: those of the next one.
    unanswered = late | {"min_offset": None, "max_offset": None}
    row = start([unanswered, late | {"request_ts": at(12)}], [{}], [{}])
    assert [row[name] for name in ("skipped", "min_offset", "max_offset")] == [850, 40, 895]
    row = start([late], [STORED | {"answer_offset": 890}])
    assert (row["had_offset"], row["skipped"]) == (True, None)


def test_no_pulls_make_no_rows_but_the_columns_of_the_table() -> None:
    none = [rows(f"silver.{name}", {}, []) for name in ("pull", "offset_commit", "offset_lookup", "offset_change")]
    found = queue_start(
        *none,
        consumers(rows("silver.heartbeat", {}, [])),
        NEW.clear(),
        client_versions(rows("silver.consumer_connection", {}, [])),
    )
    assert found.schema == rows("gold.queue_start", {}, []).select(found.columns).schema


def test_a_broker_may_answer_zero_without_an_entry() -> None:
    zero = STORED | {"answer_offset": 0}
    made = {"previous_offset": None, "new_offset": 4, "from_ts": at(20), "to_ts": at(25)}
    assert start([{}], [zero])["had_offset"] is None
    row = start([{}], [zero], changes=[made])
    assert (row["had_offset"], row["judgement"]) == (False, "agree")
    assert row["reason"] == "no stored offset, but a queue with its first message in memory: the broker answered 0"
    # It was there in the first copy, or another client of the group pulled before.
    assert start([{}], [zero], changes=[made | {"from_ts": None}])["had_offset"] is None
    earlier = {"client_id": "c2", "request_ts": at(5)}
    found = starts([earlier, {}], [zero], changes=[made])
    assert [row["had_offset"] for row in found] == [None]


def test_a_broker_that_answers_zero_though_the_first_message_is_gone() -> None:
    made = {"previous_offset": None, "new_offset": 4, "from_ts": at(20), "to_ts": at(25)}
    row = start([{"min_offset": 5}], [STORED | {"answer_offset": 0}], changes=[made])
    assert verdict(row) == ("differ", None)
    assert row["reason"] == "no stored offset, and the queue begins at 5: the broker must not answer an offset"


def test_a_question_while_a_pull_waits_is_of_running_info_and_no_start() -> None:
    waits = {"request_ts": at(11), "response_ts": at(40)}
    after = {"request_ts": at(40.1), "response_ts": at(41), "queue_offset": 1}
    again = {"ts": at(25), "response_ts": at(25.1)}
    found = starts([waits, after], [NOT_FOUND, NOT_FOUND | again], beats=[beat("CONSUME_FROM_FIRST_OFFSET")])
    assert [(row["request_ts"], row["judgement"]) for row in found] == [(at(11), "agree")]
    left = starts([waits | {"response_ts": at(12)}, after], [NOT_FOUND, NOT_FOUND | again])
    assert [row["request_ts"] for row in left] == [at(11), at(40.1)]
