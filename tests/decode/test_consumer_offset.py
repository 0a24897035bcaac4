"""consumerOffset.json: complete files of two versions, refused files, and no partial result."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mqreplay.core.version import BROKER_4
from mqreplay.decode.consumer_offset import decode_consumer_offset, decode_lmq_consumer_offset, split_key
from mqreplay.decode.offset_table import read_offset_table, read_table_carefully
from mqreplay.words.errors import DecodeError
from oracles.fastjson.consumer_offset import decode_consumer_offset as as_the_broker

T = TypeVar("T")
DATA = Path(__file__).parent / "data"
FILES = ["consumerOffset-4.9.7.json", "consumerOffset-5.3.3.json"]

names = st.text(alphabet='abcXYZ019-_%RETRY中é"\\\n', min_size=1, max_size=12)
tables = st.dictionaries(
    names,
    st.dictionaries(st.integers(0, 2**31 - 1), st.integers(-(2**63), 2**63 - 1), max_size=5),
    max_size=5,
)


def written(table: dict[str, dict[int, int]], pretty: bool = True, quoted: bool = False) -> str:
    """A table as fastjson writes it: pretty or compact, integer keys bare or in quotes."""
    gap, end = ("\n\t\t", "\n\t") if pretty else ("", "")
    entries = []
    for key, queues in table.items():
        ids = ",".join(f'"{q}":{o}' if quoted else f"{q}:{o}" for q, o in queues.items())
        entries.append(f"{gap}{json.dumps(key, ensure_ascii=False)}:{{{ids}{gap if ids else ''}}}")
    return "{" + ",".join(entries) + (end if entries else "") + "}"


def refused(data: bytes) -> DecodeError:
    with pytest.raises(DecodeError) as caught:
        decode_consumer_offset(data)
    return caught.value


def outcome(read: Callable[[], T]) -> T | DecodeError:
    try:
        return read()
    except DecodeError as error:
        return error


def test_a_real_file_of_4_9() -> None:
    got = decode_consumer_offset((DATA / FILES[0]).read_bytes())
    assert len(got) == 58
    assert got.other_keys == ()
    assert got.data_version_counter is None
    rows = list(zip(got.topic, got.consumer_group, got.queue_id, got.offset, strict=True))
    assert rows[:3] == [("ship-topic", "ship-hash-group", q, o) for q, o in ((0, 199), (1, 202), (2, 200))]
    assert ("%RETRY%refund-group", "refund-group", 0, 6) in rows
    assert ("grow-topic", "grow-group", 3, 11) in rows


def test_a_real_file_of_5_3_keeps_the_other_tables_aside() -> None:
    got = decode_consumer_offset((DATA / FILES[1]).read_bytes())
    assert got.other_keys == ("dataVersion", "groupTopicMap")
    assert (got.data_version_counter, got.data_version_timestamp) == (5, 1795229415028)
    assert list(zip(got.key, got.queue_id, got.offset, strict=True)) == [
        ("meter-alerts@alert-desk", 0, 88),
        ("meter-alerts@alert-desk", 1, 86),
        ("%RETRY%alert-desk@alert-desk", 0, 0),
        ("meter-readings@meter-archive", 0, 28836),
        ("%RETRY%meter-archive@meter-archive", 0, 0),
        ("%RETRY%meter-billing@meter-billing", 0, 0),
        ("meter-readings@meter-billing", 0, 28836),
    ]


@pytest.mark.parametrize(
    "text",
    [
        '{"offsetTable":{}}',
        '{\n\t"offsetTable":{}\n}',
        '{"offsetTable":{"t@g":{}}}',
        ' {"offsetTable" : { } }\r\n',
    ],
)
def test_nothing_consumed_yet(text: str) -> None:
    assert len(decode_consumer_offset(text.encode())) == 0


def test_tables_of_later_versions_are_read_and_named() -> None:
    got = decode_consumer_offset(
        b'{"pullOffsetTable":{"t@g":{0:5}},"offsetTable":{"t@g":{"0":7,"1":8}},"resetOffsetTable":{},'
        b'"x":{{"brokerName":"b","queueId":1}:[1.5,null,true,"\\u4e2d"]}}'
    )
    assert (got.queue_id, got.offset) == ([0, 1], [7, 8])
    assert got.other_keys == ("pullOffsetTable", "resetOffsetTable", "x")


def test_an_odd_data_version_is_left_out() -> None:
    got = decode_consumer_offset(b'{"dataVersion":{"counter":"5"},"offsetTable":{}}')
    assert (got.data_version_counter, got.data_version_timestamp) == (None, None)


@pytest.mark.parametrize(
    ("key", "parts"),
    [
        ("t@g", ("t", "g")),
        ("%RETRY%g@g", ("%RETRY%g", "g")),
        ("t", (None, None)),
        ("@g", (None, None)),
        ("t@", (None, None)),
        ("t@g@", (None, None)),
        ("a@b@c", (None, None)),
        ("", (None, None)),
    ],
)
def test_a_key_is_topic_at_group_or_kept_raw(key: str, parts: tuple[str | None, str | None]) -> None:
    assert split_key(key) == parts
    got = decode_consumer_offset(json.dumps({"offsetTable": {key: {"0": 1}}}).encode())
    assert (got.key, got.topic, got.consumer_group) == ([key], [parts[0]], [parts[1]])


@pytest.mark.parametrize(
    ("data", "code", "offset"),
    [
        (b"", "empty", 0),
        (b" \n\t", "empty", 0),
        (b"\x00" * 64, "nul_bytes", 0),
        (b'{"offsetTable":{}}\x00\x00', "nul_bytes", 18),
        (b'\xef\xbb\xbf{"offsetTable":{"t@g":{0:1', "torn", 29),
        (b'\xef\xbb\xbf\xef\xbb\xbf{"offsetTable":{}}', "foreign", 3),
        (b"\xef\xbb\xbf", "empty", 0),
        (b'{"offsetTable":{"\xff@g":{0:1}}}', "not_utf8", 17),
        ('{"offsetTable":{"t@g":{0:1}}}'.encode("utf-16-be"), "utf_16", 0),
        ('{"offsetTable":{"t@g":{0:1}}}'.encode("utf-16"), "utf_16", 0),
        (b'{"offsetTable":{"t@g":{0:1', "torn", 26),
        (b'{"offsetTable":{"\xe4\xb8', "torn", 17),
        (b'{"offsetTable":{}}}', "trailing_data", 18),
        (b'{"offsetTable":{}} {"offsetTable":{}}', "trailing_data", 19),
        (b'{"offsetTable":{"t@g":{0:1}},"offsetTable":{}}', "duplicate_key", 29),
        (b'{"dataVersion":{},"dataVersion":{},"offsetTable":{}}', "duplicate_key", 18),
        (b'{"offsetTable":{"t@g":{0:1},"t@g":{1:1}}}', "duplicate_key", 28),
        (b'{"offsetTable":{"t@g":{0:1,0:2}}}', "duplicate_key", 27),
        (b'{"offsetTable":{"t@g":{0:1,"0":2}}}', "duplicate_key", 27),
        (b"{}", "foreign", 0),
        (b"[]", "foreign", 0),
        (b'"offsetTable"', "foreign", 0),
        (b'{"topicConfigTable":{}}', "foreign", 0),
        (b'{"offsetTable":null}', "wrong_type", 15),
        (b'{"offsetTable":[]}', "wrong_type", 15),
        (b'{"offsetTable":{"t@g":5}}', "wrong_type", 22),
        (b'{"offsetTable":{"t@g":{0:"5"}}}', "wrong_type", 25),
        (b'{"offsetTable":{"t@g":{0:null}}}', "wrong_type", 25),
        (b'{"offsetTable":{"t@g":{0:true}}}', "wrong_type", 25),
        (b'{"offsetTable":{"t@g":{"q":5}}}', "wrong_type", 23),
        (b'{"offsetTable":{"t@g":{-1:5}}}', "bad_number", 23),
        (b'{"offsetTable":{"t@g":{2147483648:5}}}', "bad_number", 23),
        (b'{"offsetTable":{"t@g":{00:5}}}', "bad_number", 23),
        (b'{"offsetTable":{"t@g":{0:05}}}', "bad_number", 25),
        (b'{"offsetTable":{"t@g":{0:-0}}}', "bad_number", 25),
        (b'{"offsetTable":{"t@g":{0:+5}}}', "bad_number", 25),
        (b'{"offsetTable":{"t@g":{0:5.7}}}', "bad_number", 25),
        (b'{"offsetTable":{"t@g":{0:1e3}}}', "bad_number", 25),
        (b'{"offsetTable":{"t@g":{0:9223372036854775808}}}', "bad_number", 25),
        (b'{"offsetTable":{"t@g":{0:-9223372036854775809}}}', "bad_number", 25),
        (b'{"offsetTable":{"t@g":{0:' + b"9" * 5000 + b"}}}", "bad_number", 25),
        (b'{"x":' + b"9" * 5000 + b',"offsetTable":{}}', "bad_number", 5),
        (b'{"x":NaN,"offsetTable":{}}', "bad_syntax", 5),
        (b'{"x":1e999,"offsetTable":{}}', "bad_number", 5),
        (b'{"offsetTable":{t@g:{0:5}}}', "bad_key", 16),
        (b'{"offsetTable":{5:{0:5}}}', "bad_key", 16),
        (b"{'offsetTable':{}}", "bad_syntax", 1),
        (b'{"offsetTable":{"t@g":{0:5,}}}', "bad_syntax", 27),
        (b'{"offsetTable":{"t@g":{0:5},}}', "bad_key", 28),
        (b'{"offsetTable":{},}', "bad_syntax", 18),
        (b'{"offsetTable":{/*c*/}}', "bad_key", 16),
        (b'{"offsetTable":{"t\n@g":{0:5}}}', "bad_string", 18),
        (b'{"offsetTable":{"t\\q@g":{0:5}}}', "bad_string", 18),
        (b'{"offsetTable":{"t\\ud800@g":{0:5}}}', "bad_string", 16),
        (b'{"x":{{"a":[1]}:2},"offsetTable":{}}', "bad_key", 6),
        (b'{"x":' + b"[" * 100_000, "too_deep", 36),
        (b'{"x":' + b'{"a":' * 100_000, "too_deep", 160),
        (b'{"x":' + b"{" * 100_000, "too_deep", 36),
    ],
)
def test_what_no_broker_writes_is_refused(data: bytes, code: str, offset: int) -> None:
    error = refused(data)
    assert (error.code, error.offset) == (code, offset), error


def test_a_file_beyond_all_measure_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mqreplay.decode.text.MAX_BYTES", 10)
    assert refused(b'{"offsetTable":{}}').code == "too_large"


@pytest.mark.parametrize("name", FILES)
def test_every_prefix_of_a_real_file_is_refused(name: str) -> None:
    whole = (DATA / name).read_bytes().rstrip()
    for end in range(len(whole)):
        error = refused(whole[:end])
        assert error.code == ("torn" if end else "empty"), (end, error)


@given(tables, st.booleans(), st.booleans(), st.data())
def test_every_prefix_is_refused(
    table: dict[str, dict[int, int]], pretty: bool, quoted: bool, data: st.DataObject
) -> None:
    whole = f'{{"dataVersion":{{"counter":1}},"offsetTable":{written(table, pretty, quoted)}}}'.encode()
    cut = data.draw(st.integers(0, len(whole) - 1))
    assert refused(whole[:cut]).code in ("torn", "empty")


@given(tables, st.booleans(), st.booleans())
def test_what_is_written_is_read(table: dict[str, dict[int, int]], pretty: bool, quoted: bool) -> None:
    got = decode_consumer_offset(f'{{"offsetTable":{written(table, pretty, quoted)}}}'.encode())
    rows = [(key, queue_id, offset) for key, queues in table.items() for queue_id, offset in queues.items()]
    assert list(zip(got.key, got.queue_id, got.offset, strict=True)) == rows


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from(FILES), st.data())
def test_flipped_bytes_raise_nothing_but_our_error(name: str, data: st.DataObject) -> None:
    damaged = bytearray((DATA / name).read_bytes())
    places = st.integers(0, len(damaged) - 1)
    for place, byte in data.draw(st.dictionaries(places, st.integers(0, 255), min_size=1, max_size=4)).items():
        damaged[place] = byte
    result = outcome(lambda: decode_consumer_offset(bytes(damaged)))
    if isinstance(result, DecodeError):
        assert result.offset is not None
        assert 0 <= result.offset <= len(damaged)
    else:
        assert all(0 <= queue_id < 2**31 for queue_id in result.queue_id)


mangled = st.text(alphabet='{}:,"@0129-+.eE \n\tab\\', max_size=40)


@given(tables, st.booleans(), mangled, st.data())
def test_the_fast_and_the_careful_reader_agree(
    table: dict[str, dict[int, int]], pretty: bool, junk: str, data: st.DataObject
) -> None:
    text = written(table, pretty)
    at = data.draw(st.integers(0, len(text)))
    upto = data.draw(st.integers(at, len(text)))
    text = text[:at] + data.draw(st.sampled_from(["", junk])) + text[upto:]
    fast, careful = outcome(lambda: read_offset_table(text, 0)), outcome(lambda: read_table_carefully(text, 0))
    assert str(fast) == str(careful)


def test_a_byte_order_mark_is_passed_over_as_fastjson_does() -> None:
    marked = b'\xef\xbb\xbf{"offsetTable":{"t@g":{0:5}}}'
    assert decode_consumer_offset(marked) == decode_consumer_offset(marked[3:])
    for version in (BROKER_4, "5.3.3"):
        decoded = as_the_broker(marked.decode(), version)
        assert decoded is not None
        assert decoded.offset_table == {"t@g": {0: 5}}


def test_3x_spells_the_time_of_its_data_version_in_its_own_way() -> None:
    got = decode_consumer_offset(b'{"dataVersion":{"counter":2,"timestatmp":1453364000000},"offsetTable":{}}')
    assert (got.data_version_counter, got.data_version_timestamp) == (2, 1453364000000)


def rows(data: bytes) -> list[tuple[str, int, int]]:
    got = decode_lmq_consumer_offset(data)
    return list(zip(got.key, got.queue_id, got.offset, strict=True))


def test_an_lmq_file_has_the_offsets_of_all_groups() -> None:
    both = b'{"lmqOffsetTable":{"%LMQ%a@%LMQ%a":42,"t@%LMQ%b":7},"offsetTable":{"t@g":{0:9,1:8},"t@%LMQ%b":{0:5,1:5}}}'
    assert rows(both) == [("t@g", 0, 9), ("t@g", 1, 8), ("%LMQ%a@%LMQ%a", 0, 42), ("t@%LMQ%b", 0, 7)]
    assert rows(b'{"lmqOffsetTable":{"%LMQ%a@%LMQ%a":42}}') == [("%LMQ%a@%LMQ%a", 0, 42)]
    assert rows(b'{"offsetTable":{"t@g":{0:9}}}') == [("t@g", 0, 9)]
    assert decode_lmq_consumer_offset(b'{"dataVersion":{"counter":3},"offsetTable":{}}').data_version_counter == 3


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b'{"topicConfigTable":{}}', "foreign"),
        (b'{"lmqOffsetTable":{"%LMQ%a@%LMQ%a":4', "torn"),
        (b'{"lmqOffsetTable":{"%LMQ%a@%LMQ%a":"4"}}', "wrong_type"),
        (b'{"lmqOffsetTable":{"%LMQ%a@%LMQ%a":{0:4}}}', "wrong_type"),
        (b'{"lmqOffsetTable":{5:4}}', "bad_key"),
        (b'{"lmqOffsetTable":[]}', "wrong_type"),
    ],
)
def test_another_lmq_file_is_refused(data: bytes, code: str) -> None:
    with pytest.raises(DecodeError) as caught:
        decode_lmq_consumer_offset(data)
    assert caught.value.code == code
