"""Files in HDFS, by the library hdfs-native: Hadoop's protocol without Java.

It reads the configuration in HADOOP_CONF_DIR (name services, Kerberos) like Hadoop's own client.
"""

from __future__ import annotations

import io
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO

from hdfs_native import Client, WriteOptions

from mqreplay.errors import InputError, StoreError, StoreUnavailable
from mqreplay.lake.files import FileInfo
from mqreplay.lake.storage import Storage, storage

BUFFER = 1 << 20  # bytes
NO_ANSWER = ("Connection refused", "timed out", "Connection reset", "connection closed", "No route", "resolve")


def hdfs_files(path: str) -> HdfsFiles:
    """Return the files of the name service that the URI names. Raises InputError."""
    host = path.partition("://")[2].split("/", 1)[0]
    if not host:
        raise InputError(f"{path} names no host: write hdfs://HOST:PORT/FOLDER")
    return _hdfs_files(f"hdfs://{host}", storage())


@lru_cache(maxsize=32)
def _hdfs_files(root: str, how: Storage) -> HdfsFiles:
    config = {name: value for name, value in how.hadoop if name.startswith(("dfs.", "fs.defaultFS", "hadoop."))}
    try:
        return HdfsFiles(root, Client(root, config))
    except Exception as error:
        raise InputError(
            f"{root}: HDFS cannot be used: {_line(error)}; check the address and HADOOP_CONF_DIR"
        ) from None


class HdfsFiles:
    """The files of one HDFS. ``root`` is its URI."""

    def __init__(self, root: str, client: Client) -> None:
        self.root, self._client = root, client

    def _at(self, path: str) -> str:
        return "/" + path.partition("://")[2].partition("/")[2].strip("/")

    def names(self, folder: str, after: str = "") -> list[str]:
        """As Files.names."""
        try:
            with self._told(folder):
                found = [item.path.rsplit("/", 1)[-1] for item in self._client.list_status(self._at(folder))]
        except FileNotFoundError:
            return []
        return sorted(name for name in found if name > after)

    def walk(self, folder: str) -> Iterator[FileInfo]:
        """As Files.walk."""
        begin = len(self._at(folder).rstrip("/")) + 1
        try:
            with self._told(folder):
                for item in self._client.list_status(self._at(folder), recursive=True):
                    if not item.isdir:
                        yield _info(item.path[begin:], item)
        except FileNotFoundError:
            return

    def info(self, path: str) -> FileInfo | None:
        """As Files.info."""
        try:
            with self._told(path):
                return _info(path.rsplit("/", 1)[-1], self._client.get_file_info(self._at(path)))
        except FileNotFoundError:
            return None

    def read(self, path: str) -> bytes:
        """As Files.read."""
        with self._told(path):
            return bytes(self._client.read(self._at(path)).read())

    def open(self, path: str) -> BinaryIO:
        """As Files.open."""
        with self._told(path):
            return io.BufferedReader(_Raw(self._client.read(self._at(path)), self, path), BUFFER)

    def write(self, path: str, data: bytes) -> None:
        """As Files.write: a new file takes the name."""
        beside = self._written_beside(path, data)
        with self._told(path):
            self._client.rename(beside, self._at(path), overwrite=True)

    def create(self, path: str, data: bytes) -> None:
        """As Files.create: the NameNode refuses to rename to a name that exists."""
        beside = self._written_beside(path, data)
        try:
            with self._told(path):
                self._client.rename(beside, self._at(path), overwrite=False)
        finally:
            with suppress(FileNotFoundError), self._told(path):
                self._client.delete(beside)

    def _written_beside(self, path: str, data: bytes) -> str:
        folder, _, name = self._at(path).rpartition("/")
        beside = f"{folder}/.{name}.{uuid.uuid4()}.tmp"
        with self._told(path), self._client.create(beside, WriteOptions(create_parent=True)) as stream:
            stream.write(data)
        return beside

    def upload(self, local: Path, path: str) -> None:
        """As Files.upload."""
        with (
            self._told(path),
            local.open("rb") as source,
            self._client.create(self._at(path), WriteOptions(create_parent=True)) as stream,
        ):
            while piece := source.read(BUFFER):
                stream.write(piece)
        local.unlink()

    def remove(self, path: str) -> None:
        """As Files.remove."""
        with suppress(FileNotFoundError), self._told(path):
            self._client.delete(self._at(path))

    def remove_folder(self, folder: str) -> None:
        """As Files.remove_folder."""
        with suppress(FileNotFoundError), self._told(folder):
            self._client.delete(self._at(folder), recursive=True)

    @contextmanager
    def _told(self, path: str) -> Iterator[None]:
        """Say errors of HDFS in one line that says what to do."""
        try:
            yield
        except (StoreError, FileNotFoundError, FileExistsError):
            raise
        except Exception as error:  # the library raises several kinds, and documents none
            text = str(error)
            if "FileNotFound" in text or "does not exist" in text or "not found" in text:
                raise FileNotFoundError(2, "No such file", path) from None
            if "AlreadyExists" in text or "already exists" in text or "FileAlreadyExists" in text:
                raise FileExistsError(path) from None
            if any(words in text for words in NO_ANSWER):
                raise StoreUnavailable(
                    f"{self.root} does not answer ({_line(error)}); nothing stored before is lost; check its address "
                    "and the network, and run it again"
                ) from None
            raise StoreError(f"{path}: {_line(error)}") from None


class _Raw(io.RawIOBase):
    """A reader of hdfs-native as a file of Python."""

    def __init__(self, reader: Any, files: HdfsFiles, path: str) -> None:
        self._reader, self._files, self._path = reader, files, path

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        with self._files._told(self._path):
            data = self._reader.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def seek(self, offset: int, whence: int = 0) -> int:
        self._reader.seek(offset, whence)
        return int(self._reader.tell())

    def tell(self) -> int:
        return int(self._reader.tell())


def _info(name: str, item: Any) -> FileInfo:
    return FileInfo(name, item.length, item.modification_time * 1_000_000, "")


def _line(error: BaseException) -> str:
    text = str(error).strip()
    line = text.splitlines()[0] if text else type(error).__name__
    return line if len(line) <= 160 else f"{line[:157]}..."
