"""Every entry of a recording has a row in the ledger with its status, the reason, and the advice."""

from __future__ import annotations

import gzip
import hashlib
import os
import shutil
import socket
from dataclasses import replace

import pytest

from mqreplay.settings import load_settings
from tests_shared import SAMPLE, rows_at, run, table_at

SOURCE = SAMPLE / "bulk-5.3.3"
SNAPSHOT = "snapshots/rmq-north-0/{}/consumerOffset.json"
TIMES = ("1795229310204", "1795229400230", "1795229405230")
SECRET = "root:x:0:0:root\n"


def flipped(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


@pytest.fixture(scope="module")
def odd(tmp_path_factory):
    """A recording with one of each odd thing, and a warehouse's place."""
    folder = tmp_path_factory.mktemp("odd")
    recording = folder / "recording"
    recording.mkdir()
    for path in ("brokers.json", "heartbeats.jsonl.gz", "routes.jsonl.gz"):
        shutil.copy(SOURCE / path, recording / path)
    for time in TIMES:
        place = recording / SNAPSHOT.format(time)
        place.parent.mkdir(parents=True)
        shutil.copy(SOURCE / SNAPSHOT.format(time), place)
    pulls = (SOURCE / "pull_log.jsonl.gz").read_bytes()
    lines = gzip.decompress(pulls).splitlines(keepends=True)
    (recording / "pull_log.1.jsonl.gz").write_bytes(gzip.compress(b"".join(lines[:2000]))[:-300])
    (recording / "pull_log.2.jsonl.gz").write_bytes(flipped(gzip.compress(b"".join(lines[2000:4000])), 9000))
    (recording / "pull_log.3.jsonl.gz").write_bytes(b"".join(lines[4000:4010]))
    (recording / "pull_log.4.jsonl").write_bytes(b"bad\n" * 30 + b"".join(lines[4000:4010]))
    (recording / "pull_log.5.jsonl").write_bytes(b"".join(lines[4010:4020]).replace(b"1", b"2", 1))
    os.mkfifo(recording / "offset_commits.jsonl")
    (recording / "assignments.jsonl").symlink_to(recording / "nothing")
    (recording / "consume_log.jsonl.gz").mkdir()
    (folder / "passwd").write_text(SECRET)
    (recording / "produce_log.jsonl").symlink_to(folder / "passwd")
    (recording / "cluster_info.jsonl").symlink_to("/dev/zero")
    late = recording / SNAPSHOT.format("20261121073000")
    late.parent.mkdir(parents=True)
    late.write_bytes((SOURCE / SNAPSHOT.format(TIMES[0])).read_bytes())
    huge = recording / SNAPSHOT.format("1795229406000")
    huge.parent.mkdir(parents=True)
    huge.touch()
    os.truncate(huge, 5 << 20)
    whole = {
        SNAPSHOT.format(TIMES[1]): SOURCE / SNAPSHOT.format(TIMES[2]),
        "routes.jsonl.gz": SOURCE / "routes.jsonl.gz",
    }
    sums = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {name}" for name, path in whole.items()]
    sums += [f"{'0' * 64}  pull_log.5.jsonl", f"{'0' * 64} *topic_stats.jsonl", f"{'0' * 64}  /etc/passwd", "torn"]
    (recording / "SHA256SUMS").write_text("\n".join(sums))
    here = os.getcwd()
    os.chdir(recording)  # a socket's address has hardly room for a path
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("lock_requests.jsonl")
    os.chdir(here)
    return recording, str(folder / "warehouse")


def ingested(odd):
    recording, root = odd
    settings = load_settings()
    few = replace(settings.ingest, quarantine_rows=10, snapshot_mb=4)
    said: list[str] = []
    run("ingest", root, replace(settings, ingest=few), said.append, recordings=[str(recording)])
    files = {row["path"]: row for row in rows_at(root, "bronze.source_file")}
    return files, rows_at(root, "bronze.quarantine"), said


def test_each_has_its_row_and_its_reason(odd):
    _, root = odd
    files, quarantine, _ = ingested(odd)
    assert all(f["rows_in"] == f["rows_out"] + f["rows_quarantined"] + f["rows_duplicate"] for f in files.values())
    kinds = {path: (f["kind"], f["status"]) for path, f in files.items() if f["status"] != "read"}
    assert kinds == {
        "pull_log.2.jsonl.gz": ("pull_log", "refused"),
        "pull_log.3.jsonl.gz": ("pull_log", "refused"),
        "pull_log.5.jsonl": ("pull_log", "refused"),
        "topic_stats.jsonl": ("topic_stats", "refused"),
        SNAPSHOT.format(TIMES[1]): ("consumer_offset", "refused"),
        SNAPSHOT.format("1795229406000"): ("consumer_offset", "refused"),
        SNAPSHOT.format("20261121073000"): ("bad_time", "not_read"),
        "offset_commits.jsonl": ("special", "not_read"),
        "lock_requests.jsonl": ("special", "not_read"),
        "assignments.jsonl": ("broken_link", "not_read"),
        "consume_log.jsonl.gz": ("misnamed_folder", "not_read"),
        "produce_log.jsonl": ("link_outside", "not_read"),
        "cluster_info.jsonl": ("link_outside", "not_read"),
    }
    assert all(files[path]["reason"] for path in kinds)
    assert files["SHA256SUMS"]["kind"] == "checksums"
    cut, bad = files["pull_log.1.jsonl.gz"], files["pull_log.4.jsonl"]
    assert cut["reason"].startswith("truncated: the compressed stream ends within line ")
    assert (cut["rows_out"] > 1000, cut["rows_quarantined"]) == (True, 1)
    assert (bad["rows_in"], bad["rows_out"], bad["rows_quarantined"]) == (40, 10, 30)
    assert table_at(root, "silver.pull").height == cut["rows_out"] + 10
    assert table_at(root, "silver.snapshot").height == 2

    codes = {(row["path"], row["code"]) for row in quarantine if row["line_number"] == 0}
    assert codes == {
        ("pull_log.2.jsonl.gz", "damaged_gzip"),
        ("pull_log.3.jsonl.gz", "damaged_gzip"),
        ("pull_log.4.jsonl", "more"),
        ("pull_log.5.jsonl", "checksum"),
        ("topic_stats.jsonl", "missing"),
        (SNAPSHOT.format(TIMES[1]), "checksum"),
        (SNAPSHOT.format("1795229406000"), "too_large"),
    }
    lines = sorted((row["path"], row["line_number"], row["code"]) for row in quarantine if row["line_number"])
    assert [row for row in lines if row[0] != "pull_log.4.jsonl"] == [
        ("SHA256SUMS", 5, "outside"),
        ("SHA256SUMS", 6, "torn"),
        ("pull_log.1.jsonl.gz", cut["rows_in"], "torn_gzip"),
    ]
    assert sum(row[0] == "pull_log.4.jsonl" for row in lines) == 10
    assert all(row["reason"] and row["advice"] for row in quarantine)
    assert not any(SECRET.encode() in bytes(row["content"] or b"") for row in quarantine)


@pytest.mark.long
def test_it_settles_and_what_is_mended_or_distrusted_later_changes_the_tables(odd):
    recording, root = odd
    before, _, _ = ingested(odd)
    again, _, said = ingested(odd)
    assert again == before
    assert any("none new or changed" in line for line in said)

    (recording / "pull_log.2.jsonl.gz").write_bytes((SOURCE / "pull_log.jsonl.gz").read_bytes())
    (recording / "offset_commits.jsonl").unlink()
    shutil.copy(SOURCE / "offset_commits.jsonl.gz", recording / "offset_commits.jsonl.gz")
    (recording / "SHA256SUMS").unlink()
    files, quarantine, _ = ingested(odd)
    for path in ("pull_log.2.jsonl.gz", "pull_log.5.jsonl", SNAPSHOT.format(TIMES[1]), "offset_commits.jsonl.gz"):
        assert files[path]["status"] == "read"
    assert not {"offset_commits.jsonl", "SHA256SUMS", "topic_stats.jsonl"} & files.keys()
    assert not [row for row in quarantine if row["path"] in ("pull_log.2.jsonl.gz", "SHA256SUMS", "topic_stats.jsonl")]

    # What was read is given back once its checksum says that it is not what was recorded.
    (recording / "SHA256SUMS").write_text(f"{'0' * 64}  pull_log.5.jsonl\n")
    digest = files["pull_log.5.jsonl"]["sha256"][:32]
    pulls = table_at(root, "silver.pull")
    assert pulls["source_digest"].to_list().count(digest) == 1  # its other nine lines are in pull_log.2, too
    files, _, _ = ingested(odd)
    assert (files["pull_log.5.jsonl"]["status"], files["pull_log.5.jsonl"]["sha256"]) == ("refused", "")
    assert digest not in table_at(root, "silver.pull")["source_digest"]
