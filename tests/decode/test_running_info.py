"""Answers of clients of 4.9.7 and 5.3.3 to GET_CONSUMER_RUNNING_INFO, and of brokers about their groups."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqreplay.decode.assignments import decode_assignment
from mqreplay.decode.body import body_of
from mqreplay.decode.consume_stats import decode_consume_stats
from mqreplay.decode.consumer_connections import decode_consumer_connection
from mqreplay.decode.kinds import KINDS
from mqreplay.decode.running_info import running_info_of
from mqreplay.words.errors import DecodeError

DATA = Path(__file__).parent / "data"
POP_LINES = (DATA / "pop_running_info.jsonl").read_bytes().splitlines()  # of 5.3.3
LINES = [line for line in (DATA / "assignments.jsonl").read_bytes().splitlines() if b"running_info" in line]


def answers(group: str) -> list[dict[str, Any]]:
    """The rows of a group's clients that answered: of 4.9.7, then of 5.3.3."""
    found = [decode_assignment(line) for line in LINES]
    return [row for row in found if row["consumer_group"] == group and row["error"] is None]


def test_a_client_says_which_queues_it_holds() -> None:
    rows = answers("avg")
    assert len(rows) == 2
    for row in rows:
        assert [queue[:3] for queue in row["queues"]] == [("%RETRY%avg", "br", 0), *(("t1", "br", i) for i in range(4))]
        for _, _, _, dropped, locked, pull_from, offset, cached, first, last, pulled in row["queues"]:
            assert (dropped, locked, pull_from, cached, first, last) == (False, True, None, 0, None, None)
            assert offset >= 0
            assert 0 < row["ts"] - pulled < 20_000


def test_a_client_says_its_strategy_settings_and_subscriptions() -> None:
    for row, version in zip(answers("avg"), ("V4_9_7", "V5_3_3"), strict=True):
        assert (row["strategy"], row["message_model"]) == ("AVG", "CLUSTERING")
        assert (row["consume_type"], row["consume_from_where"]) == ("CONSUME_PASSIVELY", "CONSUME_FROM_LAST_OFFSET")
        assert [each[:3] for each in row["subscriptions"]] == [("%RETRY%avg", "*", "TAG"), ("t1", "A || B", "TAG")]
        assert row["properties"]["PROP_CLIENT_VERSION"] == version
        assert row["properties"]["pullBatchSize"] == "32"
        assert not any("@" in text for text in row["properties"].values())
    assert [row["strategy"] for row in answers("near")] == ["MACHINE_ROOM_NEARBY"] * 2


def test_a_pull_consumer_that_names_no_queue_does_not_say_what_it_holds() -> None:
    (row,) = answers("lite")
    assert (row["consume_type"], row["queues"], row["error"]) == ("CONSUME_ACTIVELY", None, None)


def test_queues_of_pop_are_shared_and_not_held() -> None:
    rows = {row["consumer_group"]: row for row in map(decode_assignment, POP_LINES)}
    pop, small, pull = (rows[group] for group in ("r-pop", "r-small", "r-cr0"))
    assert {row["properties"]["clientRebalance"] for row in rows.values()} == {"false"}
    assert [queue[:3] for queue in pop["queues"]] == [("%RETRY%r-pop", "ba", 0)]
    assert [queue[:5] for queue in pop["pop_queues"]] == [("t-rem", name, -1, False, 0) for name in ("ba", "bb")]
    assert all(0 < pop["ts"] - queue[5] < 20_000 for queue in pop["pop_queues"])
    # A client that has POP queues alone: which queues it consumes is not known.
    assert (small["queues"], {queue[:3] for queue in small["pop_queues"]}) == (
        None,
        {("t-small", name, -1) for name in ("ba", "bb")},
    )
    # A broker assigned queues to it, but in mode PULL.
    assert ({queue[0] for queue in pull["queues"]}, pull["pop_queues"]) == ({"t-rem", "%RETRY%r-cr0"}, [])
    assert [row["pop_queues"] for row in answers("avg")] == [None, []]


def test_a_client_that_does_not_answer_has_an_error_and_no_queues() -> None:
    silent = [row for row in map(decode_assignment, LINES) if row["error"]]
    assert [row["error"] for row in silent] == ["The Consumer <avg> <nobody@1> not online"] * 2
    assert all(row["queues"] is None and row["response_code"] == 1 for row in silent)
    base = {"ts": 1795472186349, "client_id": "c", "consumer_group": "g", "source": "running_info"}
    for fields, error in (
        ({"error": "timeout after 3 s"}, "timeout after 3 s"),
        ({"response_code": 205, "remark": None}, "response code 205"),
        ({"response_code": 0}, "no answer"),
    ):
        row = decode_assignment(json.dumps(base | fields).encode())
        assert (row["error"], row["queues"]) == (error, None)


def test_a_hook_without_queues_is_refused() -> None:
    line = {"ts": 1795472186349, "client_id": "c", "consumer_group": "g"}
    for source in ({}, {"source": "assignment"}, {"source": "client_log"}):
        with pytest.raises(DecodeError, match="missing_field: queues"):
            decode_assignment(json.dumps(line | source).encode())
    with pytest.raises(DecodeError, match="unknown_kind"):
        decode_assignment(json.dumps(line | {"source": "hearsay", "queues": []}).encode())


def test_queues_may_be_keyed_by_the_text_of_an_object() -> None:
    text = '{"brokerName":"b","queueId":1,"topic":"t"}'
    for table in ({text: {"commitOffset": 5}}, {(("brokerName", "b"), ("queueId", 1), ("topic", "t")): {}}):
        assert running_info_of({"mqTable": table}).queues[0][:3] == ("t", "b", 1)
    with pytest.raises(DecodeError, match="duplicate_key"):
        running_info_of({"mqTable": {text: {}, text.replace(",", ", "): {}}})


def test_cached_messages_have_their_first_and_last_offset() -> None:
    state = {"cachedMsgCount": 2, "cachedMsgMinOffset": 7, "cachedMsgMaxOffset": 8, "commitOffset": 7, "droped": True}
    mq = (("brokerName", "b"), ("queueId", 1), ("topic", "t"))
    assert running_info_of({"mqTable": {mq: state}}).queues[0][3:] == (True, False, None, 7, 2, 7, 8, None)


def test_a_broker_says_who_is_connected() -> None:
    rows = [
        decode_consumer_connection(line) for line in (DATA / "consumer_connections.jsonl").read_bytes().splitlines()
    ]
    online = [row for row in rows if row["connections"] is not None]
    assert [row["connections"][0][::3] for row in online] == [("10.9.0.1@a1", 407), ("10.9.0.1@a1", 479)]
    assert all(row["subscriptions"][1][:2] == ("t1", "A || B") for row in online)
    gone = [row for row in rows if row["connections"] is None]
    assert [(row["response_code"], row["subscriptions"]) for row in gone] == [(206, None)] * 2


def test_a_broker_says_how_far_a_group_is() -> None:
    rows = [decode_consume_stats(line) for line in (DATA / "consume_stats.jsonl").read_bytes().splitlines()]
    assert [bool(row["offsets"]) for row in rows] == [True, False, True, False]
    for row in rows:
        for topic, broker_name, _, broker_offset, consumer_offset, stored in row["offsets"]:
            assert broker_name == "br"
            assert broker_offset >= consumer_offset >= 0
            assert (stored is None) == (topic == "%RETRY%avg")


texts = st.sampled_from(
    ["mqTable", "properties", "subscriptionSet", "topic", "queueId", "brokerName", "commitOffset", "x"]
)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=8,
)


@given(st.sampled_from(LINES), st.data())
def test_any_value_anywhere_in_a_body_is_taken_or_refused(line: bytes, data: st.DataObject) -> None:
    record = json.loads(line)
    body = body_of(record, "body")
    if body is None:
        return
    field = data.draw(st.sampled_from(sorted(map(str, body))))
    with suppress(DecodeError):
        running_info_of({**body, field: data.draw(values)})


@given(st.sampled_from(["assignments", "consumer_connections", "consume_stats"]), st.data())
def test_any_body_is_taken_or_refused(stem: str, data: st.DataObject) -> None:
    line = json.loads((DATA / f"{stem}.jsonl").read_bytes().splitlines()[-2])
    body = data.draw(values)
    line["body"] = json.dumps(body) if data.draw(st.booleans()) else body
    with suppress(DecodeError):
        KINDS[stem].decode(json.dumps(line).encode())


def test_a_client_says_how_far_its_listener_is() -> None:
    for row in answers("avg"):
        assert [each[:3] for each in row["listeners"]] == [each[:3] for each in row["queues"]]
        for _, _, _, mib, taken, first, finished in row["listeners"]:
            assert (mib, taken, first) == (0, 0, None)
            assert 0 < row["ts"] - finished < 3_600_000
    mq = (("brokerName", "b"), ("queueId", 1), ("topic", "t"))
    state = {"cachedMsgCount": 2, "cachedMsgSizeInMiB": 3, "transactionMsgCount": 1, "transactionMsgMinOffset": 7}
    (listener,) = running_info_of({"mqTable": {mq: state}}).listeners or []
    assert listener == ("t", "b", 1, 3, 1, 7, None)
