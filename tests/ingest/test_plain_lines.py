"""Lines read many at a time are what the decoder takes one by one, or are left to it."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqreplay.decode.kinds import KINDS
from mqreplay.errors import DecodeError
from mqreplay.ingest.plain_lines import SLICE, PlainLines
from mqreplay.ingest.records import BLOCK_BYTES, BLOCK_LINES, _blocks

SAMPLE = Path(__file__).parents[2] / "data" / "sample"
PULL = KINDS["pull_log"]
FAST = PlainLines(PULL.plain)


def one_by_one(lines: list[bytes]) -> list[dict] | None:
    try:
        return [PULL.decode(line) for line in lines]
    except DecodeError:
        return None


def many(lines: list[bytes]) -> list[dict] | None:
    found = FAST.read(lines)
    if found is None:
        return None
    return [{name: column[i].as_py() for name, column in found.items()} for i in range(len(lines))]


@pytest.mark.parametrize("name", ["orders-4.9.7", "bulk-5.3.3"])
def test_every_pull_of_the_samples_is_read_at_once_and_alike(name: str) -> None:
    with gzip.open(SAMPLE / name / "pull_log.jsonl.gz") as stream:
        lines = stream.read().splitlines()
    assert many(lines[:5000]) == one_by_one(lines[:5000])
    assert FAST.read(lines) is not None


WHOLE = {
    "request_ts": 1795228808477,
    "client_id": "c",
    "consumer_group": "g",
    "topic": "t",
    "queue_id": 0,
    "broker_name": "b",
    "queue_offset": 7,
}
VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**65), 2**65),
    st.sampled_from([0, 1, -1, 2**31, 2**31 - 1, 2**63 - 1, 2**63, 1795228808477, 946684799999]),
    st.floats(allow_nan=True),
    st.text(max_size=4),
    st.lists(st.integers(), max_size=2),
    st.dictionaries(st.sampled_from(["a", "b"]), st.integers(), max_size=2),
)
LINES = st.dictionaries(st.sampled_from([*PULL.columns, "new_field", "other"]), VALUES, max_size=4).map(
    lambda more: json.dumps(WHOLE | more, ensure_ascii=len(more) % 2 == 0).encode("utf-8", "surrogatepass")
)


@given(st.lists(LINES, min_size=1, max_size=4))
def test_what_is_read_at_once_is_what_the_decoder_takes(lines: list[bytes]) -> None:
    found = many(lines)
    if found is not None:
        assert found == one_by_one(lines)


@given(st.lists(st.builds(lambda n: json.dumps(WHOLE | {"opaque": n}).encode(), st.integers(0, 9)), min_size=1))
def test_usual_lines_are_read_at_once(lines: list[bytes]) -> None:
    assert many(lines) == one_by_one(lines)


LINE = json.dumps(WHOLE).encode()


@pytest.mark.parametrize(
    "lines",
    [
        [LINE.replace(b'"queue_id": 0', b'"queue_id": 0, "queue_id": 1')],
        [LINE.replace(b"}", b', "x": 1, "x": 2}')],
        [LINE.replace(b"}", b', "x": NaN}')],
        [LINE + b" " + LINE],
        [LINE + LINE, LINE[:20], LINE[20:]],
        [LINE[:-1], b"}"],
        [LINE.replace(b'"c"', b'"\xff"')],
        [LINE.replace(b'"c"', b'"\\ud800"')],
        [b"\xef\xbb\xbf" + LINE],
        [LINE.replace(b"7}", b"07}")],
        [LINE.replace(b"7}", b"7.0}")],
        [LINE.replace(b"}", b', "x": Inf}')],
        [LINE.replace(b"}", b', "x": [1.5, -Infinity]}')],
        [LINE, LINE.replace(b"}", b', "x": ' + b"9" * 5000 + b"}")],
        [LINE, LINE.replace(b"}", b', "x": ' + b"[" * 100_000 + b"]" * 100_000 + b"}")],
        [LINE, LINE.replace(b"}", b', "x": ' + b'{"a":' * 100_000 + b"1" + b"}" * 100_001)],
        [b"[" + LINE + b"]"],
        [b"{}"],
    ],
)
def test_anything_doubtful_is_left_to_the_decoder(lines: list[bytes]) -> None:
    assert many(lines) is None


def test_containers_and_long_lines_are_read_at_once_where_they_are_harmless() -> None:
    lines = [json.dumps(WHOLE | {"new": [[1.5], [2.5]], "remark": "Info " + "x" * 9000}).encode()] * 300
    assert many(lines) == one_by_one(lines)
    assert many(lines) is not None


def with_new_names(number: int) -> bytes:
    """A line of 10 names that no other line has."""
    return json.dumps(WHOLE | {f"new-{number}-{i}": i for i in range(10)}).encode()


def test_names_without_end_are_left_to_the_decoder_before_they_fill_the_memory() -> None:
    fast = PlainLines(PULL.plain)
    assert fast.read([with_new_names(n) for n in range(SLICE)]) is None
    assert fast.read([LINE]) is None  # of such a file nothing more is tried
    nested = [json.dumps(WHOLE | {"new": {f"new-{n}": n}}).encode() for n in range(20 * SLICE)]
    assert PlainLines(PULL.plain).read(nested) is None


def test_a_block_is_bounded_by_its_bytes_too() -> None:
    lines = [(number, b"x" * (BLOCK_BYTES // 4), True) for number in range(10)]
    blocks = list(_blocks(iter(lines)))
    assert [len(block) for block in blocks] == [4, 4, 2]
    assert [line for block in blocks for line in block] == lines
    assert [len(block) for block in _blocks((n, b"{}", True) for n in range(BLOCK_LINES + 1))] == [BLOCK_LINES, 1]
    long = [(number, b"x" * (BLOCK_BYTES // 2 + 1), True) for number in range(3)]
    assert [len(block) for block in _blocks(iter(long))] == [1, 1, 1]
