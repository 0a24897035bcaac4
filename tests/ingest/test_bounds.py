"""Kept refused rows are bounded, all refused rows are counted, and files of extreme size are not read."""

from __future__ import annotations

import gzip
import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from ingest.arrow_schemas import schema_of
from mqreplay.decode.kinds import KINDS
from mqreplay.ingest import lines
from mqreplay.ingest.brokers import cluster_of, read_brokers
from mqreplay.ingest.diffs import Source
from mqreplay.ingest.entries import SnapshotFile
from mqreplay.ingest.ledger import FileEntry, Ledger
from mqreplay.ingest.lines import LineReader, Refusals
from mqreplay.ingest.manifest import NewFile
from mqreplay.ingest.recording import RecordedFile
from mqreplay.ingest.records import FileStats, decode_lines
from mqreplay.settings import IngestSettings
from mqreplay.words.errors import DecodeError

GOOD = b'{"request_ts":1795228808477,"client_id":"c","consumer_group":"g","topic":"t","queue_id":0,"broker_name":"b",'
GOOD += b'"queue_offset":7}\n'


def told_of(path: Path, kind: str = "pull_log", most: int = 1000) -> FileStats:
    told = FileStats()
    reader = LineReader(str(path), KINDS[kind].decode, refused=Refusals(most))
    told.rows = sum(rows.num_rows for rows in decode_lines(reader, "d", kind, schema_of(kind), told))
    return told


def test_the_first_refused_lines_are_kept_and_all_are_counted(tmp_path):
    path = tmp_path / "pull_log.jsonl"
    path.write_bytes(b"".join(b"bad %d\n" % n + GOOD for n in range(50)))
    told = told_of(path, most=10)
    assert (told.lines, told.rows, told.quarantined) == (100, 50, 50)
    assert [row.line_number for row in told.refused] == [*range(1, 21, 2), 0]
    assert (told.refused[-1].code, told.refused[-1].reason) == ("more", "and 40 more lines were refused")
    assert len(told_of(path, most=50).refused) == 50
    assert [row.code for row in told_of(path, most=0).refused] == ["more"]


def test_the_bytes_kept_of_a_file_are_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr(lines, "KEPT_OF_FILE", 10_000)
    path = tmp_path / "pull_log.jsonl"
    path.write_bytes(b"".join(b"%d " % n + b"x" * 6000 + b"\n" for n in range(50)))
    told = told_of(path)
    assert [len(row.content) for row in told.refused[:4]] == [4096, 4096, 10_000 - 2 * 4096, 0]
    assert len(told.refused) == told.quarantined == 50


def test_reasons_are_bounded_too(tmp_path):
    name = b"n" * 2_000_000
    path = tmp_path / "pull_log.jsonl"
    path.write_bytes(b'{"%s":1,"%s":2}\n' % (name, name))
    told = told_of(path)
    assert told.refused[0].code == "duplicate_key"
    assert len(pickle.dumps(told)) < 10_000


def test_lines_alike_are_refused_alike(tmp_path):
    path = tmp_path / "pull_log.jsonl"
    path.write_bytes(b"{\n" * 3 + b"{}\n" + b"{\n{")
    told = told_of(path)
    torn = "torn: the line is cut short (Expecting property name enclosed in double quotes); the recorder died in it"
    reasons = [row.reason.split(" (byte")[0] for row in told.refused]
    assert reasons[:3] == [torn] * 3
    assert reasons[4] == torn
    assert [row.code for row in told.refused] == ["torn", "torn", "torn", "missing_field", "torn", "torn"]
    assert reasons[5].startswith("the file ends within this line")


def test_a_line_of_too_many_objects_is_not_decoded(tmp_path, monkeypatch):
    monkeypatch.setattr(lines, "MOST_CONTAINERS", 100)
    path = tmp_path / "pull_log.jsonl"
    path.write_bytes(GOOD[:-2] + b',"x":[' + b"{}," * 98 + b"0]}\n" + GOOD[:-2] + b',"x":[' + b"{}," * 99 + b"0]}\n")
    told = told_of(path)
    assert (told.rows, [(row.line_number, row.code) for row in told.refused]) == (1, [(2, "too_long")])


def test_the_kept_and_the_count_add_up_in_the_ledger(tmp_path):
    path = tmp_path / "pull_log.jsonl"
    path.write_bytes(b"bad\n" * 5000)
    told = told_of(path)
    entry = FileEntry(NewFile(RecordedFile("", "pull_log.jsonl", "pull_log", 0), ""))
    entry.rows_in, entry.rows_out, entry.rows_quarantined = told.lines, told.rows, told.quarantined
    entry.settle()
    assert (entry.status, entry.rows_in, entry.rows_duplicate) == ("refused", 5000, 0)


def snapshots(tmp_path, texts: list[bytes], limits: IngestSettings) -> list[dict[str, object]]:
    listed = []
    for ts, text in enumerate(texts):
        (tmp_path / f"{ts}.json").write_bytes(text)
        listed.append(SnapshotFile(str(tmp_path / f"{ts}.json"), f"{ts}", "consumer_offset", "consumerOffset.json", ts))
    rows = Source("b-0", "b", 0, None, limits=limits).read_all(listed)
    return [row for row in rows if isinstance(row, dict)]


def strange(count: int) -> bytes:
    keys = ",".join(f'"strange-{n:05d}":{{0:1}}' for n in range(count))
    return b'{"offsetTable":{"t@g":{0:5},%s}}' % keys.encode()


def test_keys_that_name_nothing_are_bounded(tmp_path):
    rows = snapshots(tmp_path, [strange(30), strange(30), strange(31)], IngestSettings(quarantine_rows=10))
    refused = [(row["path"], row["code"], row["detail_key"]) for row in rows if row["out"] == "quarantine"]
    first = [("0", "orphan_key", f"strange-{n:05d}") for n in range(10)]
    # A file that is the one before, byte for byte, tells nothing anew.
    assert refused == [*first, ("0", "more", "more"), ("2", "more", "more")]
    assert [row["reason"] for row in rows if row.get("code") == "more"] == [
        "and 20 more keys were refused",
        "and 21 more keys were refused",
    ]
    files = [(row["rows_in"], row["rows_out"], row["rows_quarantined"]) for row in rows if row["out"] == "file"]
    assert files == [(31, 1, 30), (31, 0, 0), (32, 0, 21)]


def test_a_key_of_megabytes_is_told_by_its_beginning(tmp_path):
    text = b'{"offsetTable":{"t@g":{0:5},"%s":{0:1},"%s!":{0:1}}}' % (b"k" * 2_000_000, b"k" * 2_000_000)
    rows = snapshots(tmp_path, [text], IngestSettings())
    keys = [str(row["detail_key"]) for row in rows if row["out"] == "quarantine"]
    assert len(set(keys)) == 2
    assert all(key.startswith("k" * 255 + "… ") and len(key) < 300 for key in keys)
    assert len(pickle.dumps(rows)) < 10_000


def test_a_snapshot_beyond_the_size_is_not_read(tmp_path):
    path = tmp_path / "0.json"
    path.write_bytes(b"")
    with path.open("r+b") as file:
        file.truncate(1 << 40)
    file = SnapshotFile(str(path), "0", "consumer_offset", "consumerOffset.json", 0)
    quarantined, entry = Source("b-0", "b", 0, None, limits=IngestSettings(snapshot_mb=2)).read_all([file])
    assert (quarantined["code"], entry["status"], entry["rows_quarantined"]) == ("too_large", "refused", 1)
    assert "1,099,511,627,776 bytes, and at most 2,097,152 are read" in quarantined["reason"]
    assert "snapshot_mb" in quarantined["advice"]
    os.truncate(path, 2 * 1024 * 1024)
    quarantined, _ = Source("b-0", "b", 0, None, limits=IngestSettings(snapshot_mb=2)).read_all([file])
    assert quarantined["code"] == "nul_bytes"


def test_a_brokers_json_beyond_the_size_is_not_read(tmp_path, monkeypatch):
    (tmp_path / "brokers.json").write_text('{"cluster": "c", "brokers": {}}')
    file = RecordedFile(str(tmp_path), "brokers.json", "brokers", 0)
    ledger = Ledger()
    assert cluster_of([file]) == "c"
    assert read_brokers(NewFile(file, ""), "c", None, ledger, most_bytes=10) == []
    assert [row.code for row in ledger.refused] == ["too_large"]
    monkeypatch.setattr("mqreplay.ingest.brokers.LARGEST_BROKERS_FILE", 10)
    assert cluster_of([file]) is None


def test_a_file_that_grows_while_it_is_read_is_read_no_further(tmp_path, monkeypatch):
    path = tmp_path / "brokers.json"
    path.write_bytes(b"x" * 100)
    looks, looked = os.fstat, []

    def grown(descriptor):
        found = looks(descriptor)
        looked.append(found.st_size)
        if len(looked) == 2:  # the first look was whether it is a file
            path.write_bytes(b"x" * 1000)
        return found

    monkeypatch.setattr(os, "fstat", grown)
    with pytest.raises(DecodeError, match="too_large"):
        lines.read_whole(str(path), None, 200)
    assert looked == [100, 100]


def test_blocks_are_bounded_by_their_bytes(tmp_path):
    path = tmp_path / "pull_log.jsonl"
    many = [b"%07d" % number for number in range(2_000_000)]
    long = [b"x" * (lines.BLOCK // 2), b"y" * (3 * lines.BLOCK), b"z"]
    path.write_bytes(b"\n".join([*many, *long]))
    blocks = list(LineReader(str(path), KINDS["pull_log"].decode).blocks())
    assert b"\n".join(block.text for block in blocks).split(b"\n") == [*many, *long]
    assert [block.first for block in blocks[1:]] == [block.first + block.lines for block in blocks[:-1]]
    assert [block.whole for block in blocks] == [True] * (len(blocks) - 1) + [False]
    # A long line comes with what was read before it.
    assert sorted(len(block.text) for block in blocks)[-2] < 2 * lines.BLOCK
    assert sorted(len(block.text) for block in blocks)[-1] < 5 * lines.BLOCK


BOMBS = {
    "short lines": (b"x\n", 3_000_000),
    "usual lines": (b'{"request_ts": 1795229406000, "client_id": "c", "bad": ' + b"y" * 150 + b"\n", 1_000_000_000),
    "lines of 16 MiB": (b"{" * (16 << 20) + b"\n", 1_000_000_000),
    "lines of objects": (b'{"x":[' + b'{"a":1},' * 2_000_000 + b"0]}\n", 200_000_000),
}
# Not ru_maxrss: a process begins with that of the one that started it, and then does not seem to grow.
MOST = """
def most():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM:"))
"""
READ = (
    MOST
    + """
import sys
from ingest.test_bounds import told_of
from pathlib import Path
told_of(Path(sys.argv[2]))
before = most()
told = told_of(Path(sys.argv[1]))
print(told.lines, told.rows, told.quarantined, len(told.refused), most() - before)
"""
)


def exploded(tmp_path, name: str) -> tuple[int, ...]:
    """Lines, rows, refused, kept, and KB of more memory of a process that reads a bomb."""
    line, size = BOMBS[name]
    with gzip.open(tmp_path / "pull_log.jsonl.gz", "wb", 6) as file:
        block = line * (1_000_000 // len(line) + 1)
        for _ in range(size // len(block)):
            file.write(block)
    (tmp_path / "small.jsonl").write_bytes(GOOD + b"bad\n")
    paths = [str(tmp_path / "pull_log.jsonl.gz"), str(tmp_path / "small.jsonl")]
    tests = Path(__file__).parents[1]
    environment = {"PYTHONPATH": f"{tests.parent / 'lib'}:{tests}", "PATH": ""}
    done = subprocess.run(
        [sys.executable, "-c", READ, *paths], env=environment, capture_output=True, text=True, check=True, timeout=600
    )
    return tuple(int(word) for word in done.stdout.split())


LAND = (
    MOST
    + """
import sys
from pathlib import Path
from ingest.arrow_schemas import schema_of
from mqreplay.decode.kinds import KINDS
from mqreplay.ingest.lines import LineReader, Refusals
from mqreplay.ingest.records import decode_lines
from mqreplay.ingest.records import FileStats
from mqreplay.lake.table_writer import TableWriter
place = TableWriter(sys.argv[3], schema_of("pull_log"), ("consumer_group",), repeating=("expression",))
for path in sys.argv[2], sys.argv[1]:
    before = most()
    reader = LineReader(path, KINDS["pull_log"].decode, refused=Refusals(10))
    (written,) = place.write(decode_lines(reader, "d", "pull_log", place.asked, FileStats()))
print(written.rows, most() - before)
"""
)


@pytest.mark.long
def test_good_lines_of_15_mib_fit_into_400_mb_while_they_are_written(tmp_path):
    line = GOOD[:-2] + b',"expression":"' + b"x" * (15 << 20) + b'"}\n'
    (tmp_path / "large.jsonl.gz").write_bytes(gzip.compress(line) * 40)
    (tmp_path / "small.jsonl").write_bytes(GOOD)
    tests = Path(__file__).parents[1]
    environment = {"PYTHONPATH": f"{tests.parent / 'lib'}:{tests}", "PATH": ""}
    paths = [str(tmp_path / name) for name in ("large.jsonl.gz", "small.jsonl", ".")]
    done = subprocess.run(
        [sys.executable, "-c", LAND, *paths], env=environment, capture_output=True, text=True, check=True, timeout=600
    )
    rows, more = (int(word) for word in done.stdout.split())
    assert rows == 40
    assert more < 400_000  # KB


@pytest.mark.long
def test_a_small_file_of_a_million_bad_lines_stays_small(tmp_path):
    read, rows, refused, kept, more = exploded(tmp_path, "short lines")
    assert (tmp_path / "pull_log.jsonl.gz").stat().st_size < 4_000
    assert (rows, read, kept) == (0, refused, 1001)
    assert refused >= 1_000_000
    assert more < 100_000


@pytest.mark.long
@pytest.mark.parametrize("name", sorted(BOMBS))
def test_a_gigabyte_of_bad_lines_fits_into_300_mb(tmp_path, name):
    read, rows, refused, _, more = exploded(tmp_path, name)
    assert (rows, read) == (0, refused)
    assert more < 300_000
