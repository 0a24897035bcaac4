"""Files in HDFS, by the library hdfs-native: Hadoop's protocol without Java.

It reads the configuration in HADOOP_CONF_DIR (name services, Kerberos) like Hadoop's own client. It has no time limit
of its own where a server takes a request and never answers, so each call runs in a thread that is waited for.
"""

from __future__ import annotations

import io
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from threading import Thread
from typing import Any, BinaryIO, TypeVar

from hdfs_native import Client, FileStatus, WriteOptions

from mqreplay.lake.storage import Storage, storage
from mqreplay.lake.store_protocol import FileInfo, FileTooLarge, first_line, path_in_store, root_of
from mqreplay.machine.stop_signals import leave_behind
from mqreplay.words.errors import InputError, StoreError, StoreUnavailable

BUFFER = 1 << 20  # bytes
UNAVAILABLE = ("DataTransferError", "StandbyException", "SafeModeException", "RetriableException")
Answer = TypeVar("Answer")


def hdfs_files(path: str) -> HdfsFiles:
    """Return the files of the name service that the URI names. Raises InputError."""
    return _hdfs_files(root_of(path), storage())


@lru_cache(maxsize=32)
def _hdfs_files(root: str, how: Storage) -> HdfsFiles:
    limits = {
        "dfs.client.failover.max.attempts": str(how.retries),
        "dfs.client.failover.sleep.max.millis": "1000",
        "dfs.client.socket-timeout": str(how.timeout_s * 1000),
    }
    settings = {name: value for name, value in how.hadoop if name.startswith(("dfs.", "fs.defaultFS", "hadoop."))}
    try:
        client = Client(root, limits | settings)
    except Exception as error:
        raise InputError(
            f"{root}: HDFS cannot be used: {first_line(error)}; check the address and HADOOP_CONF_DIR"
        ) from None
    return HdfsFiles(root, client, how.timeout_s)


class HdfsFiles:
    """The files of one HDFS. ``root`` is its URI; ``timeout_s`` bounds each call."""

    def __init__(self, root: str, client: Client, timeout_s: float) -> None:
        self.root, self._client, self._timeout_s = root, client, timeout_s

    def names(self, folder: str, after: str = "") -> list[str]:
        """As Files.names."""
        try:
            found = [item.path.rsplit("/", 1)[-1] for item in self._listed(folder)]
        except FileNotFoundError:
            return []
        return sorted(name for name in found if name > after)

    def walk(self, folder: str) -> Iterator[FileInfo]:
        """As Files.walk."""
        begin, folders = len(_at(folder).rstrip("/")) + 1, [folder]
        while folders:  # folder by folder, since a call has a time limit
            here = folders.pop()
            try:
                items = self._listed(here)
            except FileNotFoundError:
                continue
            for item in items:
                if item.isdir:
                    folders.append(self.root + item.path)
                else:
                    yield _info(item.path[begin:], item)

    def _listed(self, folder: str) -> list[FileStatus]:
        return self._call(folder, lambda: list(self._client.list_status(_at(folder))))

    def info(self, path: str) -> FileInfo | None:
        """As Files.info."""
        try:
            found = self._call(path, lambda: self._client.get_file_info(_at(path)))
        except FileNotFoundError:
            return None
        return _info(path.rsplit("/", 1)[-1], found)

    def read(self, path: str, most_bytes: int | None = None) -> bytes:
        """As Files.read."""
        with self.open(path) as stream:
            if most_bytes is not None and (size := stream.seek(0, io.SEEK_END)) > most_bytes:
                raise FileTooLarge(size)
            stream.seek(0)
            return stream.read()

    def open(self, path: str) -> BinaryIO:
        """As Files.open."""
        reader = self._call(path, lambda: self._client.read(_at(path)))
        return io.BufferedReader(_Raw(reader, lambda size: self._call(path, lambda: reader.read(size))), BUFFER)

    def write(self, path: str, data: bytes) -> None:
        """As Files.write: a new file takes the name."""
        beside = self._beside(path, data)
        self._call(path, lambda: self._client.rename(beside, _at(path), overwrite=True))

    def create(self, path: str, data: bytes) -> None:
        """As Files.create: the NameNode lets one file take a name that is free."""
        beside = self._beside(path, data)
        try:
            self._call(path, lambda: self._client.rename(beside, _at(path), overwrite=False))
        except FileExistsError:
            self._call(path, lambda: self._client.delete(beside))
            raise

    def upload(self, local: Path, path: str) -> None:
        """As Files.upload."""
        with local.open("rb") as source:
            self._put(path, _at(path), iter(lambda: source.read(BUFFER), b""))
        local.unlink()

    def remove(self, path: str) -> None:
        """As Files.remove."""
        with suppress(FileNotFoundError):
            self._call(path, lambda: self._client.delete(_at(path)))

    def remove_folder(self, folder: str) -> None:
        """As Files.remove_folder."""
        with suppress(FileNotFoundError):
            self._call(folder, lambda: self._client.delete(_at(folder), recursive=True))

    def _beside(self, path: str, data: bytes) -> str:
        """Write a file without a final name: readers would see a file grow."""
        folder, _, name = _at(path).rpartition("/")
        beside = f"{folder}/.{name}.{uuid.uuid4()}.tmp"
        self._put(path, beside, [data])
        return beside

    def _put(self, path: str, at: str, pieces: Iterable[bytes]) -> None:
        stream = self._call(path, lambda: self._client.create(at, WriteOptions(create_parent=True)))
        for piece in pieces:
            self._call(path, lambda piece=piece: stream.write(piece))  # type: ignore[misc]
        self._call(path, stream.close)

    def _call(self, path: str, call: Callable[[], Answer]) -> Answer:
        """Return the answer of a call. Raise errors of HDFS in one line that says what to do."""
        answers: list[Answer] = []
        errors: list[BaseException] = []

        def run() -> None:
            try:
                answers.append(call())
            except BaseException as error:  # the library panics in some cases
                errors.append(error)

        thread = Thread(target=run, daemon=True)
        thread.start()
        thread.join(self._timeout_s)
        if answers:
            return answers[0]
        if not errors:
            leave_behind(thread)
            raise _unavailable(self.root, f"no answer in {self._timeout_s:g} s")
        raise hdfs_error(self.root, path, errors[0]) from None


def hdfs_error(root: str, path: str, error: BaseException) -> Exception:
    """Return an error of hdfs-native or delta-rs in one line that says what to do. ``root`` is the store's URI."""
    if isinstance(error, FileNotFoundError):
        return FileNotFoundError(2, "No such file", path)
    if isinstance(error, FileExistsError):
        return FileExistsError(path)
    if isinstance(error, OSError) or any(word in str(error) for word in UNAVAILABLE):
        return _unavailable(root, first_line(error))
    return StoreError(f"{path}: {first_line(error)}")


def _unavailable(root: str, why: str) -> StoreUnavailable:
    return StoreUnavailable(
        f"{root} does not answer ({why}); nothing stored before is lost; check its address and the network, or raise "
        "[storage] timeout_s, and run it again"
    )


def _at(path: str) -> str:
    return f"/{path_in_store(path)}"


class _Raw(io.RawIOBase):
    """A reader of hdfs-native as a file of Python; ``read`` reads that many bytes."""

    def __init__(self, reader: Any, read: Callable[[int], bytes]) -> None:
        self._reader, self._read = reader, read

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def seek(self, offset: int, whence: int = 0) -> int:
        self._reader.seek(offset, whence)
        return int(self._reader.tell())

    def tell(self) -> int:
        return int(self._reader.tell())


def _info(name: str, item: Any) -> FileInfo:
    return FileInfo(name, item.length, item.modification_time * 1_000_000, "")
