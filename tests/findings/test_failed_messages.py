"""Dead letters by the rule, and retries that came late."""

from __future__ import annotations

from typing import Any

import polars as pl

from evidence_keys import keys_of
from mqreplay.findings.failed_messages import dead_letters, late_retries
from mqreplay.findings.messages import returned_ends_of_shard
from mqreplay.findings.shape import SCHEMA
from silver_moments import at
from silver_rows import rows

Row = dict[str, Any]
SENT = {"consumer_group": "g", "topic": "t", "broker_name": "b", "client_id": "c1", "sent_ts": at(0), "delay_level": 0}
SENT |= {"response_code": 0, "judgement": "agree"}
LATE = SENT | {"expected_topic": "%RETRY%g", "due_ts": at(10), "judgement": "differ"}
LATE |= {"stored_ts": at(90), "delivered_ts": at(91), "late_s": 80.0, "waited_s": 1.0}
DEAD = SENT | {"expected_topic": "%DLQ%g", "reason": "reconsumeTimes 2 reached maxReconsumeTimes 2"}
MEMBERS = {"consumer_group": pl.String, "client_id": pl.String, "from_ts": pl.Datetime("us", "UTC")}
MEMBERS |= {"to_ts": pl.Datetime("us", "UTC")}
TRIES = {"consumer_group": pl.String, "ts": pl.Datetime("us", "UTC"), "reconsume_times": pl.Int32}
TRIES |= {"record_id": pl.String}
MOST = {"consumer_group": pl.String, "max_reconsume_times": pl.Int64}


def letters(differs: list[Row], tries: list[Row] | None = None) -> list[Row]:
    found = dead_letters(
        rows("gold.retried_message", DEAD, differs),
        pl.DataFrame(tries or [], TRIES),
        pl.DataFrame([("g", 2)], MOST, orient="row"),
        rows("silver.topic_config", {}, []),
        returned_ends_of_shard(rows("silver.pull", {}, [])),
        "c",
        120,
    )
    return found.rows(named=True)


def late(differs: list[Row], found: list[Row] | None = None, members: list[Row] | None = None) -> list[Row]:
    causes = pl.DataFrame(found or [], {name: of for name, of in SCHEMA.items() if name != "evidence"})
    known = pl.DataFrame(members or [], MEMBERS)
    return late_retries(rows("gold.retried_message", LATE, differs), causes, known, "c", 120, 60).rows(named=True)


def test_a_dead_letter_says_why() -> None:
    asked = {"reason": "the consumer asked for a dead letter (delay level -1); no copy of topics.json shows it"}
    (found,) = letters([{}, {"sent_ts": at(100)}, asked | {"judgement": "undetermined", "sent_ts": at(60)}])
    assert found["summary"] == (
        "Group g gave up 3 messages, now in topic %DLQ%g: reconsumeTimes 2 reached maxReconsumeTimes 2; the consumer"
        " asked for a dead letter (delay level -1)."
    )
    assert keys_of(found["evidence"]) == ["record_id=r0", "record_id=r1", "record_id=r2"]
    assert (found["from_ts"], found["to_ts"], found["severity"]) == (at(0), at(100), "warning")


def test_the_rule_decides_about_a_try_whose_request_was_recorded() -> None:
    tries = [{"consumer_group": "g", "ts": at(0), "reconsume_times": 2, "record_id": f"try{n}"} for n in range(3)]
    retried = {"expected_topic": "%RETRY%g", "consume_record_id": "try1"}
    (found,) = letters([{"consume_record_id": "try0"}, retried], tries)
    assert found["summary"].startswith("Group g gave up 2 messages"), "one by the rule, one by the consumer's log"


def test_what_came_back_or_was_refused_is_no_dead_letter() -> None:
    assert letters([{"judgement": "differ"}, {"response_code": 1}, {"expected_topic": "%RETRY%g"}]) == []


def test_a_broker_that_was_late() -> None:
    (found,) = late([{}, {"due_ts": at(31), "late_s": 60.0}])
    assert found["summary"] == (
        "Group g received 1 retry up to 81 s later than their delay levels say: the broker stored them up to 80 s late."
    )
    assert (found["severity"], found["topic"], found["broker_name"]) == ("warning", "%RETRY%g", "b")
    assert (found["from_ts"], found["to_ts"]) == (at(10), at(91))
    assert keys_of(found["evidence"]) == ["record_id=r0"]


def test_messages_that_waited_for_a_consumer() -> None:
    waited = {"stored_ts": at(10), "delivered_ts": at(95), "late_s": 0.0, "waited_s": 85.0}
    (found,) = late([waited, waited])
    assert found["severity"] == "info"
    assert found["summary"].endswith(
        "received 2 retries up to 85 s later than their delay levels say: they waited up to 85 s in %RETRY%g."
    )


def test_what_is_explained_or_not_known_is_no_finding() -> None:
    span = {"from_ts": at(20), "to_ts": at(60)}
    assert late([{}], [span | {"kind": "broker_down", "broker_name": "b", "broker_id": 0}]) == []
    assert late([{}], [span | {"kind": "lag_grows", "consumer_group": "g"}]) == []
    others = [span | {"kind": "broker_down", "broker_name": "b", "broker_id": 1}]
    others += [span | {"kind": "stuck_queue", "consumer_group": "h"}, span | {"kind": "clock_skew"}]
    others += [{"kind": "lag_grows", "consumer_group": "g", "from_ts": at(92), "to_ts": at(99)}]
    assert len(late([{}], others)) == 1
    assert late([{"delivered_ts": at(70)}, {"delay_level": None}, {"stored_ts": None}, {"due_ts": None}]) == []


def test_a_retry_waits_for_the_first_member() -> None:
    member = {"consumer_group": "g", "client_id": "c1"}
    assert late([{}], members=[member | {"from_ts": at(50), "to_ts": at(99)}]) == []
    assert len(late([{}], members=[member | {"from_ts": at(0), "to_ts": at(20)}])) == 1
    assert len(late([{}], members=[member | {"consumer_group": "h", "from_ts": at(50), "to_ts": at(99)}])) == 1


def test_no_rows_no_findings() -> None:
    assert late([]) == []
    assert letters([]) == []


def test_a_retry_that_never_came() -> None:
    never = {"stored_ts": None, "delivered_ts": None, "waited_s": None, "late_s": 90.0}
    (found,) = late([never])
    assert found["summary"] == (
        "Group g misses 1 retry that broker b did not deliver: other retries came up to 90 s after it was due."
    )
    assert (found["severity"], found["from_ts"], found["to_ts"]) == ("warning", at(10), at(100))
    found = late([never, never | {"late_s": 70.0}, {}])
    assert {each["summary"][:23] for each in found} == {"Group g misses 2 retrie", "Group g received 1 retr"}
    assert "after they were due" in "".join(each["summary"] for each in found)
    assert late([never | {"late_s": 50.0}]) == late([never | {"judgement": "undetermined"}]) == []
    assert late([never], members=[{"consumer_group": "g", "from_ts": at(50), "to_ts": at(99)}]) == []


def test_a_dead_letter_topic_that_is_new_counts_what_its_queues_hold() -> None:
    topic = {"topic": "%DLQ%g", "change": "first", "broker_id": 0}
    other = {"topic": "t", "change": "first", "broker_id": 0, "ts": at(0)}
    copies = [
        *(other | {"broker_name": name, "source_name": name} for name in ("a", "b")),
        topic | {"broker_name": "a", "source_name": "a", "ts": at(70)},
        topic | {"broker_name": "b", "source_name": "b", "ts": at(72)},
    ]
    ends = [("%DLQ%g", "a", 0, at(90), 0, 25), ("%DLQ%g", "b", 0, at(95), 0, 22), ("%DLQ%g", "a", 0, at(150), 0, 30)]
    like = returned_ends_of_shard(rows("silver.pull", {}, []))
    schema = {"topic": pl.String, "broker_name": pl.String, "queue_id": pl.Int32, "at": pl.Datetime("us", "UTC")}
    known = pl.DataFrame(ends, schema | {"queue_min_offset": pl.Int64, "queue_max_offset": pl.Int64}, orient="row")
    nothing = (rows("gold.retried_message", DEAD, []), pl.DataFrame([], TRIES), pl.DataFrame([], MOST))
    (found,) = dead_letters(
        *nothing, rows("silver.topic_config", {}, copies), pl.concat([like, known], how="diagonal"), "c", 120
    ).rows(named=True)
    assert found["summary"] == "Group g gave up 52 messages, now in topic %DLQ%g."
    assert (found["from_ts"], found["to_ts"]) == (at(40), at(150)), "a copy comes up to 60 s after the topic"


def test_a_broker_that_logs_the_creation_of_a_dead_letter_topic() -> None:
    event = {"event": "topic_created", "broker_name": "a", "ts": at(20)}
    events = rows("silver.broker_event", event, [{"topic": "%DLQ%g"}, {"topic": "orders"}])
    nothing = (rows("gold.retried_message", DEAD, []), pl.DataFrame([], TRIES), pl.DataFrame([], MOST))
    ends = returned_ends_of_shard(rows("silver.pull", {}, []))
    (found,) = dead_letters(*nothing, rows("silver.topic_config", {}, []), ends, "c", 120, events).to_dicts()
    assert found["summary"] == "Group g gave up messages, now in topic %DLQ%g."
    assert (found["from_ts"], found["evidence_count"]) == (at(20), 1)
