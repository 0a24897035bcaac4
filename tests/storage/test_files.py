"""lake/files.py on real stores: the same calls do the same everywhere."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from mqreplay.ingest.digests import KnownDigests
from mqreplay.ingest.lines import file_sha256
from mqreplay.ingest.listing import begin_listings, find_recordings, finish_listings
from mqreplay.lake.files import files_of, joined
from mqreplay.lake.storage import Storage, storage, use_storage
from mqreplay.lake.store_protocol import Files, FileTooLarge
from mqreplay.words.errors import StoreError, StoreUnavailable
from storage.hdfs_server import HdfsServer
from storage.s3_front import s3_front
from storage.s3_server import S3Server
from tests_shared import SAMPLE


@pytest.fixture
def reached(s3_server: S3Server) -> Iterator[Storage]:
    """How this process reaches the servers; the test may change it by use_storage."""
    before = storage()
    options = {name.lower(): value for name, value in s3_server.environment().items()}
    use_storage(Storage(tuple(sorted(options.items())), timeout_s=2, retries=1))
    yield storage()
    use_storage(before)


@pytest.fixture(params=["local", "s3", "hdfs"])
def folder(
    request: pytest.FixtureRequest, tmp_path: Path, reached: Storage, s3_server: S3Server, hdfs_server: HdfsServer
) -> str:
    return {
        "local": lambda: str(tmp_path / "w"),
        "s3": lambda: f"s3://{s3_server.make_bucket()}/w",
        "hdfs": lambda: hdfs_server.make_folder(),
    }[request.param]()


def test_files_are_written_listed_read_and_removed(folder: str, tmp_path: Path) -> None:
    files: Files = files_of(folder)
    assert (files.names(folder), list(files.walk(folder)), files.info(joined(folder, "a"))) == ([], [], None)
    files.remove(joined(folder, "a"))
    files.remove_folder(joined(folder, "a"))
    with pytest.raises(FileNotFoundError):
        files.read(joined(folder, "a"))
    for name in ("b/100%25 ~.json", "b/c/d", "a"):
        files.write(joined(folder, name), name.encode())
    files.write(joined(folder, "a"), b"again")
    assert files.read(joined(folder, "a")) == b"again"
    assert files.names(folder) == ["a", "b"]
    assert files.names(joined(folder, "b")) == ["100%25 ~.json", "c"]
    assert files.names(joined(folder, "b"), after="100%25 ~.json") == ["c"]
    walked = {file.name: file.bytes for file in files.walk(folder)}
    assert walked == {"a": 5, "b/100%25 ~.json": 15, "b/c/d": 5}
    found = files.info(joined(folder, "b/c/d"))
    assert found is not None
    assert (found.name, found.bytes) == ("d", 5)
    assert found.modified_ns > 1_700_000_000 * 10**9

    source = tmp_path / "source"
    source.write_bytes(bytes(range(256)) * 40_000)
    files.upload(source, joined(folder, "e/large"))
    assert not source.exists()
    with files.open(joined(folder, "e/large")) as stream:
        assert stream.seek(-3, 2) == 10_239_997
        assert stream.read() == b"\xfd\xfe\xff"
        assert stream.seek(256) == 256
        assert stream.read(2) == b"\x00\x01"
    files.remove(joined(folder, "a"))
    files.remove_folder(joined(folder, "b"))
    assert files.names(folder) == ["e"]


def test_one_of_many_creators_wins_and_its_file_is_whole(folder: str) -> None:
    files, path = files_of(folder), joined(folder, "log/00000000000000000001.json")

    def create(number: int) -> int | None:
        try:
            files.create(path, b"%d" % number * 1000)
        except FileExistsError:
            return None
        return number

    with ThreadPoolExecutor(8) as pool:
        (won,) = [number for number in pool.map(create, range(8)) if number is not None]
    assert files.read(path) == b"%d" % won * 1000
    assert files.names(joined(folder, "log")) == ["00000000000000000001.json"]


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"aws_access_key_id": "nobody"}, "refuses the access"),
        ({"aws_secret_access_key": "wrong"}, "refuses the access"),
    ],
)
def test_wrong_keys_are_named(changed: dict[str, str], said: str, reached: Storage, s3_server: S3Server) -> None:
    folder = f"s3://{s3_server.make_bucket()}/w"
    use_storage(replace(reached, options=tuple(sorted((dict(reached.options) | changed).items()))))
    for ask in (Files.names, Files.read):
        with pytest.raises(StoreError, match=said) as error:
            getattr(files_of(folder), ask.__name__)(folder)
        assert str(error.value).isprintable()
        assert "wrong" not in str(error.value)


def test_a_missing_bucket_is_named(reached: Storage) -> None:
    for ask in (Files.names, Files.read):
        with pytest.raises(StoreError, match="s3://no-such-bucket does not exist; create the bucket"):
            getattr(files_of("s3://no-such-bucket/w"), ask.__name__)("s3://no-such-bucket/w")


@pytest.mark.parametrize("root", ["s3://bucket/w", "hdfs://127.0.0.1:1/w"])
def test_a_port_that_nobody_listens_on_is_named(root: str, reached: Storage) -> None:
    options = dict(reached.options) | {"aws_endpoint_url": "http://127.0.0.1:1"}
    use_storage(replace(reached, options=tuple(sorted(options.items()))))
    with pytest.raises(StoreUnavailable, match=r"does not answer .*; nothing stored before is lost") as error:
        files_of(root).names(root)
    assert str(error.value).isprintable()


def test_a_name_node_that_stopped_is_told_in_time(reached: Storage, hdfs_server: HdfsServer) -> None:
    folder = hdfs_server.make_folder()
    with (
        hdfs_server.stopped(hdfs_server.name_node),
        pytest.raises(StoreUnavailable, match="no answer in 2 s"),
    ):
        files_of(folder).names(folder)
    assert files_of(folder).names(folder) == []


def test_a_stalled_object_store_is_told_in_time(reached: Storage, s3_server: S3Server) -> None:
    folder = f"s3://{s3_server.make_bucket()}/w"
    with s3_front(s3_server.front.server_port) as slow:
        options = dict(reached.options) | {"aws_endpoint_url": slow.endpoint}
        use_storage(replace(reached, options=tuple(sorted(options.items()))))
        assert files_of(folder).names(folder) == []
        slow.stalls = True
        with pytest.raises(StoreUnavailable, match="does not answer"):
            files_of(folder).names(folder)


def test_a_file_is_streamed_with_seek_and_whole_reads_are_bounded(folder: str) -> None:
    files, path, data = files_of(folder), joined(folder, "big"), bytes(range(256)) * 12_000
    files.write(path, data)
    with files.open(path) as stream:
        assert stream.read(3) == data[:3]
        assert stream.seek(0, 2) == len(data)
        stream.seek(0)
        assert stream.read() == data
        stream.seek(3_000_000)
        assert stream.read(9) == data[3_000_000:3_000_009]
    assert files.read(path, len(data)) == data
    with pytest.raises(FileTooLarge) as error:
        files.read(path, len(data) - 1)
    assert error.value.bytes == len(data)
    files.write(path, b"")
    with files.open(path) as stream:
        assert stream.read() == b""


def test_an_object_that_is_replaced_while_it_is_read_is_not_mixed(s3_server: S3Server, reached: Storage) -> None:
    path = f"s3://{s3_server.make_bucket()}/big"
    files = files_of(path)
    files.write(path, b"a" * 3_000_000)
    with files.open(path) as stream:
        assert stream.read(10) == b"a" * 10
        files.write(path, b"b" * 3_000_000)
        stream.seek(2_500_000)
        with pytest.raises(OSError, match="it changed while it was read"):
            stream.read(10)


def test_a_recording_in_a_store_has_the_files_of_the_folder(folder: str) -> None:
    night = SAMPLE / "bulk-5.3.3"
    (local,) = find_recordings([str(night)]).values()
    chosen = [file for file, _ in local][::12]
    for file in chosen:
        files_of(folder).write(joined(folder, file.path), (night / file.path).read_bytes())
    for room in (0, 1_000):
        (found,) = finish_listings(
            begin_listings([folder], files_here=room), None if room else InThisProcess()
        ).values()
        hashed = KnownDigests(f"{folder}-warehouse").of_recordings({folder: found})[folder]
        assert [(file.path, file.kind, file.bytes, sha256) for file, sha256 in hashed] == [
            (file.path, file.kind, file.bytes, file_sha256(str(night / file.path))) for file in chosen
        ]


class InThisProcess:
    """An engine without processes."""

    def map(self, function, items, context):
        return (function(item, context) for item in items)
