"""A file that is cut short, or in which a bit flipped, never gives a row that nobody wrote.

The short forms try some places of each file, the long ones every place of enough files for the counts of
docs/reliability.md.
"""

from __future__ import annotations

import gzip
import hashlib
import random
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from ingest.arrow_schemas import schema_of
from mqreplay.decode.brokers import decode_brokers
from mqreplay.decode.kinds import KINDS
from mqreplay.ingest.diffs import Source
from mqreplay.ingest.digests import KnownDigests
from mqreplay.ingest.entries import Moves, SnapshotFile
from mqreplay.ingest.ledger import FileEntry
from mqreplay.ingest.lines import LineReader, Refusals
from mqreplay.ingest.listing import find_recordings
from mqreplay.ingest.manifest import NewFile
from mqreplay.ingest.recording import RecordedFile
from mqreplay.ingest.records import FileStats, decode_lines
from mqreplay.words.errors import DecodeError
from tests_shared import ROOT, SAMPLE

NIGHT = SAMPLE / "orders-4.9.7"
LINES = 12
SHORT, LONG_CUTS, LONG_FLIPS = 40, 20_000, 5_000  # tries: of each file; of all files
SNAPSHOTS = ("consumerOffset.json", "topics.json", "subscriptionGroup.json")


def written(kind: str, lines: int = LINES) -> list[bytes]:
    """Lines of that kind as a recorder wrote them, no two alike; the shortest, so that many places can be tried."""
    if (NIGHT / f"{kind}.jsonl.gz").exists():
        with gzip.open(NIGHT / f"{kind}.jsonl.gz") as stream:
            found = set(stream.read().splitlines())
    else:  # of a kind that hooks do not write
        real = (ROOT / "tests" / "decode" / "data" / f"{kind}.jsonl").read_bytes().splitlines()
        found = {line[:16] + b"%03d" % n + line[19:] for n in range(lines) for line in real}  # the last digits of ts
    return sorted(found, key=lambda line: (len(line), line))[:lines]


def deflated(data: bytes, level: int = 6, strategy: int = zlib.Z_DEFAULT_STRATEGY, flush: int = 0) -> bytes:
    """One member of gzip; after each ``flush`` bytes all is written out, as recorders do that stay open."""
    making = zlib.compressobj(level, zlib.DEFLATED, 31, 8, strategy)
    parts = [data] if not flush else [data[at : at + flush] for at in range(0, len(data), flush)]
    return b"".join(making.compress(part) + (making.flush(zlib.Z_SYNC_FLUSH) if flush else b"") for part in parts) + (
        making.flush()
    )


def gzipped(lines: Sequence[bytes]) -> dict[str, bytes]:
    """The same lines as several writers compress them."""
    text = b"".join(line + b"\n" for line in lines)
    return {
        "usual": gzip.compress(text, mtime=0),
        "named": gzip.compress(text, mtime=0)[:3] + b"\x08" + bytes(6) + b"a.jsonl\0" + gzip.compress(text)[10:],
        "stored": deflated(text, 0),
        "fixed codes": deflated(text, strategy=zlib.Z_FIXED),
        "flushed": deflated(text, flush=300),
        "a member a line": b"".join(deflated(line + b"\n") for line in lines),
        "two members": deflated(lines[0] + b"\n") + deflated(b"".join(line + b"\n" for line in lines[1:])),
        "an empty end": deflated(text) + deflated(b""),
    }


class Rows:
    """Reads files of one kind as the workers do."""

    def __init__(self, folder: Path, kind: str) -> None:
        self.folder, self.kind, self.schema = folder, kind, schema_of(kind)

    def of(self, data: bytes, suffix: str) -> list[str]:
        """The rows of a file with these bytes, as text. Its counts add up, and say the truth about it."""
        path = self.folder / f"{self.kind}.jsonl{suffix}"
        path.write_bytes(data)
        reader = LineReader(str(path), KINDS[self.kind].decode, refused=Refusals(1000), root=str(self.folder))
        told = FileStats()
        rows = [row for batch in decode_lines(reader, "d", self.kind, self.schema, told) for row in batch.to_pylist()]
        assert told.lines == len({row["record_id"] for row in rows}) + told.quarantined
        entry = FileEntry(NewFile(RecordedFile("", path.name, self.kind, 0), ""))
        entry.rows_in, entry.rows_quarantined, entry.reason = told.lines, told.quarantined, told.reason
        entry.settle()
        assert (entry.status == "refused") == (not rows and told.lines > 0)
        assert entry.reason == told.reason or (told.reason is None and entry.status == "refused")
        return [str(row) for row in rows]


def some(places: int, tries: int | None, seed: int) -> Iterator[int]:
    """All places of a file, or so many of them, the first and the last among them."""
    if tries is None or tries >= places:
        yield from range(places)
        return
    yield from sorted({0, places - 1, *random.Random(seed).sample(range(places), tries - 2)})


def flipped(data: bytes, bit: int) -> bytes:
    """The data with one bit changed."""
    changed = bytearray(data)
    changed[bit >> 3] ^= 1 << (bit & 7)
    return bytes(changed)


def cut_everywhere(folder: Path, kind: str, lines: Sequence[bytes], tries: int | None) -> tuple[int, int]:
    """Cut a gzipped and a plain file of these lines; give the number of cuts of each."""
    rows, plain = Rows(folder, kind), b"".join(line + b"\n" for line in lines)
    whole = rows.of(plain, "")
    assert len(whole) >= len(lines)
    counts = [0, 0]
    for form, data in gzipped(lines).items():
        assert rows.of(data, ".gz") == whole, form
        for at in some(len(data), tries, 1):
            found = rows.of(data[:at], ".gz")
            assert found == whole[: len(found)], (form, at)
            counts[0] += 1
    for at in some(len(plain), tries, 2):
        found = rows.of(plain[:at], "")
        assert found == whole[: len(found)], at
        counts[1] += 1
    return counts[0], counts[1]


def flip_gzipped(folder: Path, kind: str, lines: Sequence[bytes], tries: int, seed: int) -> int:
    """Flip bits of gzipped files: each gives all rows or none."""
    rows, done = Rows(folder, kind), 0
    whole = rows.of(b"".join(line + b"\n" for line in lines), "")
    for form, data in gzipped(lines).items():
        for bit in some(8 * len(data), tries, seed):
            assert rows.of(flipped(data, bit), ".gz") in ([], whole), (form, bit)
            done += 1
    return done


def flip_plain(folder: Path, kind: str, lines: Sequence[bytes], tries: int, seed: int) -> int:
    """Flip bits of a plain file: the rows of all other lines are as they were, and each line is a row or refused."""
    rows, plain = Rows(folder, kind), b"".join(line + b"\n" for line in lines)
    alone = [rows.of(line + b"\n", "") for line in lines]
    ends = [len(b"".join(line + b"\n" for line in lines[: n + 1])) for n in range(len(lines))]
    for bit in some(8 * len(plain), tries, seed):
        at = next(n for n, end in enumerate(ends) if bit >> 3 < end)
        # Without its line break a line goes on in the next one.
        hit = {at, at + 1} if bit >> 3 == ends[at] - 1 else {at}
        found = rows.of(flipped(plain, bit), "")
        before = [row for n in range(min(hit)) for row in alone[n]]
        after = [row for n in range(max(hit) + 1, len(lines)) for row in alone[n]]
        assert found[: len(before)] == before, bit
        assert found[len(found) - len(after) :] == after, bit
        assert len(found) >= len(before) + len(after), bit
    return min(tries, 8 * len(plain))


def flip_listed(folder: Path, kind: str, lines: Sequence[bytes], tries: int, seed: int) -> int:
    """Flip bits of a plain file that SHA256SUMS lists, and of the list: the file is read only as it was written."""
    recording, plain = folder / f"listed-{kind}", b"".join(line + b"\n" for line in lines)
    recording.mkdir()
    path, sums = recording / f"{kind}.jsonl", recording / "SHA256SUMS"
    (recording / "brokers.json").write_text("{}")
    listed = f"{hashlib.sha256(plain).hexdigest()}  {path.name}\n".encode()
    path.write_bytes(plain)
    sums.write_bytes(listed)
    digests = KnownDigests(str(folder / "warehouse"))

    def read() -> dict[str, tuple[str, str]]:
        (found,) = digests.of_recordings(find_recordings([str(recording)])).values()
        return {file.path: (sha256, file.trouble_code if file.trouble else "") for file, sha256 in found}

    assert read()[path.name] == (hashlib.sha256(plain).hexdigest(), "")
    for bit in some(8 * len(plain), tries, seed):
        path.write_bytes(flipped(plain, bit))
        assert read()[path.name] == ("", "checksum"), bit
    path.write_bytes(plain)
    for bit in some(8 * len(listed), tries // 10, seed):
        sums.write_bytes(flipped(listed, bit))
        found = read()
        # A damaged line refuses the file, or is refused itself; a damaged name is that of a file that is missing.
        assert found[path.name] in (("", "checksum"), (hashlib.sha256(plain).hexdigest(), "")), bit
    return min(tries, 8 * len(plain))


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_a_file_cut_anywhere_gives_the_lines_before_the_cut(kind: str, tmp_path: Path) -> None:
    cut_everywhere(tmp_path, kind, written(kind, 4), SHORT // 2)


@pytest.mark.first_case
@pytest.mark.parametrize("kind", sorted(KINDS))
def test_a_gzipped_file_with_a_flipped_bit_gives_all_rows_or_none(kind: str, tmp_path: Path) -> None:
    assert flip_gzipped(tmp_path, kind, written(kind, 4), SHORT, 3) > 0


@pytest.mark.first_case
@pytest.mark.parametrize("kind", sorted(KINDS))
def test_a_flipped_bit_of_a_plain_file_reaches_no_other_line(kind: str, tmp_path: Path) -> None:
    assert flip_plain(tmp_path, kind, written(kind, 4), SHORT, 4) > 0


@pytest.mark.parametrize("kind", ["pull_log", "routes"])
def test_a_flipped_bit_of_a_listed_file_is_seen(kind: str, tmp_path: Path) -> None:
    assert flip_listed(tmp_path, kind, written(kind, 4), SHORT, 5) > 0


@pytest.mark.long
def test_every_place_is_cut(tmp_path: Path) -> None:
    done = [cut_everywhere(tmp_path, kind, written(kind, 6), None) for kind in sorted(KINDS)]
    assert sum(gz for gz, _ in done) >= LONG_CUTS
    assert sum(plain for _, plain in done) >= LONG_CUTS


@pytest.mark.long
def test_thousands_of_bits_are_flipped(tmp_path: Path) -> None:
    each = LONG_FLIPS // len(KINDS) + 1
    lines = {kind: written(kind) for kind in sorted(KINDS)}
    assert sum(flip_gzipped(tmp_path, kind, some, each, 6) for kind, some in lines.items()) >= LONG_FLIPS
    assert sum(flip_plain(tmp_path, kind, some, each, 7) for kind, some in lines.items()) >= LONG_FLIPS
    assert sum(flip_listed(tmp_path, kind, some, each, 8) for kind, some in lines.items()) >= LONG_FLIPS


def moved(folder: Path, name: str, data: bytes) -> tuple[str, list[tuple[object, ...]]]:
    """What a snapshot with these bytes gives: its status, and its entries."""
    at = folder / "snapshots" / "b-0" / "1795228794427"
    at.mkdir(parents=True, exist_ok=True)
    (at / name).write_bytes(data)
    kind = {"topics.json": "topics", "subscriptionGroup.json": "subscription_groups"}.get(name, "consumer_offset")
    source, entries, status = Source("b-0", "b", 0, None), [], ""
    for item in source.read_all([SnapshotFile(str(at / name), name, kind, name, 1795228794427)]):
        if isinstance(item, Moves):
            keys = [source.keys.keys[number] for number in item.entry.tolist()]
            entries += list(zip(keys, item.new.tolist(), strict=True))
        elif item["out"] == "config":
            entries.append((item["topic"], item["payload"]))
        elif item["out"] == "file":
            status = str(item["status"])
            rows_in, rows_out, refused = (item[n] for n in ("rows_in", "rows_out", "rows_quarantined"))
            assert rows_in == (len(entries) or 1)
            assert rows_out + refused == rows_in
    return status, entries


@pytest.mark.first_case
@pytest.mark.parametrize("name", SNAPSHOTS)
def test_a_snapshot_cut_anywhere_is_refused(name: str, tmp_path: Path) -> None:
    data = (SAMPLE / "bulk-5.3.3" / "snapshots" / "rmq-north-0" / "1795229400230" / name).read_bytes()
    status, entries = moved(tmp_path, name, data)
    assert status == "read"
    assert entries
    for at in some(len(data), 1500, 9):
        found = moved(tmp_path, name, data[:at])
        assert found in (("refused", []), ("read", entries)), at
    assert moved(tmp_path, name, data[: len(data) // 2]) == ("refused", [])


def test_brokers_json_cut_anywhere_is_refused() -> None:
    data = (NIGHT / "brokers.json").read_bytes()
    whole = decode_brokers(data)
    refused = 0
    for at in range(len(data)):
        try:
            assert decode_brokers(data[:at]) == whole
        except DecodeError:
            refused += 1
    assert refused >= len(data) - 2
