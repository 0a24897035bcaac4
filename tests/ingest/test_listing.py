"""A large recording is listed and hashed by tasks, and a recording of a store by its URI, with the same result."""

from __future__ import annotations

import io
import os
import threading
from pathlib import Path

import polars as pl
import pytest

from mqreplay.engines.local import LocalEngine
from mqreplay.ingest import digests, listing, opening, walk
from mqreplay.ingest.digests import KnownDigests, hash_files
from mqreplay.ingest.lines import file_sha256, read_whole
from mqreplay.ingest.listing import begin_listings, find_recordings, finish_listings
from mqreplay.ingest.prefetch import MOST_WAITING, WAITING_BYTES, Prefetch
from mqreplay.lake.files import LOCAL
from mqreplay.lake.store_protocol import FileTooLarge
from mqreplay.words.errors import DecodeError, InputError
from tests_shared import SAMPLE

NIGHT = SAMPLE / "bulk-5.3.3"


@pytest.fixture
def engine(tmp_path):
    with LocalEngine(tmp_path, processes=1) as local:
        yield local


class FolderAsStore:
    """Files of this machine under the URI s3://bucket."""

    def __init__(self, root: Path) -> None:
        self._root, self.read_paths = root, []

    def _local(self, path: str) -> str:
        return str(self._root / path.removeprefix("s3://bucket/"))

    def names(self, folder: str, after: str = "") -> list[str]:
        return LOCAL.names(self._local(folder), after)

    def walk(self, folder: str):
        return (found._replace(version="v") for found in LOCAL.walk(self._local(folder)))

    def info(self, path: str):
        is_file = os.path.isfile(self._local(path))  # a store has no folders
        return LOCAL.info(self._local(path))._replace(version="v") if is_file else None

    def read(self, path: str, most_bytes: int | None = None) -> bytes:
        self.read_paths.append(path)
        return LOCAL.read(self._local(path), most_bytes)

    def open(self, path: str) -> io.BufferedIOBase:
        return LOCAL.open(self._local(path))


@pytest.fixture
def store(monkeypatch):
    made = FolderAsStore(SAMPLE)
    for module in (walk, opening):
        monkeypatch.setattr(module, "files_of", lambda _: made)
    return made


def rows(files, *but: str) -> pl.DataFrame:
    return files.rows.drop(but)


@pytest.mark.parametrize("here", [0, 1, 50, 120, 10_000])
def test_folders_that_tasks_list_give_the_same_files(engine, here):
    whole = find_recordings([str(NIGHT)])[str(NIGHT)]
    begun = begin_listings([str(NIGHT)], files_here=here)
    assert bool(begun[0].later) == (here < 240)
    assert len(begun[0].files) + 1 >= min(here, len(whole)) / 2
    assert rows(finish_listings(begun, engine)[str(NIGHT)]).equals(rows(whole))


@pytest.mark.parametrize("here", [0, 3, 10_000])
def test_a_recording_by_uri_has_the_files_of_the_folder(engine, store, tmp_path, here):
    uri = f"s3://bucket/{NIGHT.name}"
    begun = begin_listings([uri, f"{uri}/"], files_here=here)
    assert [bool(one.later) for one in begun] == [here < 240]
    (found,) = finish_listings(begun, engine).values()
    whole = find_recordings([str(NIGHT)])[str(NIGHT)]
    but = "recording", "inode", "changed_ns", "version"
    assert rows(found, *but).equals(rows(whole, *but))
    assert found.recordings == [uri]
    assert set(found.rows["version"]) == {"v"}
    (hashed,) = KnownDigests(str(tmp_path / "w")).of_recordings({uri: found}).values()
    assert [sha256 for _, sha256 in hashed] == [file_sha256(str(NIGHT / file.path)) for file, _ in whole]


def test_a_uri_without_files_is_refused(store):
    with pytest.raises(InputError, match="recording s3://bucket/none does not exist, or has no files"):
        begin_listings(["s3://bucket/none"])


def test_many_new_files_are_hashed_by_tasks(engine, tmp_path, monkeypatch):
    for name in ("FILES_HERE", "BYTES_HERE"):
        monkeypatch.setattr(digests, name, 10)
    monkeypatch.setattr(digests, "TASK_FILES", 7)
    monkeypatch.setattr(digests, "TASK_BYTES", 20_000)
    monkeypatch.setattr(digests, "SETTLED_NS", 0)
    tasks = []

    class Noted:
        def map(self, function, items, context):
            tasks.append([(len(item), item.rows["bytes"].sum()) for item in items])
            return engine.map(function, items, context)

    files = [file for file, _ in find_recordings([str(NIGHT)])[str(NIGHT)]]
    warehouse = str(tmp_path / "w")
    for _ in range(2):
        (found,) = KnownDigests(warehouse, Noted()).of_recordings(find_recordings([str(NIGHT)])).values()
        assert [(file.path, sha256) for file, sha256 in found] == [(f.path, file_sha256(f.full_path)) for f in files]
    (once,) = tasks
    assert sum(number for number, _ in once) == len(files)
    assert max(number for number, _ in once) <= 7


def test_a_file_that_cannot_be_read_has_its_own_reason(engine, tmp_path, monkeypatch):
    monkeypatch.setattr(digests, "FILES_HERE", 0)
    monkeypatch.setattr(digests, "TASK_FILES", 2)
    folder = tmp_path / "recording"
    folder.mkdir()
    for name in ("consume_log", "heartbeats", "lock_requests", "pull_log", "routes"):
        (folder / f"{name}.jsonl").write_text("{}\n")
    listed = find_recordings([str(folder)])
    (folder / "lock_requests.jsonl").unlink()
    (found,) = KnownDigests(str(tmp_path / "w"), engine).of_recordings(listed).values()
    assert [file.trouble for file, _ in found] == [None, None, "No such file or directory", None, None]
    assert [bool(sha256) for _, sha256 in found] == [True, True, False, True, True]


def test_a_file_of_a_store_is_bounded(store):
    uri = f"s3://bucket/{NIGHT.name}/brokers.json"
    size = (NIGHT / "brokers.json").stat().st_size
    assert read_whole(uri, None, size) == (NIGHT / "brokers.json").read_bytes()
    with pytest.raises(DecodeError, match="too_large"):
        read_whole(uri, None, size - 1)
    with pytest.raises(FileTooLarge):
        opening.read_recorded(uri, None, 0)


def test_files_are_read_ahead_within_a_window():
    paths = [f"f{n}" for n in range(200)]
    begun, lock = [], threading.Lock()

    def read(path: str) -> bytes:
        with lock:
            begun.append(path)
        if path == "f7":
            raise FileNotFoundError(path)
        return path.encode()

    with Prefetch(paths, 200, read) as ahead:
        for number, path in enumerate(paths):
            if number % 3 == 1:  # a .bak beside a whole file is not read
                continue
            if path == "f7":
                continue
            assert ahead.read(path) == path.encode()
            assert max(int(p[1:]) for p in begun) < number + MOST_WAITING
        assert ahead.read("f3") == b"f3", "an earlier file is read again"
        assert ahead.read("other") == b"other"
        with pytest.raises(FileNotFoundError):
            ahead.read("f7")


def test_large_files_are_not_all_read_ahead():
    begun = []
    paths = [f"f{n}" for n in range(10)]
    with Prefetch(paths, 10 * WAITING_BYTES, lambda path: begun.append(path) or b"") as ahead:
        ahead.read("f0")
    assert begun == ["f0"]


def test_the_digests_of_a_store_are_of_its_bytes(store):
    (files,) = finish_listings(begin_listings([f"s3://bucket/{NIGHT.name}"]), None).values()
    found = hash_files(files, file_sha256)
    assert (len(found.sha256), found.trouble) == (len(files), {})
    assert len(files) < listing.FILES_HERE
