"""Messages that were sent back or became dead letters: what is normal is silent, each bound is where it is."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evidence_keys import evidence_of, keys_of
from mqreplay.evidence.messages.deliveries import max_reconsume_times_of_shard, redelivered_messages
from mqreplay.evidence.offsets.queue_ends import polled_ends
from mqreplay.findings.failed_messages import dead_letters
from mqreplay.findings.messages import (
    failed_listeners,
    retried_topics,
    retry_findings,
    returned_ends_of_shard,
)
from mqreplay.findings.shape import EVIDENCE_ROWS, SCHEMA
from silver_moments import at
from silver_rows import rows

GAP_S, WARN = 120, 5
RETRIED = rows("gold.retried_message", {}, [])
PLACE = {"topic": "T", "queue_topic": "T", "broker_name": "b", "queue_id": 0, "reconsume_times": 0, "orderly": False}
CONFIG = {"source_name": "b-0", "broker_name": "b", "broker_id": 0, "read_queue_nums": 1, "write_queue_nums": 1}
PULL = {"consumer_group": "x", "client_id": "x", "broker_name": "b", "queue_id": 0, "queue_offset": 0, "broker_id": 0}


def consumed(group: str, offset: int, seconds: float, client: str = "c1", **differs: object) -> dict[str, object]:
    row = {"consumer_group": group, "queue_offset": offset, "ts": at(seconds), "client_id": client}
    return row | {"status": "CONSUME_SUCCESS", "record_id": f"{group}{offset}{seconds}"} | differs


def failed(group: str, n: int, times: int = 0) -> list[dict[str, object]]:
    row = {"status": "RECONSUME_LATER", "reconsume_times": times}
    return [consumed(group, offset, offset, **row) for offset in range(n)]


def topic(name: str, seconds: float, change: str = "first", **differs: object) -> dict[str, object]:
    return {"topic": name, "ts": at(seconds), "change": change} | differs


def answered_end(topic: str, seconds: float, end: int, **differs: object) -> dict[str, object]:
    return {"topic": topic, "request_ts": at(seconds), "response_ts": at(seconds), "max_offset": end} | differs


CONSUMED = [
    *[consumed("suspended", 1, s, status="SUSPEND_CURRENT_QUEUE_A_MOMENT", orderly=True) for s in (1, 2, 3)],
    *[consumed("suspended", 1, 4, status="SUCCESS", orderly=True)],
    *failed("four failed", WARN - 1),
    *failed("five failed", WARN),
    *failed("last try", 1, times=16),
    *failed("last try but one", 1, times=15),
    # Consumers with maxReconsumeTimes=2: three messages failed at their last try, one succeeded at it.
    *[line for times in (0, 1, 2) for line in failed("few tries", 3, times)],
    *[consumed("few tries", 9, 30, reconsume_times=2)],
    *failed("few tries, topic unknown", 3, times=2),
    *[consumed("sent back twice", 1, 1, status="RECONSUME_LATER") | {"record_id": f"r{n}"} for n in (2, 1)],
]
CONFIGS = [
    topic("T", 0),
    topic("%DLQ%old", 0),  # was there when the recording began
    topic("%DLQ%new", 60),
    topic("%DLQ%few tries", 5),
    topic("%DLQ%new", 70, broker_id=1, source_name="b-1"),
    topic("T", 0, broker_id=1, source_name="b-1"),
    topic("%DLQ%old", 90, "changed"),
]
ENDS = [
    *[answered_end("%DLQ%grown", s, end) for s, end in ((0, 4), (50, 4), (60, 7))],
    *[answered_end("%DLQ%few tries", s, end) for s, end in ((6, 1), (9, 3))],
    *[answered_end("%RETRY%unlogged", s, end) for s, end in ((0, 0), (10, 6))],
    *[answered_end("%RETRY%five failed", s, end) for s, end in ((0, 0), (10, 6))],
    *[answered_end("%DLQ%slave lags", s, end, broker_id=1) for s, end in ((0, 0), (60, 7))],
    *[answered_end("%RETRY%two brokers", s, end, broker_name=b) for b, s, end in (("b", 0, 3), ("z", 1, 9))],
    *[answered_end("T", s, end) for s, end in ((0, 0), (10, 6))],
]
POLLED = {"topic": "%DLQ%polled", "broker_name": "b", "queue_id": 0, "min_offset": 0}
STATS = [{"ts": at(s), "offsets": [POLLED | {"max_offset": end}]} for s, end in ((0, 0), (60, 1))]


def judged(consumed: list[dict], shards: int = 1) -> pl.DataFrame:
    consume = dealt(rows("silver.consume", PLACE, consumed), shards)
    pull = dealt(rows("silver.pull", PULL, ENDS), shards)
    stats = rows("silver.topic_stats", {"source_name": "b-0", "broker_name": "b", "broker_id": 0}, STATS)
    ends = pl.concat([*[returned_ends_of_shard(shard) for shard in pull], polled_ends(stats)])
    back = pl.concat(redelivered_messages(shard) for shard in consume)
    tries = pl.concat(max_reconsume_times_of_shard(shard) for shard in consume)
    config = rows("silver.topic_config", CONFIG, CONFIGS)
    findings = [
        retry_findings(back, ends, "c", WARN, GAP_S),
        dead_letters(RETRIED, back, tries, config, ends, "c", GAP_S),
    ]
    return pl.concat(findings).sort("finding_id")


def dealt(frame: pl.DataFrame, shards: int) -> list[pl.DataFrame]:
    queue_topic = pl.coalesce([name for name in ("queue_topic", "topic") if name in frame.columns])
    shard = pl.struct(queue_topic, "broker_name", "queue_id").hash(3) % shards
    return [frame.filter(shard == number) for number in range(shards)]


@pytest.fixture(scope="module", params=[1, 7])
def found(request) -> list[dict]:
    return judged(CONSUMED, request.param).to_dicts()


def of(found: list[dict], kind: str) -> dict[str, dict]:
    listed = [row for row in found if row["kind"] == kind]
    assert len({row["consumer_group"] for row in listed}) == len(listed), "one for each group"
    return {row["consumer_group"]: row for row in listed}


def keys(row: dict) -> list[str]:
    return keys_of(row["evidence"])


def test_retries_are_found_by_the_log_and_only_without_it_by_the_topic(found):
    back = of(found, "retry_growth")
    assert {group: row["severity"] for group, row in back.items() if "failed" in group or group == "unlogged"} == {
        "four failed": "info",
        "five failed": "warning",
        "unlogged": "warning",
    }
    assert back["five failed"]["summary"] == "Group five failed could not process messages and sent them back, 5 times."
    assert back["five failed"]["topic"] == "%RETRY%five failed"
    assert keys(back["five failed"]) == [f"record_id=five failed{n}{n}" for n in range(5)]
    assert back["unlogged"]["summary"] == "Group unlogged could not process messages and sent them back, 6 times."
    assert (back["unlogged"]["from_ts"], keys(back["unlogged"])) == (at(10), [])
    assert not {"suspended", "two brokers", "T"} & back.keys()


def test_an_answer_that_was_logged_twice_counts_once(found):
    row = of(found, "retry_growth")["sent back twice"]
    assert row["summary"].endswith(" 1 time.")
    assert keys(row) == ["record_id=r1"]


def test_dead_letters_are_a_topic_that_came_or_grew_or_a_last_try(found):
    letters = of(found, "dead_letter")
    assert letters.keys() == {"new", "grown", "last try", "polled", "few tries"}
    assert letters["few tries"]["summary"] == "Group few tries gave up 3 messages, now in topic %DLQ%few tries."
    assert len(letters.pop("few tries")["evidence"]) == 4, "the topic's creation and three tries"
    assert letters["grown"]["summary"] == "Group grown gave up 3 messages, now in topic %DLQ%grown."
    assert letters["polled"]["summary"] == "Group polled gave up 1 message, now in topic %DLQ%polled."
    assert letters["new"]["summary"] == "Group new gave up messages, now in topic %DLQ%new."
    assert letters["new"]["from_ts"] == at(60)
    evidence = {group: row["evidence"] for group, row in letters.items()}
    assert evidence == {
        "grown": [],
        "polled": [],
        "new": [evidence_of("silver.topic_config", source_name="b-0", topic="%DLQ%new")],
        "last try": [evidence_of("silver.consume", record_id="last try00")],
    }
    assert {row["severity"] for row in letters.values()} == {"warning"}


def test_the_evidence_is_bounded() -> None:
    many = failed("g", EVIDENCE_ROWS + 9, times=16)
    found = judged(many).filter(pl.col("consumer_group") == "g")
    assert found["evidence"].list.len().to_list() == [EVIDENCE_ROWS, EVIDENCE_ROWS]


def test_a_night_without_rows_has_no_findings() -> None:
    consume, config = rows("silver.consume", PLACE, []), rows("silver.topic_config", CONFIG, [])
    ends = returned_ends_of_shard(rows("silver.pull", PULL, []))
    for found in (
        retry_findings(redelivered_messages(consume), ends, "c", WARN, GAP_S),
        dead_letters(
            RETRIED, redelivered_messages(consume), max_reconsume_times_of_shard(consume), config, ends, "c", GAP_S
        ),
    ):
        assert found.is_empty()
        assert found.schema == pl.Schema(SCHEMA)


DELIVERIES = st.tuples(
    st.integers(0, 2),  # queue id
    st.integers(0, 2),  # offset
    st.integers(0, 200),  # seconds
    st.sampled_from(["c1", "c2"]),
    st.sampled_from(["CONSUME_SUCCESS", "RECONSUME_LATER"]),
    st.sampled_from([0, 15, 16]),
)


@given(st.lists(DELIVERIES, max_size=25))
def test_the_split_into_shards_changes_nothing(deliveries) -> None:
    consume_rows = [
        consumed("g", offset, s, client, queue_id=q, status=status, reconsume_times=times, record_id=f"r{n}")
        for n, (q, offset, s, client, status, times) in enumerate(deliveries)
    ]
    assert judged(consume_rows, 5).equals(judged(consume_rows))


def test_retry_topics_with_messages_are_those_sent_to_or_with_an_end_above_zero():
    ends = pl.DataFrame({"topic": ["%RETRY%g", "%RETRY%empty", "T"], "queue_max_offset": [3, 0, 9]})
    redelivered_messages = pl.DataFrame({"consumer_group": ["h", None]}, schema={"consumer_group": pl.String})
    assert retried_topics(redelivered_messages, ends) == {"%RETRY%g", "%RETRY%h"}


def test_listeners_that_failed_by_the_log_of_a_client() -> None:
    error = {"request": "listener", "consumer_group": "g", "topic": "T", "broker_name": "b", "queue_id": 0}
    error |= {"queue_offset": 7, "error": "a.Error, a.B.c(B.java:1)"}
    six = [{"ts": at(s)} for s in range(6)]
    (row,) = failed_listeners(rows("silver.client_error", error, six), "c", WARN, GAP_S).rows(named=True)
    assert row["summary"].startswith(
        "The listener of group g failed 6 times at offset 7 of T in b/0: a.Error, a.B.c(B.java:1); "
    )
    assert "retry topic" in row["summary"]
    assert (row["severity"], row["topic"], row["queue_id"]) == ("warning", "T", 0)
    two = [{"ts": at(0), "is_orderly": True}, {"ts": at(1), "error": "b.Error", "queue_offset": 8, "is_orderly": True}]
    (row,) = failed_listeners(rows("silver.client_error", error, two), "c", WARN, GAP_S).rows(named=True)
    assert row["severity"] == "info"
    assert "on messages of T in b/0: a.Error, a.B.c(B.java:1) (and 1 other exception); an orderly" in row["summary"]
