"""What mqreplay expects of HDFS, by hdfs-native against a real NameNode and DataNode."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from hdfs_native import Client, WriteOptions

from storage.hdfs_server import HdfsServer

CREATORS = 20
ROUNDS = 3


@pytest.fixture
def client(hdfs_server: HdfsServer) -> Client:
    return Client(hdfs_server.uri)


@pytest.fixture
def folder(hdfs_server: HdfsServer) -> str:
    return hdfs_server.make_folder().removeprefix(hdfs_server.uri)


def write(client: Client, path: str, data: bytes) -> None:
    with client.create(path, WriteOptions(overwrite=False, create_parent=True)) as stream:
        stream.write(data)


def winners(hdfs_server: HdfsServer, attempt: Callable[[Client, int], None]) -> list[int]:
    def tried(number: int) -> int | None:
        try:
            attempt(Client(hdfs_server.uri), number)
        except FileExistsError:
            return None
        return number

    with ThreadPoolExecutor(CREATORS) as pool:
        return [number for number in pool.map(tried, range(CREATORS)) if number is not None]


def test_one_of_many_creators_of_a_file_wins(hdfs_server: HdfsServer, client: Client, folder: str) -> None:
    for path in (f"{folder}/file-{turn}" for turn in range(ROUNDS)):
        won = winners(hdfs_server, lambda each, number, path=path: write(each, path, b"%d" % number))
        assert len(won) == 1
        assert client.read(path).read() == b"%d" % won[0]


def test_one_of_many_renames_to_a_name_wins(hdfs_server: HdfsServer, client: Client, folder: str) -> None:
    for number in range(CREATORS):
        client.create(f"{folder}/{number}", WriteOptions(create_parent=True)).close()
    won = winners(hdfs_server, lambda each, number: each.rename(f"{folder}/{number}", f"{folder}/target"))
    assert len(won) == 1
    assert {item.path for item in client.list_status(folder)} == {
        *(f"{folder}/{number}" for number in range(CREATORS) if number != won[0]),
        f"{folder}/target",
    }


def test_files_are_listed_with_their_time_and_read_by_ranges(client: Client, folder: str) -> None:
    before_ms = time.time() * 1000
    write(client, f"{folder}/below/a", b"0123456789")
    listed = {item.path: item for item in client.list_status(folder, recursive=True)}
    assert listed[f"{folder}/below"].isdir
    assert listed[f"{folder}/below/a"].length == 10
    assert before_ms - 1 <= listed[f"{folder}/below/a"].modification_time <= time.time() * 1000 + 1
    assert client.read(f"{folder}/below/a").read_range(3, 4) == b"3456"


def test_a_file_is_appended_to_and_renamed_over(client: Client, folder: str) -> None:
    write(client, f"{folder}/a", b"one")
    with client.append(f"{folder}/a") as stream:
        stream.write(b" two")
    write(client, f"{folder}/b", b"")
    with pytest.raises(FileExistsError):
        client.rename(f"{folder}/a", f"{folder}/b")
    client.rename(f"{folder}/a", f"{folder}/b", overwrite=True)
    assert client.read(f"{folder}/b").read() == b"one two"


def test_what_is_missing_is_a_missing_file(client: Client, folder: str) -> None:
    for attempt in (client.get_file_info, client.read, client.append, lambda path: list(client.list_status(path))):
        with pytest.raises(FileNotFoundError):
            attempt(f"{folder}/not-there")
    assert client.delete(f"{folder}/not-there") is False


def test_a_port_that_nobody_listens_on_is_told_by_a_client_with_limits() -> None:
    limits = {"dfs.client.failover.max.attempts": "2", "dfs.client.failover.sleep.max.millis": "200"}
    with pytest.raises(OSError, match="Connection refused"):
        Client("hdfs://127.0.0.1:1", limits).get_file_info("/")
