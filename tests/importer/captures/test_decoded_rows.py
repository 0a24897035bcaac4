"""Rows of whole captures, as they were before captures were read once and by quicker steps."""

from __future__ import annotations

import gzip
import hashlib
import json
import lzma
import struct
import tarfile
import tempfile
from collections.abc import Callable, Iterator

from each_case import for_each
from importer.captures.small_captures import CAPTURE
from mqreplay.importer.captures.captured_records import Captures
from tests_shared import ROOT

DATA = ROOT / "tests" / "data"
Packet = tuple[bytes, bytes]  # its times and lengths, its bytes


def capture_of(name: str) -> bytes:
    if name == "sample":
        return gzip.decompress(CAPTURE.read_bytes())
    if name == "pop":
        return lzma.decompress((DATA / "pop-5.3.3.pcap.xz").read_bytes())
    with tarfile.open(DATA / f"{name}.tar.xz") as archive:
        member = next(one for one in archive if one.name.endswith("night.pcap"))
        stream = archive.extractfile(member)
        assert stream is not None
        return stream.read()


def packets(data: bytes) -> Iterator[Packet]:
    at = 24
    while at < len(data):
        end = at + 16 + struct.unpack_from("<I", data, at + 8)[0]
        yield data[at : at + 16], data[at + 16 : end]
        at = end


def sorted_by(some: list[Packet], place: Callable[[int], int]) -> list[Packet]:
    return [some[number] for number in sorted(range(len(some)), key=place)]


def whole(some: list[Packet]) -> list[Packet]:
    return some


def lost(some: list[Packet]) -> list[Packet]:
    return [packet for number, packet in enumerate(some) if number % 50 != 7]


def shuffled(some: list[Packet]) -> list[Packet]:
    return sorted_by(some, lambda number: number + (number * 7919 % 13 if number % 5 == 0 else 0))


def repeated(some: list[Packet]) -> list[Packet]:
    again = [packet for packet in some for _ in range(2)]
    return sorted_by(again, lambda number: number // 2 + number % 2 * 40)


def cut(some: list[Packet]) -> list[Packet]:
    return [(head[:8] + struct.pack("<I", min(len(data), 420)) + head[12:], data[:420]) for head, data in some]


def damaged(some: list[Packet]) -> list[Packet]:
    return cut(lost(shuffled(repeated(some))))


def digest(captures: Captures) -> str:
    """Return the digest of all rows in order, and of what has none."""
    rows = hashlib.sha256()
    for record in captures.records():
        rows.update(json.dumps(record).encode())
    facts = [sorted(captures.left_out.items()), captures.notes, vars(captures.cluster)]
    rows.update(json.dumps(facts).encode())
    return rows.hexdigest()[:16]


# By capture and what happened to its packets.
DIGESTS: dict[tuple[str, Callable[[list[Packet]], list[Packet]]], str] = {
    ("sample", whole): "1aa70db8eee8ab29",
    ("sample", damaged): "abdcd040914f5e1b",
    ("pop", whole): "d6f7356f14fe6e1f",
    ("pop", cut): "e880a3e73a45c4d9",
    ("hooked-4.9.7", shuffled): "05cca5c81616e019",
    ("hooked-4.9.7", damaged): "2cb571d122c9c1cd",
    ("hooked-5.3.3", repeated): "3b93b421fb8202a9",  # as of the whole capture
    ("hooked-5.3.3", lost): "189ab6a318cabba6",
}


@for_each(DIGESTS.items())
def test_rows_are_what_they_were(case: tuple[str, Callable[[list[Packet]], list[Packet]]], expected: str) -> None:
    name, changed = case
    data = capture_of(name)
    with tempfile.NamedTemporaryFile() as capture:
        capture.write(data[:24] + b"".join(head + frame for head, frame in changed(list(packets(data)))))
        capture.flush()
        assert digest(Captures([capture.name])) == expected
