"""SHA256SUMS of a recording: listed files are read only if unchanged."""

from __future__ import annotations

import gzip
import hashlib
import subprocess
import tracemalloc

import pytest

from mqreplay.ingest import checksums
from mqreplay.ingest.checksums import MISSING, read_checksums
from mqreplay.ingest.digests import KnownDigests
from mqreplay.ingest.ledger import Ledger
from mqreplay.ingest.listing import find_recordings
from mqreplay.ingest.manifest import KnownFile, NewFile, Plan, plan
from mqreplay.ingest.recorded_files import RecordedFiles
from mqreplay.ingest.recording import RecordedFile

MOMENT = "snapshots/b-0/1795228794427/consumerOffset.json"


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


@pytest.fixture
def recording(tmp_path):
    folder = tmp_path / "recording"
    (folder / MOMENT).parent.mkdir(parents=True)
    (folder / MOMENT).write_text("{}")
    (folder / "pull_log.jsonl").write_text("{}\n")
    (folder / "routes.jsonl").write_text("[]\n")
    return folder


@pytest.fixture
def read(recording, tmp_path):
    """Reads the recording's digests: path -> SHA-256, or the code and the reason of what is not believed."""

    def ask():
        (found,) = KnownDigests(str(tmp_path / "w")).of_recordings(find_recordings([str(recording)])).values()
        assert [file.path for file, _ in found] == sorted(file.path for file, _ in found)
        return {file.path: digest or (file.trouble_code, file.trouble) for file, digest in found}

    return ask


def lines_of(recording) -> tuple[Ledger, list[tuple[int, str]]]:
    """What the ledger says of the list, and the lines refused."""
    ledger = Ledger()
    file = RecordedFile(str(recording), "SHA256SUMS", "checksums", 0)
    ledger.enter_checksums([NewFile(file, "d" * 64)], 1000)
    ledger.settle()
    (entry,) = ledger.files.values()
    assert entry.rows_in == entry.rows_quarantined + entry.rows_duplicate
    assert all(row.advice and row.path == "SHA256SUMS" for row in ledger.refused)
    return entry, [(row.line_number, row.code) for row in ledger.refused]


def test_what_sha256sum_writes_is_understood(recording, read):
    (recording / "odd\\name\n.txt").write_text("odd")
    command = (
        "find . -type f ! -name SHA256SUMS -exec sha256sum {} + >SHA256SUMS; sha256sum -b routes.jsonl >>SHA256SUMS"
    )
    subprocess.run(["sh", "-c", command], cwd=recording, check=True)
    found = read()
    assert found[MOMENT] == sha256("{}")
    assert found["pull_log.jsonl"] == sha256("{}\n")
    assert found["odd\\name\n.txt"] == sha256("odd")
    entry, refused = lines_of(recording)
    assert (entry.status, entry.rows_in, refused) == ("read", 5, [])
    for path in (MOMENT, "pull_log.jsonl", "routes.jsonl", "odd\\name\n.txt"):
        before = (recording / path).read_text()
        (recording / path).write_text(before + " ")
        assert read()[path][0] == "checksum"
        (recording / path).write_text(before)
    assert read() == found


def test_a_file_that_differs_is_refused_and_read_once_it_is_mended(recording, read):
    (recording / "SHA256SUMS").write_text(f"{sha256('{}')}  pull_log.jsonl\n")
    code, reason = read()["pull_log.jsonl"]
    assert code == "checksum"
    assert reason == f"its SHA-256 is {sha256('{}' + chr(10))}, and SHA256SUMS says {sha256('{}')}"
    assert read()["routes.jsonl"] == sha256("[]\n")
    (recording / "pull_log.jsonl").write_text("{}")
    assert read()["pull_log.jsonl"] == sha256("{}")


def test_a_list_that_contradicts_itself_refuses_the_file(recording, read):
    good, other = sha256("{}\n"), sha256("")
    (recording / "SHA256SUMS").write_text(f"{good}  pull_log.jsonl\n{good}  pull_log.jsonl\n")
    assert read()["pull_log.jsonl"] == good
    (recording / "SHA256SUMS").write_text(f"{good}  pull_log.jsonl\n{other}  pull_log.jsonl\n")
    assert read()["pull_log.jsonl"][0] == "checksum"


def test_a_file_that_is_listed_and_missing_is_told_of(recording, read):
    (recording / "SHA256SUMS").write_text(f"{sha256('')}  heartbeats.jsonl.gz\n{sha256('')}  broker.log\n")
    found = read()
    assert found["heartbeats.jsonl.gz"] == ("missing", "SHA256SUMS lists it, but it is missing")
    assert found["broker.log"][0] == "missing"
    (recording / "heartbeats.jsonl.gz").write_bytes(b"")
    assert read()["heartbeats.jsonl.gz"] == sha256("")


def test_lines_that_cannot_be_read_are_refused_and_the_others_count(recording, read):
    bad = ["nonsense", f"{sha256('')} one-blank", "", f"{'g' * 64}  no-hex", f"{sha256('')}  /etc/passwd"]
    bad += [f"{sha256('')}  ../elsewhere", f"{sha256('')}  a/../../b", f"{sha256('')}  "]
    text = "\n".join([*bad, f"{sha256('')}  ./pull_log.jsonl\r", f"{sha256('')}  routes.jsonl"])
    (recording / "SHA256SUMS").write_text(text)
    found = read()
    assert found["pull_log.jsonl"][0] == "checksum"
    assert found["routes.jsonl"] == sha256("[]\n")  # the last line has no end: its path may be longer
    assert "/etc/passwd" not in found
    entry, refused = lines_of(recording)
    assert refused == [
        (1, "bad_syntax"),
        (2, "bad_syntax"),
        (4, "bad_syntax"),
        (5, "outside"),
        (6, "outside"),
        (7, "outside"),
        (8, "bad_syntax"),
        (10, "torn"),
    ]
    assert (entry.status, entry.rows_in, entry.rows_quarantined) == ("read", 9, 8)


def test_a_list_that_names_itself_is_no_contradiction(recording, read):
    (recording / "SHA256SUMS").write_text(f"{sha256('')}  SHA256SUMS\n")
    assert len(read()["SHA256SUMS"]) == 64


def test_what_is_no_list_at_all_is_refused(recording):
    (recording / "SHA256SUMS").write_bytes(b"\x1f\x8bno gzip at all")
    entry, refused = lines_of(recording)
    assert (entry.status, refused) == ("refused", [(0, "damaged_gzip")])
    assert read_checksums(RecordedFile(str(recording), "SHA256SUMS", "checksums", 0)).checksums == {}


def test_the_first_missing_files_have_a_row_each_and_the_others_are_counted(recording, read):
    listed = [f"{sha256('')}  gone-{number:05d}.jsonl" for number in range(1_341)]
    (recording / "SHA256SUMS").write_text("\n".join([*listed, *listed[:100], f"{sha256('[]')}  routes.jsonl", ""]))
    found = read()
    missing = {path: trouble for path, trouble in found.items() if trouble[0] == "missing"}
    more = "and 1,241 more lines list files that are not there"
    assert missing.pop("SHA256SUMS/1241 more") == ("missing", more)
    assert missing == {f"gone-{number:05d}.jsonl": ("missing", MISSING) for number in range(100)}
    assert found["routes.jsonl"][0] == "checksum"  # a line behind them counts
    (recording / "SHA256SUMS").write_text("\n".join([*listed[:101], ""]))
    assert read()["SHA256SUMS/1 more"][1] == "and 1 more line lists a file that is not there"
    (recording / "SHA256SUMS").write_text("\n".join([*listed[:100], ""]))
    assert not any(path.startswith("SHA256SUMS/") for path in read())


def test_the_row_of_more_missing_files_settles_and_follows_their_number(recording):
    folder = str(recording)
    lists = RecordedFile(folder, "SHA256SUMS", "checksums", 0)

    def work(count: int, known: list[KnownFile]):
        lines = [f"{sha256('')}  gone-{number:05d}.jsonl\n" for number in range(100 + count)]
        (recording / "SHA256SUMS").write_text("".join(lines))
        return plan(list(checksums.compared(RecordedFiles.of([(lists, sha256(str(count)))]))), known, [folder])

    first = work(5, [])
    ledger = Ledger()
    for new in first.not_read:
        ledger.enter_not_read(new)
    ledger.enter_unreadable(first.unreadable)
    ledger.enter_checksums(first.new, 10)
    known = [KnownFile(folder, row[2], row[3], row[4], 0, row[6], row[7]) for row in ledger.file_rows("c")]
    (row,) = [row for row in ledger.refused if row.path.startswith("SHA256SUMS/")]
    assert (row.code, row.reason) == ("missing", "and 5 more lines list files that are not there")
    assert work(5, known) == Plan(seen=102)
    again = work(6, known)
    assert [new.file.path for new in again.unreadable] == ["SHA256SUMS/6 more"]
    assert [old.path for old in again.gone_places] == ["SHA256SUMS/5 more"]


def test_a_path_with_ever_more_checksums_has_two_of_them(recording, read):
    lines = [f"{number:064x}  pull_log.jsonl\n" for number in range(50_000)]
    (recording / "SHA256SUMS").write_bytes(gzip.compress("".join(lines).encode()))
    code, reason = read()["pull_log.jsonl"]
    assert code == "checksum"
    assert reason.endswith(f"SHA256SUMS says {0:064x} and {1:064x}")


def test_what_is_kept_of_a_list_is_of_files_that_are_there(recording):
    lines = b"".join(b"%064x  gone-%07d.jsonl\n" % (number, number) for number in range(100_000))
    (recording / "SHA256SUMS").write_bytes(gzip.compress(lines + b"%064x  routes.jsonl\n" % 7))
    del lines
    file = RecordedFile(str(recording), "SHA256SUMS", "checksums", 0)
    tracemalloc.start()
    found = read_checksums(file, there={"routes.jsonl"})
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (found.lines, found.checksums) == (100_001, {"routes.jsonl": f"{7:064x}"})
    assert (len(found.missing), found.more_missing) == (100, 99_900)
    assert most < 8_000_000


@pytest.mark.parametrize("packed", [bytes, gzip.compress])
def test_a_list_beyond_the_size_is_refused_whole(recording, read, monkeypatch, packed):
    line = f"{sha256('')}  routes.jsonl\n".encode()
    monkeypatch.setattr(checksums, "LARGEST_LIST", 10 * len(line))
    (recording / "SHA256SUMS").write_bytes(packed(line * 10))
    assert read()["routes.jsonl"][0] == "checksum"
    (recording / "SHA256SUMS").write_bytes(packed(line * 11))
    assert read()["routes.jsonl"] == sha256("[]\n")
    entry, refused = lines_of(recording)
    assert (entry.status, entry.rows_in, refused) == ("refused", 1, [(0, "too_large")])
    assert entry.reason == "more than 790 bytes, uncompressed"


def test_a_name_that_no_file_has_is_refused(recording, read):
    digits = "9" * 5_000  # more than Python reads as a number
    path = f"snapshots/b-{digits}/1795228794427/consumerOffset.json"
    (recording / "SHA256SUMS").write_text(f"{sha256('')}  {path}\n{sha256('')}  {'x' * 255}\n")
    assert {path for path, trouble in read().items() if trouble[0] == "missing"} == {"x" * 255}
    assert lines_of(recording)[1] == [(1, "bad_syntax")]
