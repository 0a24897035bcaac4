"""Runs of pulls that brokers refused, and what mends them."""

from __future__ import annotations

from typing import Any

import polars as pl

from evidence_keys import keys_of
from mqreplay.findings.refused import logged_refusals, refused_pulls, refused_runs_of_shard
from mqreplay.findings.shape import SCHEMA
from silver_moments import at
from silver_rows import rows

TOPIC = "the topic may not be read (perm)"
LATE = "the broker knew an older subscription of the group"
BROKER = "the broker may not be read (brokerPermission)"
ANSWER = {"consumer_group": "g", "topic": "t", "broker_name": "b", "broker_id": 0, "queue_id": 0, "client_id": "c"}
ANSWER |= {"request_ts": at(0), "response_code": 16, "refusal": TOPIC}
ANSWERED = {"consumer_group": "g", "topic": "t", "broker_name": "b"}
Row = dict[str, Any]


def found(*differs: Row) -> list[Row]:
    runs = refused_runs_of_shard(rows("gold.pull_answer", ANSWER, differs), 120)
    made = refused_pulls(runs, "c", 120, 10)
    assert dict(made.schema) == SCHEMA
    return made.sort("from_ts").rows(named=True)


def test_a_topic_that_may_not_be_read() -> None:
    (row,) = found({}, {"request_ts": at(100), "queue_id": 1}, {"request_ts": at(118)})
    assert row["summary"] == (
        "The master of b refused 3 pulls of group g from t for 118 s (code 16): the topic may not be read (perm)."
    )
    assert "updateTopicPerm -t TOPIC" in row["advice"]
    assert (row["consumer_group"], row["topic"], row["severity"]) == ("g", "t", "warning")
    assert keys_of(row["evidence"]) == ["record_id=r0", "record_id=r1", "record_id=r2"]


def test_groups_of_one_topic_are_one_finding_and_so_are_topics_of_one_broker() -> None:
    (row,) = found({}, {"consumer_group": "h"})
    assert "of several groups from t" in row["summary"]
    (row,) = found({"refusal": BROKER}, {"refusal": BROKER, "topic": "u"})
    assert "of group g from several topics" in row["summary"]
    assert "brokerPermission is 6" in row["advice"]
    assert len(found({}, {"topic": "u"})) == 2


def test_a_start_is_no_finding_unless_it_lasts() -> None:
    start = {"response_code": 25, "refusal": LATE}
    assert found(*(start | {"request_ts": at(s)} for s in (0, 3, 6, 9))) == []
    assert found(*(start | {"request_ts": at(s)} for s in (0, 20, 40))) == [], "starts at several rebalances"
    (row,) = found(*(start | {"request_ts": at(s)} for s in (0, 3, 6, 9, 12)))
    assert "for 12 s (code 25): the broker knew an older subscription" in row["summary"]


def test_what_a_slave_has_not_copied_yet_is_no_finding_unless_it_lasts() -> None:
    lacks = {"response_code": 17, "refusal": "the broker lacks the topic", "broker_id": 1}
    assert found(*(lacks | {"request_ts": at(s)} for s in (0, 4, 9))) == []
    assert len(found(*(lacks | {"request_ts": at(s)} for s in (0, 5, 11)))) == 1
    assert len(found(lacks | {"broker_id": 0})) == 1


def test_what_others_report_is_none() -> None:
    assert found({"response_code": 2, "broker_id": 1, "refusal": "the slave may not be read (slaveReadEnable)"}) == []
    assert found({"response_code": 21, "refusal": None}) == []


def test_another_reason_is_reported_too() -> None:
    (row,) = found({"response_code": 2, "refusal": "another reason"})
    assert row["advice"].startswith("Read the remark of the answers")


def logged(
    *differs: Row,
    answers: tuple[Row, ...] = (),
    members: tuple[str, ...] = ("other",),
    seen_s: int = 100,
    left: bool = False,
) -> list[Row]:
    error = {"request": "pull", "response_code": 24, "remark": "the consumer's group info not exist"}
    runs = refused_runs_of_shard(rows("gold.pull_answer", ANSWER | {"response_code": 24}, answers), 120)
    owners = rows("gold.queue_owner", {"to_ts": at(seen_s)}, [{"consumer_group": group} for group in members])
    alive = owners.select("consumer_group", "to_ts", left=pl.lit(left))
    made = logged_refusals(rows("silver.client_error", error, differs), runs, alive, "c", 120, 45)
    assert dict(made.schema) == SCHEMA
    return made.sort("from_ts").rows(named=True)


def test_refusals_of_a_clients_log() -> None:
    times = [{"ts": at(s)} for s in (0, 3, 6, 9, 12)]
    (row,) = logged(*times)
    assert row["summary"] == (
        "5 pulls of a group that the log does not name were refused within 12 s (code 24): "
        "no consumer of the group was registered with the broker."
    )
    assert row["severity"] == "info"
    assert logged(*times[:3]) == [], "a start"
    (row,) = logged(times[0], members=())
    assert (row["severity"], row["summary"]) == (
        "info",
        "1 pull of a group that the log does not name was refused (code 24): "
        "no consumer of the group was registered with the broker.",
    ), "nothing shows a start"
    assert len(logged(times[0] | {"consumer_group": "g"})) == 1
    assert logged(times[0] | {"consumer_group": "g"}, members=("g",)) == []
    assert len(logged(times[1] | {"consumer_group": "g"}, members=("g",), seen_s=1)) == 1, "its connection broke"
    assert logged(times[1] | {"consumer_group": "g"}, members=("g",), seen_s=1, left=True) == [], "it left as it pulled"
    (row,) = logged(times[0], {"ts": at(60)}, members=())
    assert (row["severity"], row["evidence_count"]) == ("warning", 2), "a start does not come again for a minute"
    assert logged(*times, answers=({}, {"request_ts": at(12)})) == [], "the pulls themselves show it"
    (row,) = logged(
        {"ts": at(0), "response_code": 16, "remark": "the topic[t] pulling message is forbidden"} | ANSWERED
    )
    assert (row["severity"], row["consumer_group"]) == ("warning", "g")
    assert "1 pull of group g from t was refused by b (code 16): the topic may not be read" in row["summary"]
    unanswered = {"response_code": None, "remark": None, "error": "RemotingConnectException: connect to h:9 failed"}
    (row,) = logged(*(ANSWERED | unanswered | {"ts": at(s)} for s in (0, 9, 18, 27, 36, 45)))
    assert row["summary"] == (
        "6 pulls of group g from t got no answer from b within 45 s: RemotingConnectException: connect to h:9 failed."
    )
    assert (row["severity"], "brokerIP1" in row["advice"]) == ("warning", True)
