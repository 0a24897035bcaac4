"""Reading only the lines that differ gives what reading each file whole gives: over every snapshot of the samples, and
over files made up at random, torn and foreign ones among them."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqreplay.decode.consumer_offset import decode_consumer_offset
from mqreplay.decode.offset_lines import OffsetLines
from mqreplay.errors import DecodeError

SAMPLE = Path(__file__).parents[2] / "data" / "sample"
BROKERS = sorted({path.parents[1] for path in SAMPLE.glob("*/snapshots/*/*/consumerOffset.json")})


def table(data: bytes) -> tuple[dict, int | None]:
    got = decode_consumer_offset(data)
    return dict(zip(zip(got.key, got.queue_id, strict=True), got.offset, strict=True)), got.data_version_counter


def read_all(files: list[bytes]) -> tuple[int, int]:
    """How many files were read by lines, and how many whole; both ways held against each other."""
    lines, known, by_lines, whole = OffsetLines(), {}, 0, 0
    for data in files:
        found = lines.difference(data)
        try:
            expected, counter = table(data)
        except DecodeError:
            assert found is None
            continue
        if found is None:
            whole += 1
            lines.remember(data, decode_consumer_offset(data))
        else:
            by_lines += 1
            assert found.data_version_counter == counter
            for one in found.changed:
                assert one.queue_id
                for i, old, new in zip(one.queue_id, one.previous_offset, one.new_offset, strict=True):
                    assert known[(one.key, i)] == old != new
                    known[(one.key, i)] = new
            assert known == expected
        known = expected
    return by_lines, whole


@pytest.mark.parametrize("broker", BROKERS, ids=lambda path: f"{path.parents[1].name}-{path.name}")
def test_every_snapshot_of_the_samples(broker: Path) -> None:
    files = [path.read_bytes() for path in sorted(broker.glob("*/consumerOffset.json"))]
    by_lines, whole = read_all(files)
    assert by_lines > 0
    assert whole < 20, "a file is read whole only when an entry comes or goes"


def written(rows: dict[str, dict[int, int]], counter: int | None, tail: str = "") -> bytes:
    """As fastjson writes it."""
    version = "" if counter is None else f'\t"dataVersion":{{\n\t\t"counter":{counter}\n\t}},\n'
    lines = [
        f'\t\t"{key}":{{' + ",".join(f"{i}:{offset}" for i, offset in queues.items()) + "\n\t\t}"
        for key, queues in rows.items()
    ]
    return ("{\n" + version + '\t"offsetTable":{\n' + ",\n".join(lines) + "\n\t}" + tail + "\n}").encode()


KEYS = st.sampled_from(["t@g", "%RETRY%g@g", "a:{0@b", "ünï@g", "no-group"])
OFFSETS = st.one_of(st.integers(-1, 12), st.sampled_from([2**63 - 1, -(2**63), 2**63, 10**18]))
ROWS = st.dictionaries(KEYS, st.dictionaries(st.integers(0, 3), OFFSETS, min_size=1), min_size=1)
PULL_TABLE = ',\n\t"pullOffsetTable":{\n\t\t"t@g":{0:%d\n\t\t}\n\t}'
FILES = st.one_of(
    st.builds(written, ROWS, st.one_of(st.none(), st.integers(0, 9))),
    st.builds(lambda rows, n: written(rows, 1, PULL_TABLE % n), ROWS, st.integers(0, 3)),
    st.builds(lambda rows, cut: written(rows, None)[: -cut - 1], ROWS, st.integers(0, 20)),
    st.builds(lambda rows: written(rows, 3).replace(b"\n", b"").replace(b"\t", b""), ROWS),
    st.builds(lambda rows: written(rows, None).replace(b":1", b":01"), ROWS),
    st.sampled_from([b"", b"{}", b"[1]", b'{"offsetTable":{}}', b'{\n\t"offsetTable":{\n\t}\n}']),
)


@given(st.lists(FILES, min_size=1, max_size=8))
def test_files_at_random(files: list[bytes]) -> None:
    read_all(files)


SAME = {"t@g": {0: 1, 1: 2}, "u@g": {0: 3}}


@given(st.lists(st.tuples(OFFSETS, OFFSETS, OFFSETS, st.integers(0, 3)), min_size=2, max_size=8))
def test_files_of_one_layout_at_random(files: list[tuple[int, int, int, int]]) -> None:
    read_all([written({"t@g": {0: a, 1: b}, "u@g": {0: c}}, n) for a, b, c, n in files])


def test_a_table_beside_it_is_not_taken_for_the_offset_table() -> None:
    lines, one = OffsetLines(), written(SAME, 1, PULL_TABLE % 1)
    lines.remember(one, decode_consumer_offset(one))
    found = lines.difference(written(SAME, 1, PULL_TABLE % 2))
    assert found is not None
    assert found.changed == []


@pytest.mark.parametrize(
    "other",
    [
        written({"t@g": {0: 1, 2: 2}, "u@g": {0: 3}}, 1),
        written({"t@h": {0: 1, 1: 2}, "u@g": {0: 3}}, 1),
        written({"t@g": {0: 1, 1: 2}}, 1),
        written(SAME, 1)[:-3],
        written(SAME, 1).replace(b"1:2", b"1:02"),
        written(SAME, 1).replace(b"1:2", b"1:2x"),
        written(SAME, 1).replace(b'"counter":1', b'"counter":'),
        written(SAME, 1).replace(b"1:2", b"1:9223372036854775808"),
    ],
)
def test_any_other_file_is_read_whole(other: bytes) -> None:
    lines, one = OffsetLines(), written(SAME, 1)
    lines.remember(one, decode_consumer_offset(one))
    assert lines.difference(other) is None
    found = lines.difference(one)
    assert found is not None, "what was refused is not remembered"
    assert found.changed == []
