"""Offsets that clients commit, against what they finished: by rule, by core's ProcessQueue, and by real lines."""

from __future__ import annotations

import random
from typing import Any

import polars as pl
import pytest

from mqreplay.core.offset_store import RemoteBrokerOffsetStore
from mqreplay.core.process_queue import ProcessQueue, PulledMessage
from mqreplay.decisions.committed_offset import (
    BEHIND,
    BEYOND_LOG,
    NO_LOG,
    TYPES,
    committed_offsets,
    offsets_in_memory,
    stored_rows,
)
from mqreplay.decisions.flow_control import TYPES as FLOW
from mqreplay.evidence.messages.deliveries import with_queue_topic
from silver_moments import at
from silver_rows import rows

Row = dict[str, Any]
QUEUE = {"consumer_group": "g", "topic": "t", "broker_name": "b", "queue_id": 0, "client_id": "c1"}
DONE = QUEUE | {"queue_topic": "t", "status": "CONSUME_SUCCESS", "orderly": False, "reconsume_times": 0}
DONE |= {"store_ts": at(1)}
COMMIT = QUEUE | {"kind": "UPDATE", "ts": at(10), "record_id": "commit"}
PUSH = {"consumer_group": "g", "client_id": "c1", "consume_type": "CONSUME_PASSIVELY"}
CONSUMER = {"consumer_group": pl.String, "client_id": pl.String, "consume_type": pl.String}
ALL_DONE = "all messages before it had finished"
LOWEST = "it is the lowest offset that had not finished"


def finished(**seconds: float) -> list[Row]:
    """Deliveries of the offsets named by o5, o6, ...: finished at these seconds."""
    return [DONE | {"queue_offset": int(name[1:]), "ts": at(s), "record_id": name} for name, s in seconds.items()]


def judged(commits: list[Row], log: list[Row], known: list[Row] | None = None) -> list[Row]:
    consume = with_queue_topic(rows("silver.consume", {}, log))
    consumers = pl.DataFrame([PUSH] if known is None else known, CONSUMER)
    return committed_offsets(rows("silver.offset_commit", COMMIT, commits), consume, consumers).rows(named=True)


def verdict(offset: int, log: list[Row], known: list[Row] | None = None, **commit: Any) -> tuple[str, str]:
    (row,) = judged([{"commit_offset": offset, **commit}], log, known)
    return row["judgement"], row["reason"]


@pytest.mark.parametrize(
    ("offset", "log", "expected"),
    [
        (7, finished(o5=8, o6=9), ("agree", ALL_DONE)),
        (6, finished(o5=8, o6=12), ("agree", ALL_DONE)),
        (5, finished(o5=12), ("agree", LOWEST)),
        (5, finished(o5=9.5), ("agree", LOWEST)),  # it may have finished just now
        (5, finished(o5=8, o6=9), ("undetermined", BEHIND)),
        (0, [], ("agree", "no message is before it")),
        (5, [], ("undetermined", NO_LOG)),
        (5, finished(o3=8), ("undetermined", BEYOND_LOG)),
        (5, finished(o3=8, o9=20), ("undetermined", BEYOND_LOG)),
        (7, finished(o4=0.5, o5=22, o6=9), ("differ", "the commit passed offset 5, which finished 12.0 s later")),
        (8, finished(o4=0.5, o5=9, o6=22, o7=9), ("differ", "the commit passed offset 6, which finished 12.0 s later")),
        (7, finished(o5=10.9, o6=9), ("agree", ALL_DONE)),  # within the precision of clocks
    ],
)
def test_a_commit_does_not_pass_a_message_that_is_not_finished(
    offset: int, log: list[Row], expected: tuple[str, str]
) -> None:
    assert verdict(offset, log) == expected


def test_what_may_explain_that_a_commit_passed_a_message() -> None:
    late = finished(o4=-100, o5=22, o6=9)
    passed = "the commit passed offset 5, which finished 12.0 s later; "
    assert verdict(7, late, known=[]) == ("undetermined", passed + "no heartbeat names a push consumer")
    pull = [PUSH | {"consume_type": "CONSUME_ACTIVELY"}]
    assert verdict(7, late, known=pull) == ("undetermined", passed + "no heartbeat names a push consumer")
    assert verdict(90, late) == ("undetermined", passed + "the offset may be that of a reset")
    assert verdict(6, finished(o5=22)) == ("undetermined", passed + "the offset may be that of a reset")
    assert verdict(8, finished(o5=22, o7=9)) == ("undetermined", passed + "the log may lack deliveries")
    twice = [*late, *(each | {"ts": at(60), "record_id": "again"} for each in late)]
    assert verdict(7, twice) == ("undetermined", passed + "the log may lack deliveries")
    begun_later = finished(o5=22, o6=9)
    assert verdict(7, begun_later) == ("undetermined", passed + "the log may lack deliveries")
    old = [each | {"store_ts": at(-51)} for each in late]
    assert verdict(7, old) == ("undetermined", passed + "it may have exceeded consumeTimeout")
    unknown = [each | {"store_ts": None} for each in late]
    assert verdict(7, unknown) == ("undetermined", passed + "the log may lack deliveries")
    orderly = [each | {"orderly": True, "status": "SUCCESS"} for each in old]
    assert verdict(7, orderly)[0] == "differ", "only a concurrent client sends back what takes too long"


def test_a_message_that_any_client_finished_is_not_lost() -> None:
    late = finished(o4=0.5, o5=22, o6=9)
    assert verdict(7, [*late, late[1] | {"client_id": "c2", "ts": at(8), "record_id": "other"}]) == ("agree", ALL_DONE)
    failed = late[1] | {"status": "RECONSUME_LATER", "ts": at(8), "record_id": "failed"}
    assert verdict(7, [failed, *late]) == ("agree", ALL_DONE), "it was sent back, and is another message"


def test_an_orderly_listener_finishes_a_message_by_its_success() -> None:
    orderly = [each | {"orderly": True} for each in finished(o4=0.5, o5=8, o6=9)]
    first, message, following = orderly
    again = message | {"status": "SUSPEND_CURRENT_QUEUE_A_MOMENT"}
    log = [first, again, message | {"ts": at(22), "record_id": "later", "reconsume_times": 1}, following]
    assert verdict(7, log) == ("differ", "the commit passed offset 5, which finished 12.0 s later")
    assert verdict(5, log[1:]) == ("agree", LOWEST)


def test_a_message_that_was_delivered_again_had_not_finished() -> None:
    again = [*finished(o5=3), *finished(o5=22)]
    assert verdict(5, [*again, *finished(o6=4)]) == ("agree", LOWEST)


def test_a_client_that_finished_nothing_commits_the_offset_at_which_it_started() -> None:
    start = {"kind": "QUERY", "ts": at(2), "answer_offset": 40, "record_id": "query"}

    def last(offset: int, **differs: Any) -> tuple[str, str]:
        (row,) = judged([start | differs, {"commit_offset": offset}], finished(o5=3))
        return row["judgement"], row["reason"]

    assert last(40) == ("agree", "it is the offset at which the client started")
    assert last(41) == last(40, client_id="c2") == last(40, ts=at(11)) == ("undetermined", BEYOND_LOG)
    assert last(5)[0] == "undetermined"


def test_only_commits_that_a_broker_stored_count() -> None:
    late = finished(o4=0.5, o5=22, o6=9)
    refused = {"commit_offset": 7, "response_code": 1}
    assert judged([refused, {"kind": "QUERY"}], late) == []
    assert judged([], []) == []


def test_the_evidence_of_a_differing_commit() -> None:
    log, commits = finished(o5=22, o6=9), [{"commit_offset": 7}, {"commit_offset": 5, "record_id": "right"}]
    found = committed_offsets(
        rows("silver.offset_commit", COMMIT, commits),
        with_queue_topic(rows("silver.consume", {}, log)),
        pl.DataFrame([PUSH], CONSUMER),
    )
    assert found.schema == TYPES
    (row,) = stored_rows(found).rows(named=True)
    assert (row["unfinished_offset"], row["finished_ts"], row["consume_record_id"]) == (5, at(22), "o5")
    assert (row["record_id"], row["source"], row["topic"]) == ("commit", "commit", "t")


def test_a_retry_is_of_the_retry_topic() -> None:
    retried = [each | {"queue_topic": None, "reconsume_times": 1} for each in finished(o4=0.5, o5=22, o6=9)]
    assert verdict(7, retried, topic="%RETRY%g")[0] == "differ"
    assert verdict(7, retried) == ("undetermined", NO_LOG)


@pytest.mark.parametrize("seed", range(40))
def test_the_commits_of_a_process_queue_agree_and_no_others(seed: int) -> None:
    """Random interleavings of pulls, listeners' ends and commits, by core's classes.

    All messages finish in the end, so the log is complete: no other offset of it agrees.
    """
    chance, queue = random.Random(seed), ("t", "b", 0)
    process_queue, store = ProcessQueue(), RemoteBrokerOffsetStore[tuple[str, str, int]]()
    first = chance.randint(0, 3)
    pulled, waiting, log, commits = first, [], [], []
    store.update_offset(queue, first, False)
    for second in range(1, 400, 4):  # more than the precision of clocks
        step = chance.random()
        if step < 0.3 and pulled < first + 30:
            batch = [PulledMessage(pulled + n, 10) for n in range(chance.randint(1, 4))]
            process_queue.put_message(batch)
            waiting += batch
            pulled += len(batch)
        elif step < 0.7 and waiting:
            done = [waiting.pop(chance.randrange(len(waiting))) for _ in range(min(len(waiting), chance.randint(1, 2)))]
            offset = process_queue.remove_message(done)
            if offset >= 0:
                store.update_offset(queue, offset, True)
            log += [(message.queue_offset, second) for message in done]
        else:
            commits.append((second, store.offset_table[queue]))
    log += [(message.queue_offset, 500) for message in waiting]
    late = [DONE | {"queue_offset": offset, "ts": at(s), "record_id": f"o{offset}"} for offset, s in log]
    requests = [
        {"commit_offset": offset, "ts": at(second), "record_id": f"{second} {offset} {offset == right}"}
        for second, right in commits
        for offset in range(max(first, 1), pulled + 1)
        if right > 0
    ]
    found = judged(requests, [each | {"store_ts": at(490)} for each in late])
    assert len(found) == len(requests)
    for row in found:
        assert (row["judgement"] == "agree") == row["record_id"].endswith("True"), row
    # Those that pass a message differ, or the log does not show that the message before them had finished.
    second_of = {(offset, second) for offset, second in log}
    for row in found:
        seconds = (row["ts"] - at(0)).total_seconds()
        passes = any(offset < row["committed_offset"] and end > seconds for offset, end in second_of)
        assert (row["unfinished_offset"] is not None) == passes


@pytest.mark.parametrize("seed", range(20))
def test_the_commits_of_an_orderly_process_queue_agree(seed: int) -> None:
    """Random successes and suspensions of an orderly listener, by core's classes."""
    chance, queue = random.Random(seed), ("t", "b", 0)
    process_queue, store = ProcessQueue(), RemoteBrokerOffsetStore[tuple[str, str, int]]()
    process_queue.put_message([PulledMessage(n, 10) for n in range(20)])
    log, commits = [], []
    for second in range(1, 400, 4):
        step = chance.random()
        if step < 0.4:
            commits.append((second, store.offset_table.get(queue, 0)))
        elif taken := process_queue.take_messages(chance.randint(1, 3)):
            is_done = step < 0.8
            status = "SUCCESS" if is_done else "SUSPEND_CURRENT_QUEUE_A_MOMENT"
            log += [(message.queue_offset, second, status) for message in taken]
            if is_done:
                store.update_offset(queue, process_queue.commit(), False)
            else:
                process_queue.make_message_to_consume_again(taken)
    log += [(offset, 500, "SUCCESS") for offset in process_queue.tree()]
    tried = [
        DONE | {"orderly": True, "queue_offset": offset, "ts": at(s), "status": status, "record_id": f"{offset} {s}"}
        for offset, s, status in log
    ]
    requests = [
        {"commit_offset": offset, "ts": at(second), "record_id": f"{second} {offset} {offset == right}"}
        for second, right in commits
        for offset in range(1, 21)
        if right > 0
    ]
    found = judged(requests, tried)
    assert len(found) == len(requests)
    for row in found:
        assert (row["judgement"] == "agree") == row["record_id"].endswith("True"), row


MEMORY = QUEUE | {"ts": at(10), "source": "running_info", "head_offset": 5, "memory_offset": 5, "record_id": "poll"}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, ["agree"]),
        ({"memory_offset": 3}, ["agree"]),  # messages finished between the two reads, or others are filtered
        ({"memory_offset": 6}, ["differ"]),
        ({"memory_offset": 6, "source": "assignment"}, ["undetermined"]),
        ({"memory_offset": -1}, []),
        ({"memory_offset": None}, []),
        ({"head_offset": None}, []),
        ({"source": "pull", "memory_offset": 6}, []),
        ({"client_id": "c2", "memory_offset": 6}, []),  # no push consumer
    ],
)
def test_the_offset_in_memory_is_not_above_the_cache(changes: Row, expected: list[str]) -> None:
    flow = pl.DataFrame([MEMORY | changes], FLOW)
    found = offsets_in_memory(flow, pl.DataFrame([PUSH], CONSUMER))
    assert found["judgement"].to_list() == expected
    assert found.schema == TYPES
    assert len(stored_rows(found)) == len([each for each in expected if each != "agree"])
