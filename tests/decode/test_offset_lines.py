"""Where the table's numbers lie in files as brokers write them, and which files are not taken for such."""

from __future__ import annotations

from pathlib import Path

import pytest

from mqreplay.decode import offset_lines
from mqreplay.decode.consumer_offset import decode_consumer_offset
from mqreplay.decode.offset_lines import counter_beside, offset_shape, table_bounds, table_lines
from mqreplay.words.errors import DecodeError

SAMPLE = Path(__file__).parents[2] / "data" / "sample"
RECORDINGS = sorted({path.parents[3] for path in SAMPLE.glob("*/snapshots/*/*/consumerOffset.json")})

HEAD, TAIL = b'{\n\t"dataVersion":{\n\t\t"counter":7\n\t},\n\t"offsetTable":{\n', b"\n\t}\n}"
TABLE = b'\t\t"t@g":{0:1,1:-2\n\t\t},\n\t\t"none@g":{},\n\t\t"a:{0,b@g":{0:3\n\t\t}'


def runs(data: bytes) -> list[bytes]:
    lines = table_lines(data)
    assert lines is not None
    return [data[start:end] for start, end in lines.runs]


@pytest.mark.parametrize("recording", RECORDINGS, ids=lambda path: path.name)
def test_every_snapshot_of_the_samples(recording: Path) -> None:
    for path in sorted(recording.glob("snapshots/*/*/consumerOffset.json")):
        data = path.read_bytes()
        try:
            decoded = decode_consumer_offset(data)
        except DecodeError:
            continue
        if not decoded.key:
            continue
        pairs = b",".join(runs(data)).decode().split(",")
        assert pairs == [f"{i}:{offset}" for i, offset in zip(decoded.queue_id, decoded.offset, strict=True)]


def test_lines_without_numbers_and_keys_with_signs() -> None:
    assert runs(HEAD + TABLE + TAIL) == [b"0:1,1:-2", b"0:3"]
    assert table_bounds(HEAD + TABLE + TAIL) == (len(HEAD), len(HEAD + TABLE))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        HEAD,
        (HEAD + TABLE + TAIL).replace(b"\n", b""),
        (HEAD + TABLE + TAIL).replace(b"1:-2", b"1:02"),
        (HEAD + TABLE + TAIL).replace(b"1:-2", b"1:-0"),
        (HEAD + TABLE + TAIL).replace(b"1:-2", b"1: 2"),
        (HEAD + TABLE + TAIL).replace(b"1:-2", b'"1":2'),
        (HEAD + TABLE + TAIL).replace(b"none@g", b"no\\u006ee@g"),
        HEAD + TABLE + b'\n\t},\n\t"other":{\n\t\t"offsetTable":{}\n\t}\n}',
        b'{"offsetTabl\\u0065":{},\n\t"other":{\n\t"offsetTable":{\n' + TABLE + b"\n\t}\n\t}\n}",
    ],
)
def test_any_other_layout_is_not_taken(data: bytes) -> None:
    assert table_lines(data) is None


@pytest.mark.parametrize(
    ("old", "new", "is_same"),
    [
        (b"0:1,", b"0:99999999999999999,", True),
        (b'"counter":7', b'"counter":812', True),
        (b"0:1,", b"0:100000000000000000,", False),  # no queue can have such an offset
        (b"0:1,", b"0:-1,", False),
        (b"0:1,", b"0:,", False),
        (b"0:1,", b"0:01,", False),
        (b"0:1,", b"0:#,", False),
        (b"0:1,", b"5:1,", False),
        (b"0:1,", b"0:1,2:1,", False),
        (b"a:{0,b@g", b"a:{1,b@g", False),
        (b"none@g", b"other@g", False),
        (b'"counter":7', b'"counter":"7"', False),
        (TAIL, TAIL + b" ", False),
    ],
)
def test_shape_shows_all_but_usual_numbers(old: bytes, new: bytes, is_same: bool) -> None:
    data = HEAD + TABLE + TAIL
    assert old in data
    assert (offset_shape(data) == offset_shape(data.replace(old, new))) is is_same


def test_key_that_looks_like_an_offset_belongs_to_the_shape() -> None:
    one = HEAD + b'\t\t"t:{0:1,@g":{0:1\n\t\t}' + TAIL
    assert table_lines(one) is not None
    assert offset_shape(one) != offset_shape(one.replace(b"t:{0:1,", b"t:{0:2,"))


@pytest.mark.parametrize("recording", RECORDINGS, ids=lambda path: path.name)
def test_files_of_one_shape_have_the_same_keys(recording: Path) -> None:
    keys: dict[object, list[tuple[str, int]]] = {}
    shared = 0
    for path in sorted(recording.glob("snapshots/*/*/consumerOffset.json")):
        data = path.read_bytes()
        try:
            decoded = decode_consumer_offset(data)
        except DecodeError:
            continue
        if table_lines(data) is not None:
            found = list(zip(decoded.key, decoded.queue_id, strict=True))
            shared += offset_shape(data) in keys
            assert keys.setdefault(offset_shape(data), found) == found
    assert shared > 10


def test_the_counter_is_read_without_the_table() -> None:
    assert counter_beside(HEAD, TAIL) == 7
    assert counter_beside(b'{\n\t"offsetTable":{\n', b'\n\t},\n\t"pullOffsetTable":{}\n}') is None


@pytest.mark.parametrize(
    ("head", "tail"),
    [
        (HEAD.replace(b":7", b":"), TAIL),
        (HEAD, TAIL[:-1]),
        (HEAD, b"}\n}"),
        (HEAD.replace(b"offsetTable", b"offsetTabel"), TAIL),
        (b'{"offsetTable":{},"o":{\n\t"offsetTable":{\n', b"\n\t}}}"),
        (b'{"offsetTabl\\u0065":{},"o":{\n\t"offsetTable":{\n', b"\n\t}}}"),
        (b'{"o":{\n\t"offsetTable":{\n', b"\n\t}}}"),
        (b"\xff" + HEAD, TAIL),
        (b'{"offsetTable":{},"o":{\n', b"\n\t}}"),
    ],
)
def test_a_file_that_would_be_refused_or_holds_another_table(head: bytes, tail: bytes) -> None:
    with pytest.raises(DecodeError):
        counter_beside(head, tail)


def test_groups_and_topics_beside_the_version_are_not_decoded_again(monkeypatch: pytest.MonkeyPatch) -> None:
    groups = b'\t"groupTopicMap":{\n\t\t"g":["t"]\n\t},\n\t"offsetTable":{\n'
    head = HEAD.replace(b'\t"offsetTable":{\n', groups)
    decoded = []
    monkeypatch.setattr(
        offset_lines, "decode_consumer_offset", lambda data: decoded.append(data) or decode_consumer_offset(data)
    )
    assert counter_beside(head.replace(b":7", b":10"), TAIL, (head, TAIL)) == 10
    assert counter_beside(head.replace(b'"t"', b'"u"'), TAIL, (head, TAIL)) == 7
    assert counter_beside(head, TAIL.replace(b"\t}", b"\t} "), (head, TAIL)) == 7
    assert [b"groupTopicMap" in data for data in decoded] == [False, True, True]
