"""A gzip stream is complete, truncated or damaged; nothing of a damaged one is used."""

from __future__ import annotations

import gzip
import io
import json
import random
import struct
import zlib
from pathlib import Path

import pytest

from mqreplay.decode.kinds import KINDS
from mqreplay.ingest import gzip_stream
from mqreplay.ingest.gzip_stream import Checked, check, inflate
from mqreplay.ingest.lines import LineReader
from mqreplay.words.errors import DecodeError

NUMBERS = random.Random(1)
LINES = [
    json.dumps(
        {
            "ts": 1795228808310 + i,
            "client_id": f"10.0.0.{i}@{NUMBERS.randrange(10**9)}",
            "consumer_group": "g",
            "topic": "T",
            "strategy": "AVG",
        }
    )
    for i in range(1000)
]
TEXT = "".join(f"{line}\n" for line in LINES).encode()
WHOLE = gzip.compress(TEXT, mtime=0)


def inflated(data: bytes) -> bytes:
    stream = io.BytesIO(data)
    made = io.BytesIO()
    try:
        for piece in inflate(stream, check(stream)):
            made.write(piece)
    except EOFError:
        pass
    return made.getvalue()


def flipped(data: bytes, bit: int) -> bytes:
    changed = bytearray(data)
    changed[bit >> 3] ^= 1 << (bit & 7)
    return bytes(changed)


def test_members_and_padding_are_read_on_and_anything_else_behind_is_damage() -> None:
    assert inflated(WHOLE + WHOLE) == TEXT + TEXT
    assert inflated(WHOLE + bytes(512)) == TEXT
    assert inflated(WHOLE + bytes(3) + WHOLE) == TEXT + TEXT
    with pytest.raises(DecodeError, match="damaged_gzip: the compressed stream is damaged: incorrect header check"):
        check(io.BytesIO(WHOLE + b"garbage"))


@pytest.mark.parametrize("at", [-1, -5, -20, 5000, 12])
def test_what_is_damaged_is_refused_before_a_byte_is_given(at: int) -> None:
    data = bytearray(WHOLE)
    data[at] ^= 0xFF
    with pytest.raises(DecodeError, match="damaged_gzip"):
        check(io.BytesIO(bytes(data)))


def test_a_truncated_stream_gives_what_lies_before_its_end() -> None:
    stream = io.BytesIO(WHOLE[: len(WHOLE) // 2])
    assert check(stream) == Checked(len(WHOLE) // 2, truncated=True)
    assert TEXT.startswith(inflated(stream.getvalue()))
    assert len(inflated(stream.getvalue())) > len(TEXT) // 4
    assert inflated(WHOLE + WHOLE[:-100])[: len(TEXT)] == TEXT


def swallowed(data: bytes) -> bytes | None:
    """What zlib makes of a stream that it takes for truncated."""
    member = zlib.decompressobj(gzip_stream.GZIP)
    try:
        found = member.decompress(data)
    except zlib.error:
        return None
    return None if member.eof else found


@pytest.mark.parametrize("size", [450, 3000, 60_000])
def test_a_bit_that_makes_a_stream_run_past_its_end_is_damage(size: int) -> None:
    data, past, false = gzip.compress(TEXT[:size]), 0, 0
    for bit in range(8 * max(0, len(data) - 100), 8 * len(data)):
        damaged = flipped(data, bit)
        found = swallowed(damaged)
        if found is None:
            continue
        past += 1
        false += any(line not in TEXT for line in found.split(b"\n")[:-1])
        with pytest.raises(DecodeError, match="continues after its end marker"):
            check(io.BytesIO(damaged))
    assert 0 < false <= past


def test_a_member_that_swallows_the_next_is_damage() -> None:
    """The length of the last member says nothing of the one before; that it is whole does."""
    first, empty, past = gzip.compress(TEXT * 20), gzip.compress(b""), 0
    for bit in range(8 * (len(first) - 60), 8 * len(first)):
        damaged = flipped(first, bit) + empty
        if swallowed(damaged) is not None:
            past += 1
            with pytest.raises(DecodeError, match="continues after its end marker"):
                check(io.BytesIO(damaged))
    assert past > 0


def test_a_stream_that_holds_the_signs_of_a_member_is_not_damaged_for_that() -> None:
    stored = zlib.compressobj(0, zlib.DEFLATED, 31)
    text = (b"\x1f\x8b\x08\x00 no member\n" * 300) + TEXT * 40
    data = stored.compress(text) + stored.flush()
    assert check(io.BytesIO(data[:-500_000])).truncated


def header(flags: int, beside: bytes = b"") -> bytes:
    return b"\x1f\x8b\x08" + bytes([flags]) + bytes(5) + b"\xff" + beside


def member(text: bytes, begin: bytes, level: int = 6, strategy: int = zlib.Z_DEFAULT_STRATEGY) -> bytes:
    packed = zlib.compressobj(level, zlib.DEFLATED, -15, 8, strategy)
    return begin + packed.compress(text) + packed.flush() + struct.pack("<II", zlib.crc32(text), len(text))


NAME, FIELDS = b"pull_log.jsonl\0", b"\x05\0abcdename\0comment\0"
CHECKED_HEADER = header(2 + 4 + 8 + 16, FIELDS)
CHECKED_HEADER += struct.pack("<H", zlib.crc32(CHECKED_HEADER) & 0xFFFF)
SHORT = TEXT[:300]
STREAMS = {
    "plain": member(TEXT[:3000], header(0)),
    "fixed codes": member(SHORT, header(0), strategy=zlib.Z_FIXED),
    "stored": member(SHORT, header(0), level=0),
    "empty": member(b"", header(0)),
    "name": member(SHORT, header(8, NAME)),
    "fields": member(SHORT, header(4 + 8 + 16, FIELDS)),
    "checked header": member(SHORT, CHECKED_HEADER),
    "two members": member(SHORT, header(8, NAME)) + member(SHORT, header(0)),
    "padded": member(SHORT, header(0)) + bytes(9) + member(SHORT, header(0)) + bytes(5),
}


def outcome(data: bytes) -> tuple[str, bytes]:
    """What is said of a stream, and what is read of it."""
    try:
        said = str(check(io.BytesIO(data)))
    except DecodeError as error:
        return str(error), b""
    return said, inflated(data)


@pytest.mark.parametrize("read", [gzip_stream.READ, 7])
@pytest.mark.parametrize("name", STREAMS)
def test_each_flipped_bit_and_each_cut_is_judged_as_zlib_alone_does(name: str, read: int, monkeypatch) -> None:
    data = STREAMS[name]
    monkeypatch.setattr(gzip_stream, "READ", read)
    streams = [
        data,
        *(flipped(data, bit) for bit in range(8 * len(data))),
        *(data[:end] for end in range(2, len(data))),
    ]
    found = [outcome(stream) for stream in streams]
    monkeypatch.setattr(gzip_stream, "_is_usual", lambda data: False)
    assert found == [outcome(stream) for stream in streams]
    assert found[0][1] == b"".join(gzip.decompress(data).splitlines(keepends=True))
    assert {said.partition(":")[0] for said, _ in found if said.startswith("damaged")} == {"damaged_gzip"}


def test_usual_streams_are_not_left_to_zlib(monkeypatch) -> None:
    monkeypatch.setattr(gzip_stream.zlib, "decompressobj", None)
    for data in (WHOLE, gzip.compress(TEXT), STREAMS["name"], STREAMS["two members"], STREAMS["padded"]):
        assert inflated(data)


def test_memory_is_bounded_however_far_a_stream_inflates() -> None:
    packed = zlib.compressobj(9, zlib.DEFLATED, 31)
    bomb = b"".join(packed.compress(bytes(1 << 20)) for _ in range(64)) + packed.flush()
    assert len(bomb) < 100_000
    stream = io.BytesIO(bomb)
    assert max(map(len, inflate(stream, check(stream)))) <= gzip_stream.CHUNK


def reading(path: Path) -> LineReader:
    return LineReader(str(path), KINDS["rebalance_log"].decode)


def test_what_is_written_while_a_file_is_read_is_left_for_the_next_run(tmp_path, monkeypatch) -> None:
    path = tmp_path / "rebalance_log.jsonl.gz"
    path.write_bytes(WHOLE[:3000])
    seen = check

    def grown(stream):
        found = seen(stream)
        path.write_bytes(WHOLE + WHOLE)
        return found

    before = [number for number, _, _ in reading(path)]
    monkeypatch.setattr("mqreplay.ingest.lines.check", grown)
    reader = reading(path)
    assert [number for number, _, _ in reader] == before
    assert [refused.code for refused in reader.refused] == ["torn_gzip"]


@pytest.mark.parametrize("later", [WHOLE[:2000], WHOLE[:2000] + bytes(2000) + WHOLE[4000:], b""])
def test_a_file_that_changes_while_it_is_read_is_told_of(tmp_path, monkeypatch, later) -> None:
    path = tmp_path / "rebalance_log.jsonl.gz"
    path.write_bytes(WHOLE)
    seen = check

    def changed(stream):
        found = seen(stream)
        path.write_bytes(later)
        return found

    monkeypatch.setattr("mqreplay.ingest.lines.check", changed)
    reader = reading(path)
    good = sum(1 for _ in reader)
    assert reader.refused[-1].code == "changed"
    assert reader.lines == good + len(reader.refused)
    assert reader.reason is not None
