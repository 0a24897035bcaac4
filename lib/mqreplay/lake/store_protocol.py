"""What every store offers: files by URI, their sizes and times; and the parts of a URI."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple, Protocol

from mqreplay.words.errors import InputError

OBJECT_SCHEMES = ("s3", "s3a", "gs", "abfs", "abfss", "az")
SCHEMES = (*OBJECT_SCHEMES, "hdfs")
LONGEST = 160  # characters of an error that a message quotes


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
