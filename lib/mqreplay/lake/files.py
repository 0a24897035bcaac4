"""Files by path or URI: folders of this machine, object stores (s3, gs, abfss) and HDFS behind one interface.

Everything that a warehouse or a recording holds is read and written through ``files_of``. Paths are whole: an absolute
path of this machine, or a URI such as ``s3://bucket/folder`` or ``hdfs://host:8020/folder``.
"""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import BinaryIO, NamedTuple, Protocol, TypeVar

from mqreplay.errors import InputError
from mqreplay.local_files import is_remote as is_remote
from mqreplay.local_files import scheme_of as scheme_of

OBJECT_SCHEMES = ("s3", "s3a", "gs", "abfs", "abfss", "az")
SCHEMES = (*OBJECT_SCHEMES, "hdfs")
AT_ONCE = 16  # requests
LONGEST = 160  # characters of an error that a message quotes
Answer = TypeVar("Answer")


class FileInfo(NamedTuple):
    """A file as its store lists it: ``name`` is its path below the listed folder.

    ``modified_ns`` are epoch nanoseconds. ``version`` differs for each content written (ETag); empty if the store has
    none.
    """

    name: str
    bytes: int
    modified_ns: int
    version: str


class FileTooLarge(Exception):
    """A file has more bytes than its reader takes; ``bytes`` is its size, as far as it is known."""

    def __init__(self, size: int) -> None:
        super().__init__(f"{size:,} bytes")
        self.bytes = size


class Files(Protocol):
    """The files of one store. Errors of the store are StoreErrors; a missing file is a FileNotFoundError."""

    def names(self, folder: str, after: str = "") -> list[str]:
        """Return the sorted names of the files and folders in a folder, above ``after``; none without the folder."""
        ...

    def walk(self, folder: str) -> Iterator[FileInfo]:
        """Yield all files below a folder, in no certain order."""
        ...

    def info(self, path: str) -> FileInfo | None:
        """Return a file; None if there is none."""
        ...

    def read(self, path: str, most_bytes: int | None = None) -> bytes:
        """Return the content of a file. Raises FileTooLarge, before it is read, for one above ``most_bytes``."""
        ...

    def open(self, path: str) -> BinaryIO:
        """Open a file for reading, with seek. Its content is not in memory as a whole.

        If the file is replaced meanwhile, reading gives the old content or raises OSError.
        """
        ...

    def write(self, path: str, data: bytes) -> None:
        """Replace a file: readers see the old or the new content, never a part. Make its folder if needed."""
        ...

    def create(self, path: str, data: bytes) -> None:
        """Write a file that must not exist, completely or not at all. Raises FileExistsError."""
        ...

    def upload(self, local: Path, path: str) -> None:
        """Move a file of this machine to ``path``."""
        ...

    def remove(self, path: str) -> None:
        """Remove a file; it may be missing."""
        ...

    def remove_folder(self, folder: str) -> None:
        """Remove a folder and all that is in it; it may be missing."""
        ...


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
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return dict(zip(listed, pool.map(function, listed), strict=True))


def root_of(path: str) -> str:
    """Return the part of a URI that names its store. Raises InputError if it names none.

    >>> root_of("S3://bucket/folder/file")
    's3://bucket'
    """
    scheme, _, rest = path.partition("://")
    name = rest.split("/", 1)[0]
    if not name:
        what = "bucket" if scheme.lower() in OBJECT_SCHEMES else "host"
        raise InputError(f"{path} names no {what}: write {scheme}://{what.upper()}/FOLDER")
    return f"{scheme.lower()}://{name}"


def path_in_store(path: str) -> str:
    """Return the part of a URI below its store, without slashes at its ends.

    >>> path_in_store("s3://bucket/folder/file"), path_in_store("hdfs://host")
    ('folder/file', '')
    """
    return path.partition("://")[2].partition("/")[2].strip("/")


def first_line(error: BaseException) -> str:
    """Return the first line of an error of a store's library, cut to LONGEST characters: more lines may follow.

    >>> first_line(OSError("Connection refused\\nat x")), first_line(OSError())
    ('Connection refused', 'OSError')
    """
    text = str(error).strip()
    line = text.splitlines()[0] if text else type(error).__name__
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 3]}..."


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
