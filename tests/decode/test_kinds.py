"""Every kind of JSONL line: real ones, what each gives, and what is refused by name."""

from __future__ import annotations

import json
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from each_case import for_each
from mqreplay.decode.kinds import KINDS
from mqreplay.decode.text import refuse_many
from mqreplay.words.errors import DecodeError
from reliability.fuzz_run import Target, fuzz

DATA = Path(__file__).parent / "data"
TS = 1795228808477
PYTHON = {"string": str, "boolean": bool, "int": int, "bigint": int, "double": float, "timestamp_ms": int}


@cache
def lines(stem: str) -> tuple[bytes, ...]:
    return tuple((DATA / f"{stem}.jsonl").read_bytes().splitlines(keepends=True))


def changed(stem: str, without: tuple[str, ...] = (), place: int = 0, **fields: Any) -> bytes:
    """A real line of a kind, with other fields."""
    record = json.loads(lines(stem)[place]) | fields
    return json.dumps({name: value for name, value in record.items() if name not in without}).encode()


def refused(stem: str, line: bytes) -> DecodeError:
    with pytest.raises(DecodeError) as caught:
        KINDS[stem].decode(line)
    return caught.value


@for_each(KINDS)
def test_real_lines_give_the_columns_they_promise(stem: str) -> None:
    kind = KINDS[stem]
    assert lines(stem)
    assert set(kind.required) <= set(kind.columns)
    assert kind.columns[kind.time] == "timestamp_ms"
    for line in lines(stem):
        row = kind.decode(line)
        assert set(row) == set(kind.columns)
        assert all(row[name] is not None for name in kind.required)
        for name, value in row.items():
            python = PYTHON.get(kind.columns[name], list if kind.columns[name].startswith("array") else dict)
            assert value is None or type(value) is python, name


@for_each(KINDS)
def test_a_later_recorders_fields_are_ignored(stem: str) -> None:
    assert KINDS[stem].decode(changed(stem, x_new={"a": [1]})) == KINDS[stem].decode(lines(stem)[0])


# These are read from the request's body, and have cases of their own below.
OF_BODY = {
    "lock_requests": ("client_id", "consumer_group", "mq_set"),
    "pop_assignments": ("client_id", "consumer_group", "topic"),
    "other_requests": ("consumer_group", "commitlog_offset", "delay_level"),
}
NEEDED = [
    (kind.stem, name) for kind in KINDS.values() for name in kind.required if name not in OF_BODY.get(kind.stem, ())
]


@for_each(NEEDED)
def test_a_line_without_what_it_needs_is_refused(stem: str, name: str) -> None:
    for line in (changed(stem, without=(name,)), changed(stem, **{name: None})):
        error = refused(stem, line)
        assert (error.code, name in error.detail) == ("missing_field", True)


@for_each(KINDS)
def test_a_torn_line_is_refused(stem: str) -> None:
    line = lines(stem)[0].rstrip()
    for end in range(1, len(line)):
        assert refused(stem, line[:end]).code == "torn", line[:end]


@given(st.sampled_from(sorted(KINDS)), st.data())
def test_flipped_bytes_raise_nothing_but_our_error(stem: str, data: st.DataObject) -> None:
    damaged = bytearray(data.draw(st.sampled_from(lines(stem))))
    for _ in range(data.draw(st.integers(1, 3))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    with suppress(DecodeError):
        row = KINDS[stem].decode(bytes(damaged))
        assert set(row) == set(KINDS[stem].columns)
        json.dumps(str(row)).encode("utf-8")


any_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@given(st.sampled_from(sorted(KINDS)), st.data())
def test_any_value_in_any_field_is_taken_or_refused(stem: str, data: st.DataObject) -> None:
    record = json.loads(data.draw(st.sampled_from(lines(stem))))
    record[data.draw(st.sampled_from(sorted(record)))] = data.draw(any_json)
    with suppress(DecodeError):
        KINDS[stem].decode(json.dumps(record).encode())


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"queue_id": True}, "wrong_type"),
        ({"queue_id": "0"}, "wrong_type"),
        ({"queue_id": 0.0}, "wrong_type"),
        ({"queue_id": -1}, "bad_number"),
        ({"queue_id": 2**31}, "bad_number"),
        ({"queue_offset": 2**63}, "bad_number"),
        ({"queue_offset": float("nan")}, "bad_number"),
        ({"queue_offset": float("inf")}, "bad_number"),
        ({"opaque": 2**31}, "bad_number"),
        ({"client_id": 5}, "wrong_type"),
        ({"request_ts": 0}, "bad_time"),
        ({"request_ts": TS // 1000}, "bad_time"),
        ({"request_ts": TS * 1000}, "bad_time"),
        ({"request_ts": -TS}, "bad_time"),
        ({"request_ts": TS + 0.5}, "wrong_type"),
        ({"request_ts": "2026-11-21"}, "wrong_type"),
        ({"response_ts": 946684799999}, "bad_time"),
        ({"response_ts": 4102444800001}, "bad_time"),
        ({"first_born_ts": 1}, "bad_time"),
    ],
)
def test_a_pull_of_the_wrong_type_or_size_is_refused(fields: dict[str, Any], code: str) -> None:
    error = refused("pull_log", changed("pull_log", **fields))
    assert error.code == code
    assert code == "bad_number" or next(iter(fields)) in error.detail


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"", "torn"),
        (b"\n", "torn"),
        (b"[]", "wrong_type"),
        (b"5", "wrong_type"),
        (b"null", "wrong_type"),
        (b'{"a":1}{"b":2}', "bad_syntax"),
        (b'{"a":1,}', "bad_syntax"),
        (b"{'a':1}", "bad_syntax"),
        (b"\x00\x00\x00", "bad_syntax"),
        (b'{"a":"\x00"}', "bad_syntax"),
        (b'{"a":"\xff"}', "not_utf8"),
        (b'\xef\xbb\xbf{"a":1}', "bom"),
        (b'{"a":1,"a":1}', "duplicate_key"),
        (b'{"a":{"b":1,"b":1}}', "duplicate_key"),
        (b'{"a":"\\ud800"}', "bad_string"),
        (b'{"a":{"\\udc00":1}}', "bad_string"),
        (b'{"a":-Infinity}', "bad_number"),
        (b'{"a":' + b"9" * 5000 + b"}", "bad_number"),
        (b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}", "too_deep"),
    ],
)
def test_a_line_that_is_no_object_is_refused(line: bytes, code: str) -> None:
    assert refused("pull_log", line).code == code


@pytest.mark.parametrize("deep", [99, 100, 500])
def test_a_line_is_so_deep_at_most(deep: int) -> None:
    line = changed("pull_log", x_new=0).replace(b'"x_new": 0', b'"x_new": ' + b"[" * deep + b"]" * deep)
    if deep == 99:
        assert KINDS["pull_log"].decode(line) == KINDS["pull_log"].decode(lines("pull_log")[0])
    else:
        assert refused("pull_log", line).code == "too_deep"


MOST = 16 * 1024 * 1024  # bytes of a line
RECORD = b'{"ts":1795228799803,"topic":"t","client_id":"c","consumer_group":"g",'


@pytest.mark.alone
@pytest.mark.parametrize(
    ("stem", "begin", "unit", "end", "code"),
    [
        ("assignments", b'"x":[', b"{},", b"{}]}", "too_large"),
        ("assignments", b'"x":[', b'{"a":{}},', b"{}]}", "too_large"),
        ("assignments", b'"queues":[', b"[],", b"[]]}", "too_large"),
        ("assignments", b'"x":{', b'"aaaaa":1,', b'"b":1}}', "too_large"),
        ("assignments", b'"x":[', b'"ab",', b"1]}", "missing_field"),
        ("assignments", b'"client_id":"', b"\x7f", b'"}', "duplicate_key"),
        ("topic_stats", b'"body":"', b"[],", b'[]"}', "too_large"),
        ("topic_stats", b'"body":"[', b"1,", b'1]"}', "too_large"),
        ("topic_stats", b'"body":"[1', b" ", b']"}', "wrong_type"),
    ],
)
def test_a_line_of_16_mib_takes_no_more_time_and_memory_than_any(
    stem: str, begin: bytes, unit: bytes, end: bytes, code: str
) -> None:
    line = RECORD + begin + unit * ((MOST - 1000) // len(unit)) + end

    def run(_: bytes) -> None:
        assert refused(stem, line).code == code

    assert fuzz([Target(stem, (b"",), run, ())], inputs=1, seed=0).failures == []


def test_a_body_as_large_as_brokers_send_them_is_not_refused() -> None:
    entry = '{{"brokerName":"broker-a","queueId":%d,"topic":"t"}:{"lastUpdateTimestamp":0,"maxOffset":9,"minOffset":2}}'
    table = ",".join((entry % n)[1:-1] for n in range(60_000))
    refuse_many(json.dumps({"ts": TS, "topic": "t", "body": '{"offsetTable":{' + table + "}}"}))


OF_MASTER = '{"master":true,"masterCommitLogMaxOffset":1,"haConnectionInfo":'
QUEUE_HELD = {"topic": "t", "broker_name": "b", "queue_id": 0}


@pytest.mark.parametrize(
    ("stem", "fields", "code"),
    [
        ("offset_commits", {"kind": "DELETE"}, "unknown_kind"),
        ("offset_commits", {"kind": "UPDATE", "commit_offset": None}, "missing_field"),
        ("lowered_offsets", {"stored_offset": None}, "missing_field"),
        ("broker_events", {"event": None}, "missing_field"),
        ("server_requests", {"client_id": None}, "missing_field"),
        ("heartbeats", {"kind": "BEAT"}, "unknown_kind"),
        ("heartbeats", {"kind": "HEART_BEAT", "body": []}, "wrong_type"),
        ("heartbeats", {"kind": "HEART_BEAT", "body": "{"}, "torn"),
        ("heartbeats", {"kind": "HEART_BEAT", "body": {"consumerDataSet": 5}}, "wrong_type"),
        ("heartbeats", {"kind": "HEART_BEAT", "body": {"consumerDataSet": [{}]}}, "missing_field"),
        ("consumer_lists", {"cid_all": [1]}, "wrong_type"),
        ("consumer_lists", {"cid_all": "c"}, "wrong_type"),
        ("consumer_lists", {"cid_all": None, "body": "["}, "torn"),
        ("routes", {"body": '{"queueDatas":[{"brokerName":"b"}]}'}, "missing_field"),
        (
            "routes",
            {"body": '{"brokerDatas":[{"brokerName":"b","brokerAddrs":{0:"a","0":"b"}}]}'},
            "duplicate_key",
        ),
        ("routes", {"body": '{"brokerDatas":[{"brokerName":"b","brokerAddrs":{-1:"a"}}]}'}, "bad_number"),
        ("routes", {"body": '{"brokerDatas":[{"brokerName":"b","brokerAddrs":{"x":"a"}}]}'}, "wrong_type"),
        ("routes", {"body": '{"brokerDatas":[{"brokerName":"b","brokerAddrs":{0:1}}]}'}, "wrong_type"),
        ("rebalance_log", {"mq_all": [["b"]]}, "wrong_type"),
        ("rebalance_log", {"mq_all": [["b", True]]}, "wrong_type"),
        ("rebalance_log", {"mq_all": [["b", -1]]}, "bad_number"),
        ("rebalance_log", {"mq_divided": {"b": 1}}, "wrong_type"),
        ("assignments", {"queues": {}}, "wrong_type"),
        ("assignments", {"queues": [[]]}, "wrong_type"),
        ("assignments", {"queues": [{"topic": "t", "broker_name": "b"}]}, "missing_field"),
        ("assignments", {"queues": [QUEUE_HELD | {"last_pull_ts": 2**63 - 1}]}, "bad_time"),
        ("assignments", {"queues": [QUEUE_HELD | {"last_pull_ts": -2}]}, "bad_time"),
        ("broker_runtime", {"table": {"commitLogMaxOffset": "x"}}, "bad_number"),
        ("broker_runtime", {"table": {"commitLogMaxOffset": 5}}, "wrong_type"),
        ("broker_runtime", {"table": {"bootTimestamp": "5"}}, "bad_time"),
        ("ha_status", {"body": "{}"}, "missing_field"),
        ("ha_status", {"body": '{"master":true}'}, "missing_field"),
        ("ha_status", {"body": OF_MASTER + "[{}]}"}, "missing_field"),
        ("ha_status", {"body": OF_MASTER + "{}}"}, "wrong_type"),
        ("ha_status", {"body": '{"master":false}'}, "missing_field"),
        ("ha_status", {"body": '{"master":false,"haClientRuntimeInfo":{"lastReadTimestamp":-9}}'}, "bad_time"),
        ("cluster_info", {"body": '{"brokerAddrTable":[]}'}, "wrong_type"),
        ("cluster_info", {"body": '{"clusterAddrTable":{"c":[1]}}'}, "wrong_type"),
        ("lock_requests", {"kind": "LOCK"}, "unknown_kind"),
        ("lock_requests", {"request": None}, "missing_field"),
        ("lock_requests", {"request": '{"clientId":"c","consumerGroup":"g","mqSet":[{}]}'}, "missing_field"),
        ("lock_requests", {"request": '{"clientId":"c"}'}, "missing_field"),
        ("other_requests", {"request_code": 37}, "unknown_kind"),
        ("other_requests", {"header": None}, "missing_field"),
        ("other_requests", {"header": {"group": "g", "offset": 1}}, "missing_field"),
        ("other_requests", {"header": {"group": "g", "offset": "1x", "delayLevel": 0}}, "wrong_type"),
        ("other_requests", {"header": {"group": "g", "offset": 1, "delayLevel": 2**31}}, "bad_number"),
        ("other_requests", {"header": {"group": "g", "offset": 1, "delayLevel": 0, "unitMode": "no"}}, "wrong_type"),
        ("topic_stats", {"body": "{}"}, "missing_field"),
        ("topic_stats", {"body": '{"offsetTable":{"q":1}}'}, "bad_key"),
        ("server_requests", {"ext": {"group": 5}}, "wrong_type"),
        ("server_requests", {"request_code": 220, "body": "{"}, "torn"),
    ],
)
def test_what_is_wrong_inside_is_named(stem: str, fields: dict[str, Any], code: str) -> None:
    assert refused(stem, changed(stem, **fields)).code == code


@pytest.mark.parametrize(
    ("stem", "fields", "code"),
    [
        ("pop_log", {"msg_offset_info": "0 1"}, "bad_receipt"),
        ("pop_log", {"start_offset_info": "0 1 x"}, "bad_receipt"),
        ("pop_log", {"messages": [{}]}, "missing_field"),
        ("pop_acks", {"kind": "NACK"}, "unknown_kind"),
        ("pop_acks", {"extra_info": "5 6"}, "bad_receipt"),
        ("pop_acks", {"kind": "BATCH_ACK"}, "missing_field"),
        ("pop_acks", {"kind": "BATCH_ACK", "body": {"acks": [{"c": "g", "t": "t", "r": "0", "b": "?"}]}}, "wrong_type"),
        ("pop_assignments", {"request": "{}"}, "missing_field"),
        ("pop_assignments", {"response": {"messageQueueAssignments": [{}]}}, "wrong_type"),
    ],
)
def test_what_is_wrong_in_a_record_of_pop_is_named(stem: str, fields: dict[str, Any], code: str) -> None:
    assert refused(stem, changed(stem, **fields)).code == code
