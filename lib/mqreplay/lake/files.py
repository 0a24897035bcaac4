"""Files by path or URI: folders of this machine, object stores (s3, gs, abfss) and HDFS behind one interface.

Everything that a warehouse or a recording holds is read and written through ``files_of``. Paths are whole: an absolute
path of this machine, or a URI such as ``s3://bucket/folder`` or ``hdfs://host:8020/folder``.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import uuid
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from mqreplay.lake.store_protocol import OBJECT_SCHEMES, SCHEMES, FileInfo, Files, FileTooLarge, root_of
from mqreplay.machine.local_files import is_remote as is_remote
from mqreplay.machine.local_files import scheme_of
from mqreplay.words.errors import InputError

REQUESTS_AT_ONCE = 16  # requests
Answer = TypeVar("Answer")
CHECKSUM = "sha256"


def files_of(path: str) -> Files:
    """Return the store of a path or URI. Raises InputError for an unknown scheme, or settings that do not fit it."""
    scheme = scheme_of(path)
    if not scheme:
        return LOCAL
    if scheme in OBJECT_SCHEMES:
        from mqreplay.lake.object_store import object_files  # 0.1 s, and only who needs it

        return object_files(path)
    if scheme == "hdfs":
        from mqreplay.lake.hdfs import hdfs_files

        return hdfs_files(path)
    raise InputError(f"{path}: no store of this scheme is supported; there are {', '.join(SCHEMES)}, and local folders")


def store_error(path: str, error: BaseException) -> Exception:
    """Return an error that the store of a URI caused, in one line that says what to do."""
    if scheme_of(path) in OBJECT_SCHEMES:
        from mqreplay.lake.object_store import object_error

        return object_error(root_of(path), path, error)
    from mqreplay.lake.hdfs import hdfs_error

    return hdfs_error(root_of(path), path, error)


def for_each(function: Callable[[str], Answer], items: Iterable[str], path: str) -> dict[str, Answer]:
    """Return the answers by item: at the same time if ``path`` is a store's, where each takes some milliseconds."""
    if not is_remote(path):
        return {item: function(item) for item in items}
    listed = list(items)
    with ThreadPoolExecutor(REQUESTS_AT_ONCE) as pool:
        return dict(zip(listed, pool.map(function, listed), strict=True))


def joined(folder: str, *parts: str) -> str:
    """Return the path of something in a folder.

    >>> joined("s3://bucket/", "a", "b"), joined("/", "a")
    ('s3://bucket/a/b', '/a')
    """
    return "/".join([folder.rstrip("/"), *parts])


def parent(path: str) -> str:
    """Return the folder of a path.

    >>> parent("s3://bucket/a/b"), parent("/a")
    ('s3://bucket/a', '/')
    """
    return path.rpartition("/")[0] or "/"


def folder_in_place(path: str) -> InputError:
    """Return the error for a folder that is in the place of a file."""
    return InputError(f"{path} is a folder, and mqreplay needs a file there; remove the folder")


class LocalFiles:
    """Files of this machine."""

    def names(self, folder: str, after: str = "") -> list[str]:
        """As Files.names. An unreadable folder raises OSError."""
        try:
            return sorted(name for name in os.listdir(folder) if name > after)
        except (FileNotFoundError, NotADirectoryError):
            return []

    def walk(self, folder: str) -> Iterator[FileInfo]:
        """As Files.walk."""
        for place, _, names in os.walk(folder):
            for name in names:
                path = os.path.join(place, name)
                found = self.info(path)
                if found is not None:
                    yield found._replace(name=os.path.relpath(path, folder))

    def info(self, path: str) -> FileInfo | None:
        """As Files.info."""
        try:
            found = os.stat(path)
        except (FileNotFoundError, NotADirectoryError):
            return None
        return FileInfo(os.path.basename(path), found.st_size, found.st_mtime_ns, "")

    def read(self, path: str, most_bytes: int | None = None) -> bytes:
        """As Files.read."""
        if most_bytes is not None and (size := os.path.getsize(path)) > most_bytes:
            raise FileTooLarge(size)
        return Path(path).read_bytes()

    def open(self, path: str) -> BinaryIO:
        """As Files.open."""
        return open(path, "rb")

    def write(self, path: str, data: bytes) -> None:
        """As Files.write."""
        beside = f"{path}.new"
        os.makedirs(os.path.dirname(path), exist_ok=True)
        Path(beside).write_bytes(data)
        try:
            os.replace(beside, path)
        except IsADirectoryError:
            os.remove(beside)
            raise folder_in_place(path) from None

    def create(self, path: str, data: bytes) -> None:
        """As Files.create."""
        folder, name = os.path.split(path)
        os.makedirs(folder, exist_ok=True)
        beside = os.path.join(folder, f".{name}.{uuid.uuid4()}.tmp")
        try:
            Path(beside).write_bytes(data)
            try:
                os.link(beside, path)  # unlike a rename, a link never replaces a file
            except FileExistsError:
                raise
            except OSError:  # a file system without links; the warehouse's lock excludes other runs
                if os.path.lexists(path):
                    raise FileExistsError(path) from None
                os.rename(beside, path)
        finally:
            self.remove(beside)

    def upload(self, local: Path, path: str) -> None:
        """As Files.upload."""
        os.makedirs(os.path.dirname(path), exist_ok=True)
        shutil.move(local, path)

    def remove(self, path: str) -> None:
        """As Files.remove."""
        try:
            os.unlink(path)
        except FileNotFoundError:
            return
        except IsADirectoryError:
            raise folder_in_place(path) from None

    def remove_folder(self, folder: str) -> None:
        """As Files.remove_folder."""
        shutil.rmtree(folder, ignore_errors=True)


LOCAL = LocalFiles()


def write_json(path: str, value: dict[str, Any]) -> None:
    """Replace the file by JSON with a checksum; make its folder if needed."""
    text = json.dumps(value)
    write_text(path, f"{json.dumps(value | {CHECKSUM: _sha256(text)})}\n")


def write_text(path: str, text: str) -> None:
    """Replace the file by a text."""
    files_of(path).write(path, text.encode())


def read_json(path: str, *, is_old: bool = True) -> dict[str, Any]:
    """Return the value. Raises OSError, and ValueError for a file that is not JSON or has a wrong checksum.

    ``is_old``: take a file without a checksum, which a version before 0.3 wrote.
    """
    value = json.loads(files_of(path).read(path))
    if not isinstance(value, dict):
        raise ValueError(f"{path} is not an object")
    checksum = value.pop(CHECKSUM, None)
    if checksum != _sha256(json.dumps(value)) and (checksum is not None or not is_old):
        raise ValueError(f"{path} has a wrong checksum")
    return value


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
