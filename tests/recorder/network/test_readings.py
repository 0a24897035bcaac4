"""Readings of answers: their lines, and that no bytes end the recorder."""

from __future__ import annotations

import random

import pytest

from bench.simulated_cluster import SimulatedCluster
from mqreplay.recorder.network.offsets import OffsetReader
from mqreplay.recorder.network.polls import POLLS, identity, reading
from mqreplay.recorder.network.queue_polls import queue_reading
from mqreplay.recorder.network.readings import silence
from mqreplay.recorder.network.schedule import Target
from mqreplay.recorder.remoting.connection import CallFailed
from mqreplay.recorder.remoting.frames import Answer
from mqreplay.words.errors import DecodeError

BROKER = ("b-0", 0)
KINDS = sorted(POLLS.keys() - {"offsets"})
SEED, CASES = 20261123, 2000


def target(kind: str) -> Target:
    subject = "t-0" if kind in ("route", "topic_offsets") else "g-0"
    broker = None if kind in ("cluster_info", "topic_list", "route", "name_server_config") else BROKER
    return Target(kind, "h:1", broker, subject, "10.0.0.0@1000")


def answer_to(kind: str) -> Answer:
    cluster, asked = SimulatedCluster(), target(kind)
    request = POLLS[kind].request(asked)
    fields = dict(request.fields)
    server = cluster.brokers[0]
    answer = (
        cluster.of_name_server(request.code, fields)
        if asked.broker is None
        else cluster.of_broker(server, request.code, fields)
    )
    return Answer(answer.code, answer.remark, answer.fields, answer.body)


@pytest.mark.parametrize("kind", KINDS)
def test_an_answer_is_read(kind: str) -> None:
    found = reading(target(kind), answer_to(kind))
    assert found.error is None
    assert not found.is_silence
    assert "error" not in found.fields
    assert reading(target(kind), answer_to(kind)).signature == found.signature


@pytest.mark.parametrize("kind", KINDS)
def test_damaged_answers_are_errors_or_values_and_never_end_the_recorder(kind: str) -> None:
    chance, answer = random.Random(SEED), answer_to(kind)
    for _ in range(CASES):
        body = bytearray(answer.body)
        for _ in range(chance.randrange(1, 4)):
            at = chance.randrange(len(body) + 1)
            match chance.randrange(4):
                case 0:
                    del body[at : at + chance.randrange(20)]
                case 1:
                    body[at:at] = chance.choice((b"{", b"}", b'"', b"null", b"[1]", b"-9e999", b"\xff\xfe", b"\\ud800"))
                case 2:
                    body[at : at + 1] = bytes([chance.randrange(256)])
                case _:
                    body = body[:at]
        found = reading(target(kind), Answer(0, None, {}, bytes(body)))
        assert (found.error is None) == ("error" not in found.fields)
        assert isinstance(hash(found.signature), int)


def test_damaged_offset_tables_are_refused_or_read() -> None:
    chance, whole = random.Random(SEED), SimulatedCluster(groups=3)._offsets()
    reader = OffsetReader()
    for _ in range(CASES):
        body = bytearray(whole)
        for _ in range(chance.randrange(1, 4)):
            at = chance.randrange(len(body))
            body[at : at + chance.randrange(3)] = chance.choice((b"", b"9", b'"', b"{", b"}", b",", b":", b"\xff"))
        try:
            table, _ = reader.read(bytes(body))
        except DecodeError:
            continue
        assert all(type(o) is int and type(q) is int for queues in table.values() for q, o in queues.items())


def test_error_answers() -> None:
    nobody = Answer(1, "no consumer for this group, g-0", {}, b"")
    assert reading(target("members"), nobody).fact == frozenset()
    assert reading(target("members"), nobody).error is None
    unknown = Answer(17, "No topic route info", {}, b"")
    assert reading(target("route"), unknown)[:4] == (
        {"response_code": 17, "remark": "No topic route info"},
        ("code", 17),
        None,
        None,
    )
    gone = reading(target("running_info"), Answer(1, "The Consumer <g> <c> not online", {}, b""))
    assert gone.error == gone.fields["error"] == "The Consumer <g> <c> not online"
    for kind in KINDS:
        denied = reading(target(kind), Answer(16, "no permission", {}, b""))
        assert denied.error == "access denied: no permission"
        silent = silence(CallFailed("timeout", "h:1 did not answer"))
        assert silent.is_silence
        assert silent.error == "h:1 did not answer"
    assert reading(target("runtime"), Answer(2, None, {}, b"")).error == "response code 2"


def test_offsets_of_queues_asked_one_by_one() -> None:
    most = {0: Answer(0, None, {"offset": "9"}, b""), 1: Answer(0, None, {"offset": "-1"}, b"")}
    least = {0: Answer(0, None, {"offset": "2"}, b"")}
    found = queue_reading(most, least)
    assert found.fields["offsets"] == [
        {"queue_id": 0, "min_offset": 2, "max_offset": 9},
        {"queue_id": 1, "min_offset": None, "max_offset": -1},
    ]
    assert found.fact == {0: 9, 1: -1}
    assert found.is_kept, "a smallest offset is asked once in ten minutes"
    assert not queue_reading(most, {}).is_kept
    assert queue_reading({0: Answer(0, None, {}, b"")}, {}).error == "the answer has no offset"
    assert queue_reading({0: Answer(1, "x", {}, b"")}, {}).error == "response code 1: x"


def test_a_smallest_offset_that_rises_is_a_change() -> None:
    body = b'{"offsetTable":{{"brokerName":"b","queueId":0,"topic":"t"}:{"maxOffset":9,"minOffset":%d}}}'
    before, after = (reading(target("topic_offsets"), Answer(0, None, {}, body % least)) for least in (0, 5))
    assert before.fact == after.fact == {0: 9}
    assert before.signature != after.signature


def test_a_line_names_what_was_asked() -> None:
    assert identity(target("route")) == {"namesrv_addr": "h:1", "topic": "t-0"}
    assert identity(target("runtime")) == {"broker_name": "b-0", "broker_id": 0, "broker_addr": "h:1"}
    assert identity(target("running_info")) == {
        "broker_name": "b-0",
        "broker_id": 0,
        "broker_addr": "h:1",
        "client_id": "10.0.0.0@1000",
        "source": "running_info",
        "consumer_group": "g-0",
    }
