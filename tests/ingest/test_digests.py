"""Digests of unchanged files are cached; any change of a file causes a new read."""

import os
import time

import pytest

from mqreplay.ingest import digests
from mqreplay.ingest.digests import DIGESTS_FILE, MOST_UNREAD, KnownDigests
from mqreplay.ingest.lines import file_sha256
from mqreplay.ingest.listing import find_recordings


@pytest.fixture
def recording(tmp_path, monkeypatch):
    monkeypatch.setattr(digests, "SETTLED_NS", 0)
    folder = tmp_path / "recording"
    folder.mkdir()
    (folder / "pull_log.jsonl").write_text('{"a": 1}\n')
    (folder / "routes.jsonl").write_text('{"b": 1}\n')
    return folder


def noted(read):
    """Hashes a file, and appends its path to ``read``."""
    return lambda path, root: read.append(path) or file_sha256(path, root)


@pytest.fixture
def asked(recording, tmp_path):
    """Asks for the digests: gives those, and the names of the files that were read for them."""

    def ask():
        read = []
        files = find_recordings([str(recording)])
        listed = [file for file, _ in files[str(recording)]]
        known = KnownDigests(
            str(tmp_path / "w"), digest=lambda path, root: read.append(path) or file_sha256(path, root)
        )
        (found,) = known.of_recordings(files).values()
        assert [(file.path, sha256) for file, sha256 in found] == [
            (file.path, file_sha256(file.full_path)) for file in listed
        ]
        return sorted(path.rsplit("/", 1)[-1] for path in read)

    return ask


def test_what_did_not_change_is_not_read_again(asked):
    assert asked() == ["pull_log.jsonl", "routes.jsonl"]
    assert asked() == []
    assert asked() == []


def test_other_bytes_of_the_same_length_and_time_are_read(asked, recording):
    asked()
    path = recording / "routes.jsonl"
    before = path.stat()
    path.write_text('{"b": 2}\n')
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert (path.stat().st_size, path.stat().st_mtime_ns) == (before.st_size, before.st_mtime_ns)
    assert asked() == ["routes.jsonl"]


def test_a_damaged_cache_is_ignored(asked, recording, tmp_path):
    asked()
    path = tmp_path / "w" / DIGESTS_FILE
    data = path.read_bytes()
    digest = bytes.fromhex(file_sha256(str(recording / "routes.jsonl")))
    at = data.index(digest[4:28])
    path.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
    assert asked() == ["pull_log.jsonl", "routes.jsonl"]
    assert asked() == []


def test_another_file_in_the_same_place_is_read(asked, recording, tmp_path):
    asked()
    (tmp_path / "other").write_text('{"b": 3}\n')
    (tmp_path / "other").replace(recording / "routes.jsonl")
    assert asked() == ["routes.jsonl"]


def test_a_new_file_is_read_and_the_others_are_not(asked, recording):
    asked()
    (recording / "heartbeats.jsonl").write_text("{}\n")
    assert asked() == ["heartbeats.jsonl"]
    (recording / "heartbeats.jsonl").unlink()
    assert asked() == []


def test_a_file_that_changed_just_now_is_not_remembered(asked, recording, monkeypatch):
    monkeypatch.setattr(digests, "SETTLED_NS", 3_600_000_000_000)
    assert asked() == asked() == ["pull_log.jsonl", "routes.jsonl"]
    monkeypatch.setattr(digests, "SETTLED_NS", 0)
    time.sleep(0.01)
    assert asked() == ["pull_log.jsonl", "routes.jsonl"]
    assert asked() == []


@pytest.mark.parametrize("torn", ["", "{", "[]", '{"x": 1}', '{"x": []}'])
def test_what_was_kept_and_is_torn_is_no_loss(asked, tmp_path, torn):
    asked()
    (tmp_path / "w" / DIGESTS_FILE).write_text(torn)
    assert asked() == ["pull_log.jsonl", "routes.jsonl"]
    assert asked() == []


def test_a_large_file_that_is_not_read_is_hashed_only_if_it_is_listed(recording, tmp_path):
    for name, size in (("core", 1 << 40), ("notes.bin", MOST_UNREAD), ("night.pcap", MOST_UNREAD + 1)):
        (recording / name).touch()
        os.truncate(recording / name, size)
    opened = []

    def ask():
        opened.clear()
        files = find_recordings([str(recording)])
        assert os.path.getsize(recording / "core") == 1 << 40
        known = KnownDigests(
            str(tmp_path / "w"), digest=lambda path, root: opened.append(path) or file_sha256(path, root)
        )
        (found,) = known.of_recordings(files).values()
        return {file.path: sha256 or file.trouble for file, sha256 in found}

    found = ask()
    assert (found["core"], found["night.pcap"]) == (None, None)
    assert found["notes.bin"] == file_sha256(str(recording / "notes.bin"))
    assert sorted(path.rsplit("/", 1)[-1] for path in opened) == ["notes.bin", "pull_log.jsonl", "routes.jsonl"]
    assert (ask(), opened) == (found, [])
    sha256 = file_sha256(str(recording / "night.pcap"))
    (recording / "SHA256SUMS").write_text(f"{sha256}  ./night.pcap\n")
    assert ask()["night.pcap"] == sha256
    (recording / "SHA256SUMS").write_text(f"{'0' * 64}  night.pcap\n")
    assert "SHA256SUMS says 000" in ask()["night.pcap"]
    (recording / "SHA256SUMS").unlink()
    assert ask() == found


def test_a_file_that_lies_in_two_recordings_has_its_own_digest_in_each(recording, tmp_path):
    inner = recording / "inner"
    inner.mkdir()
    for name, text in (("heartbeats.jsonl", b"{}\n"), ("pull_log.jsonl", b"[]\n")):
        (inner / name).write_bytes(text * (MOST_UNREAD // 2))
    outer, own = KnownDigests(str(tmp_path / "w")).of_recordings(find_recordings([str(recording), str(inner)])).values()
    assert [(file.path, sha256 == file_sha256(file.full_path)) for file, sha256 in [*outer, *own]] == [
        ("inner/heartbeats.jsonl", False),
        ("inner/pull_log.jsonl", False),
        ("pull_log.jsonl", True),
        ("routes.jsonl", True),
        ("heartbeats.jsonl", True),
        ("pull_log.jsonl", True),
    ]


def test_one_folder_named_in_two_ways_is_one(recording, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert list(find_recordings(["recording", "./recording", str(recording)])) == ["recording"]


def test_links_to_files_count_and_links_to_nothing_are_not_opened(recording):
    (recording / "offset_commits.jsonl").symlink_to(recording / "routes.jsonl")
    (recording / "heartbeats.jsonl").symlink_to(recording / "nothing")
    (recording / "more").symlink_to(recording)
    files = find_recordings([str(recording)])
    (found,) = files.values()
    assert [(file.path, file.kind) for file, _ in found] == [
        ("heartbeats.jsonl", "broken_link"),
        ("offset_commits.jsonl", "offset_commits"),
        ("pull_log.jsonl", "pull_log"),
        ("routes.jsonl", "routes"),
    ]
    opened = []
    known = KnownDigests(
        str(recording.parent / "w"), digest=lambda path, root: opened.append(path) or file_sha256(path, root)
    )
    (hashed,) = known.of_recordings(files).values()
    assert [(file.trouble, bool(sha256)) for file, sha256 in hashed] == [(None, n > 0) for n in range(4)]
    assert sorted(opened) == [file.full_path for file, _ in list(found)[1:]]
