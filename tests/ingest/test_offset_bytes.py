"""Reading the bytes that differ gives what reading every file whole gives: over every snapshot of the samples, and over
files made up at random, damaged and foreign ones among them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mqreplay.decode.consumer_offset import decode_consumer_offset
from mqreplay.ingest import offset_bytes
from mqreplay.ingest.diffs import Row, Source
from mqreplay.ingest.entries import Moves, SnapshotFile
from mqreplay.ingest.offset_bytes import OffsetBytes, numbers
from mqreplay.words.errors import DecodeError

SAMPLE = Path(__file__).parents[2] / "data" / "sample"
BROKERS = sorted({path.parents[1] for path in SAMPLE.glob("*/snapshots/*/*/consumerOffset.json")})
JSON, BAK = "consumerOffset.json", "consumerOffset.json.bak"


class Whole(OffsetBytes):
    """Takes no file: each is decoded whole."""

    def difference(self, data: bytes) -> None:
        return None


def told(item: Row | Moves, source: Source) -> object:
    """A row as it is; moves as lists, in their order."""
    if not isinstance(item, Moves):
        return item
    came = [False] * len(item) if item.came is None else item.came.tolist()
    gone = [False] * len(item) if item.gone is None else item.gone.tolist()
    assert (item.entry.dtype, item.previous.dtype, item.new.dtype) == (np.int32, np.int64, np.int64)
    offsets = zip(item.entry.tolist(), item.previous.tolist(), item.new.tolist(), came, gone, strict=True)
    moved = [
        (source.keys.keys[entry], None if c else previous, None if g else new) for entry, previous, new, c, g in offsets
    ]
    return (item.from_ts, item.ts, item.digest, moved)


def read(files: list[tuple[str, bytes]], whole: bool) -> tuple[list[object], object, int]:
    """All that a source tells of its files, what it knows in the end, and how many files were read by bytes."""
    by_bytes = 0

    class Counted(OffsetBytes):
        def difference(self, data: bytes):
            nonlocal by_bytes
            found = super().difference(data)
            by_bytes += found is not None
            return found

    source = Source("b-0", "b", 0, None, offsets=Whole() if whole else Counted())
    listed = [SnapshotFile(str(i), f"snapshots/b-0/{i}/{n}", "consumer_offset", n, i) for i, (n, _) in enumerate(files)]
    given = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Source, "read", lambda self, file: files[int(file.full_path)][1])
        for item in source.read_all(listed):
            given.append(told(item, source))
            if whole:
                source.taken.clear()  # so that a file that is the one before is decoded too
    return given, source.entries, by_bytes


def moved(files: list[bytes]) -> list[list[tuple[object, ...]]]:
    """What each file that is whole changed, by decoding it and holding the two dicts against each other."""
    told: list[list[tuple[object, ...]]] = []
    before: dict[tuple[object, ...], int] = {}
    for data in files:
        try:
            got = decode_consumer_offset(data)
        except DecodeError:
            continue
        rows = zip(got.topic, got.consumer_group, got.queue_id, got.offset, strict=True)
        now: dict[tuple[object, ...], int] = {(t, g, None, i): offset for t, g, i, offset in rows if t is not None}
        changed = [(key, before.get(key), new) for key, new in now.items() if before.get(key) != new]
        told.append(changed + [(key, old, None) for key, old in before.items() if key not in now])
        before = now
    return told


def both_ways(files: list[tuple[str, bytes]]) -> int:
    fast, known, by_bytes = read(files, whole=False)
    slow, expected, _ = read(files, whole=True)
    assert fast == slow
    assert known == expected
    if all(name == JSON for name, _ in files):
        assert [item[3] for item in fast if isinstance(item, tuple)] == moved([data for _, data in files])
    return by_bytes


@pytest.mark.parametrize("broker", BROKERS, ids=lambda path: f"{path.parents[1].name}-{path.name}")
def test_every_snapshot_of_the_samples(broker: Path) -> None:
    files = [(JSON, path.read_bytes()) for path in sorted(broker.glob("*/consumerOffset.json"))]
    by_bytes = both_ways(files)
    others = sum(a != b for a, b in pairwise(files))
    assert others - by_bytes < 20, "a file is read whole only when an entry comes or goes"


VERSION = '\t"dataVersion":{\n\t\t"counter":%d,\n\t\t"timestamp":%d\n\t},\n'
GROUPS = '\t"groupTopicMap":{\n\t\t"g":["t","%RETRY%g"]\n\t},\n'
PULL_TABLE = ',\n\t"pullOffsetTable":{\n\t\t"t@g":{0:%d\n\t\t}\n\t}'


@dataclass
class Broker:
    """A broker's table, and its file as fastjson writes it."""

    rows: dict[str, dict[int, str]] = field(default_factory=dict)
    counter: int | None = None
    pulled: int | None = None

    def written(self) -> bytes:
        version = "" if self.counter is None else VERSION % (self.counter, 99 + self.counter) + GROUPS
        lines = [
            f'\t\t"{key}":{{' + (",".join(f"{i}:{offset}" for i, offset in queues.items()) + "\n\t\t" if queues else "")
            + "}"
            for key, queues in self.rows.items()
        ]  # fmt: skip
        tail = "" if self.pulled is None else PULL_TABLE % self.pulled
        return ("{\n" + version + '\t"offsetTable":{\n' + ",\n".join(lines) + "\n\t}" + tail + "\n}").encode()


KEYS = ["t@g", "%RETRY%g@g", "a:{0,b@b", "ünï@g", "no-group", "offsetTable@g", "0:1@g"]
EDGES = [2**63 - 1, -(2**63), 2**63, -(2**63) - 1, 10**18, 10**19, 10**20, 99, 100, -1, -9, 0]
OFFSETS = st.one_of(st.integers(-12, 120), st.sampled_from(EDGES), st.integers(0, 10**12)).map(str)
ODD = st.sampled_from(["00", "01", "-0", "-", "", " 1", "1 ", "+1", "1e2", "1.0", '"1"', "null", "1x", "1,1:2", "0x1"])
SIGNS = st.sampled_from([bytes([b]) for b in b'0123456789-+,:{}[]"\\\n\t @aeE./\x00\xff'])
QUEUES = st.dictionaries(st.integers(0, 3), OFFSETS, max_size=4)
ROWS = st.dictionaries(st.sampled_from(KEYS), QUEUES, max_size=5)


@st.composite
def days(draw: st.DrawFn) -> list[tuple[str, bytes]]:
    """A broker's files: it goes on from one to the next, and some are damaged in the copying."""
    broker = Broker(draw(ROWS), draw(st.sampled_from([None, 0, 8])), draw(st.sampled_from([None, 9])))
    files = [(JSON, broker.written())]
    for _ in range(draw(st.integers(1, 7))):
        _go_on(draw, broker)
        data = _damaged(draw, broker.written()) if draw(st.integers(0, 3)) == 0 else broker.written()
        files.append((BAK if draw(st.integers(0, 9)) == 0 else JSON, data))
    return files


def _go_on(draw: st.DrawFn, broker: Broker) -> None:
    for _ in range(draw(st.integers(0, 3))):
        places = [(key, i) for key, queues in broker.rows.items() for i in queues]
        how = draw(st.integers(0, 11))
        if how == 0:
            broker.rows[draw(st.sampled_from(KEYS))] = draw(QUEUES)
        elif how == 1 and broker.rows:
            del broker.rows[draw(st.sampled_from(list(broker.rows)))]
        elif how == 2 and broker.counter is not None:
            broker.counter += 1
        elif how == 3 and broker.pulled is not None:
            broker.pulled += 1
        elif places:
            key, i = draw(st.sampled_from(places))
            same_length = broker.rows[key][i][:-1] + draw(st.sampled_from("0123456789"))
            broker.rows[key][i] = same_length if how > 7 else draw(ODD if how == 7 else OFFSETS)


def _damaged(draw: st.DrawFn, data: bytes) -> bytes:
    at = draw(st.integers(0, len(data)))
    return draw(
        st.one_of(
            st.just(data[:at]),
            st.builds(lambda sign: data[:at] + sign + data[at + 1 :], SIGNS),
            st.builds(lambda sign: data[:at] + sign + data[at:], SIGNS),
            st.just(data[:at] + data[at + 1 :]),
            st.just(data.replace(b"\n", b"").replace(b"\t", b"")),
            st.just(data.replace(b"\t", b" ")),
            st.just(data.replace(b'"offsetTable":{', b'"o":{},"offsetTable":{')),
            st.just(data.replace(b'\t"offsetTable"', b'\t"offsetTable":{},"o":{\n\t"offsetTable"') + b"}"),
            st.just(data + data),
            st.sampled_from([b"", b"{}", b"[1]", b'{"offsetTable":{}}', b'{\n\t"offsetTable":{\n\t}\n}']),
        )
    )


@settings(max_examples=3 * settings.default.max_examples)
@given(days())
def test_days_at_random(files: list[tuple[str, bytes]]) -> None:
    both_ways(files)


SAME = Broker({"t@g": {0: "1", 1: "20"}, "no-group": {0: "5"}, "u@g": {0: "-3"}}, 8, 9)


@given(st.lists(st.one_of(SIGNS, OFFSETS.map(str.encode), ODD.map(str.encode)), min_size=1, max_size=6), st.data())
def test_signs_anywhere_in_a_file(changes: list[bytes], data: st.DataObject) -> None:
    one = SAME.written()
    files = [one]
    for change in changes:
        at = data.draw(st.integers(0, len(one)))
        files.append(one[:at] + change + one[at + data.draw(st.sampled_from([0, 1, len(change)])) :])
        files.append(one.replace(b"1:20", b"1:" + change))
    both_ways([(JSON, each) for each in files])


def test_a_key_that_names_nothing_moves_nothing() -> None:
    one = SAME.written()
    files = [one, one.replace(b"0:5", b"0:6"), one.replace(b"0:5", b"0:66").replace(b"0:-3", b"0:-4")]
    assert both_ways([(JSON, data) for data in files]) == 2


def known(one: bytes) -> OffsetBytes:
    before = OffsetBytes()
    before.remember(one, decode_consumer_offset(one))
    return before


@pytest.mark.parametrize(
    ("old", "new", "rows", "previous", "now", "counter"),
    [
        (b"1:20", b"1:21", [1], [20], [21], 8),
        (b"1:20", b"1:7", [1], [20], [7], 8),
        (b"1:20", b"1:-9223372036854775808", [1], [20], [-(2**63)], 8),
        (b"1:20", b"1:9223372036854775807", [1], [20], [2**63 - 1], 8),
        (b"0:-3", b"0:45", [3], [-3], [45], 8),
        (b'counter":8', b'counter":9', [], [], [], 9),
        (b'counter":8', b'counter":10', [], [], [], 10),
        (b'counter":8', b'counter":9223372036854775807', [], [], [], 2**63 - 1),
        (b'counter":8', b'countre":8', [], [], [], None),
        (b'["t"', b'["u"', [], [], [], 8),
        (b"dataVersion", b"dataversion", [], [], [], None),
        (b"0:9", b"0:1", [], [], [], 8),  # in pullOffsetTable
    ],
)
def test_what_is_read_by_bytes(old: bytes, new: bytes, rows: list, previous: list, now: list, counter: int) -> None:
    one = SAME.written()
    before = known(one)
    found = before.difference(one.replace(old, new))
    assert found is not None
    assert (found.rows.tolist(), found.previous.tolist(), found.new.tolist()) == (rows, previous, now)
    assert found.counter == counter
    back = before.difference(one)
    assert back is not None
    assert (back.previous.tolist(), back.new.tolist(), back.counter) == (now, previous, 8)


LONGS = [b"02", b"2x", b"-0", b"2 ", b"", b"-", b"9223372036854775808", b"-9223372036854775809", b"2,2:0"]
OTHERS = [(b"1:20", b"1:" + offset) for offset in LONGS] + [
    (b"1:20", b"2:20"),
    (b"t@g", b"t@h"),
    (b"\n\t}", b""),
    (b'counter":8', b'counter":'),
    (b'counter":8', b'counter"::'),
    (b'counter":8,', b'counter":88'),
    (b'timestamp":107', b'counter":10700'),
    (b"groupTopicMap", b"dataVersion"),
    (b'"t"', b'"t,'),
    (b"\n", b""),
]


@pytest.mark.parametrize(("old", "new"), OTHERS)
def test_any_other_file_is_read_whole(old: bytes, new: bytes) -> None:
    before = known(SAME.written())
    assert before.difference(SAME.written().replace(old, new)) is None
    found = before.difference(SAME.written())
    assert found is not None, "what was refused is not remembered"
    assert not len(found.rows)


def test_a_last_key_much_shorter_than_before() -> None:
    """The places of the numbers, reckoned by the keys before, lie behind the end of the file."""
    one, other = (Broker({"t@g": {0: "1"}, key: {0: "1"}}).written() for key in ("u" * 99 + "@g", "u@g"))
    assert known(one).difference(other) is None


def test_a_file_larger_than_any_that_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    one = SAME.written()
    monkeypatch.setattr(offset_bytes, "MAX_BYTES", len(one))
    assert known(one).difference(one.replace(b"1:20", b"1:200")) is None


def test_a_table_hidden_from_sight_is_not_missed() -> None:
    """The same bytes stand in the same places, but the table that counts is another one, and an empty one."""
    one = b'{"o":"0123456789012","p":{},\n\t"offsetTable":{\n\t\t"t@g":{0:1\n\t\t}\n\t}\n} '
    for name in (b"offsetTable", b"offset\\u0054able"):
        other = b'{"' + name + b'":{},"o":{\n\t"offsetTable":{\n\t\t"t@g":{0:1\n\t\t}\n\t}\n}}'
        for hidden in (other, b"{" + b" " * (len(one) - len(other)) + other[1:]):
            assert decode_consumer_offset(hidden).offset == []
            assert known(one).difference(hidden) is None


@example([""])
@given(st.lists(st.one_of(OFFSETS, ODD.filter(lambda text: "," not in text)), max_size=8))
def test_numbers(texts: list[str]) -> None:
    line = ",".join(texts).encode()
    ends = np.array([len(",".join(texts[: i + 1])) for i in range(len(texts))], np.intp)
    starts = ends - np.array([len(text) for text in texts], np.intp)
    raw = np.frombuffer(line, np.uint8)
    found = numbers(raw, starts, ends)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(offset_bytes, "NUMBERS_AT_ONCE", 2)
        in_parts = numbers(raw, starts, ends)
    longs = [re.fullmatch("0|-?[1-9][0-9]*", t) is not None and -(2**63) <= int(t) < 2**63 for t in texts]
    assert (found is not None) == (in_parts is not None) == all(longs)
    if found is not None and in_parts is not None:
        assert found.tolist() == in_parts.tolist() == [int(text) for text in texts]
