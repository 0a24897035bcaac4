"""A JSONL file as the workers read it: decoded lines, refused lines, and counts."""

from __future__ import annotations

import gzip
import io
import json
import tempfile
import time
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqreplay.decode.kinds import KINDS
from mqreplay.ingest.lines import LONGEST_LINE, LineReader, record_id

GOOD = b'{"ts":1795228808310,"client_id":"c","consumer_group":"g","topic":"T","strategy":"AVG"}'


def read(path):
    reader = LineReader(str(path), KINDS["rebalance_log"].decode)
    rows = list(reader)
    return reader, [number for number, _, _ in rows], [(r.line_number, r.code) for r in reader.refused]


def test_good_bad_and_blank_lines(tmp_path):
    path = tmp_path / "rebalance_log.jsonl"
    path.write_bytes(GOOD + b"\n\n{nonsense}\n\xff\xfe\n" + GOOD + b"\r\n")
    reader, good, refused = read(path)
    assert good == [1, 5]
    assert [number for number, _ in refused] == [3, 4]
    assert reader.lines == len(good) + len(refused)
    assert all(r.reason and r.advice for r in reader.refused)


def test_a_file_that_ends_within_a_line(tmp_path):
    path = tmp_path / "rebalance_log.jsonl"
    path.write_bytes(GOOD + b"\n" + GOOD[:40])
    _, good, refused = read(path)
    assert good == [1]
    assert refused == [(2, "torn")]


@pytest.mark.parametrize("kept", [0.3, 0.9, 0.999])
def test_a_torn_gzip_gives_what_lies_before_the_tear(tmp_path, kept):
    whole = [json.dumps(json.loads(GOOD) | {"ts": 1795228808310 + i}).encode() for i in range(3000)]
    data = gzip.compress(b"\n".join(whole) + b"\n")
    path = tmp_path / "rebalance_log.jsonl.gz"
    path.write_bytes(data[: int(len(data) * kept)])
    reader, good, refused = read(path)
    assert good == list(range(1, len(good) + 1))
    assert {code for _, code in refused} <= {"torn_gzip", "torn"}
    assert refused[-1][1] == "torn_gzip"
    assert reader.lines == len(good) + len(refused)
    assert reader.reason is not None
    assert reader.reason.startswith("truncated")


def test_a_name_may_not_say_gzip_but_may_leave_it_out(tmp_path):
    path = tmp_path / "rebalance_log.jsonl"
    path.write_bytes(gzip.compress(GOOD + b"\n"))
    assert read(path)[1] == [1]
    path.write_bytes(GOOD + b"\n")
    reader, good, refused = read(path.rename(f"{path}.gz"))
    assert (good, refused, reader.lines) == ([], [(0, "damaged_gzip")], 1)


def test_a_line_without_end_does_not_fill_the_memory(tmp_path):
    path = tmp_path / "rebalance_log.jsonl"
    path.write_bytes(b"x" * (2 * LONGEST_LINE + 10) + b"\n" + GOOD + b"\n")
    _, good, refused = read(path)
    assert good == [2]
    assert refused == [(1, "too_long")]


PIECES = [b"{", b"}", b" ", b"\r", b"\n", b"\n\n", b"ab", GOOD]


@given(st.lists(st.sampled_from(PIECES), max_size=30), st.integers(1, 7), st.booleans())
def test_lines_are_the_same_however_they_are_cut(pieces, chunk, zipped):
    data = b"".join(pieces)
    lines = enumerate(io.BytesIO(data), 1)
    want = [(number, line.rstrip(b"\r\n"), line.endswith(b"\n")) for number, line in lines if line.strip()]
    with (
        tempfile.NamedTemporaryFile() as file,
        mock.patch("mqreplay.ingest.lines.CHUNK", chunk),
        mock.patch("mqreplay.ingest.gzip_stream.CHUNK", chunk),
        mock.patch("mqreplay.ingest.gzip_stream.READ", chunk),
    ):
        file.write(gzip.compress(data) if zipped else data)
        file.flush()
        assert list(LineReader(file.name, KINDS["rebalance_log"].decode).numbered()) == want


@pytest.mark.parametrize("extra", [-1, 0, 1, 2])
def test_a_line_is_too_long_from_one_byte_on(tmp_path, extra):
    path = tmp_path / "rebalance_log.jsonl"
    path.write_bytes(b"x" * (LONGEST_LINE + extra) + b"\n" + GOOD + b"\n")
    _, good, refused = read(path)
    assert good == [2]
    assert [number for number, _ in refused] == [1]
    assert (refused[0][1] == "too_long") == (extra > 0)


def test_many_members_within_a_long_line_take_no_longer(tmp_path):
    path = tmp_path / "rebalance_log.jsonl.gz"
    begin, members = 15 * 2**20, 20_000
    path.write_bytes(gzip.compress(b"x" * begin) + gzip.compress(b"x") * members + gzip.compress(b"\n" + GOOD + b"\n"))
    began = time.process_time()
    found = list(LineReader(str(path), KINDS["rebalance_log"].decode).numbered())
    assert found == [(1, b"x" * (begin + members), True), (2, GOOD, True)]
    assert time.process_time() - began < 5  # 17 s with a copy of the line for each member


def test_a_record_is_its_line():
    assert record_id(GOOD) == record_id(bytes(GOOD))
    assert record_id(GOOD) != record_id(GOOD + b" ")
