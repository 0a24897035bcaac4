"""Files in an object store (S3 and compatible ones, Google Cloud Storage, Azure), by the library obstore.

There are no folders: a folder is the prefix of its files. A write is seen completely or not at all. ``create`` is a
conditional write (If-None-Match), which the store decides.
"""

from __future__ import annotations

import datetime as dt
import errno
import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO

import obstore
from obstore.exceptions import (
    AlreadyExistsError,
    BaseError,
    NotSupportedError,
    PermissionDeniedError,
    PreconditionError,
    UnauthenticatedError,
)
from obstore.store import ObjectStore, from_url

from mqreplay.lake.storage import Storage, storage
from mqreplay.lake.store_protocol import FileInfo, FileTooLarge, first_line, path_in_store, root_of
from mqreplay.machine.local_files import scheme_of
from mqreplay.words.errors import InputError, StoreError, StoreUnavailable

FAMILY = {"s3": "aws_", "s3a": "aws_", "gs": "google_", "abfs": "azure_", "abfss": "azure_", "az": "azure_"}
CLIENT_OPTIONS = (
    "allow_http",
    "proxy_url",
    "allow_invalid_certificates",
    "root_certificate",
)  # obstore's client options
LISTED = 1_000  # files of a page
READ_AHEAD = 1 << 20  # bytes
CODE = re.compile(r"<Code>(\w+)</Code>")
BAD_CREDENTIALS = (
    "InvalidAccessKeyId",
    "SignatureDoesNotMatch",
    "AccessDenied",
    "ExpiredToken",
    "AuthenticationFailed",
)
MISSING_BUCKET = ("NoSuchBucket", "ContainerNotFound")
UNANSWERED = re.compile(
    r"\btimed? ?out|\bconnect|\bdns\b|HTTP error|request or response body|status code: (429|500|502|503|504)",
    re.IGNORECASE,
)
DETAILS = "\n\nDebug source"  # what follows names fields such as retry_timeout
STATUS = re.compile(r"status code: (\d+ [\w ]+)")
ERROR_REASONS = {  # words of the library's errors
    "kind: Timeout": "no answer in time",
    "operation timed out": "no answer in time",
    "request or response body error": "the answer broke off",
    "dns error": "its name is unknown",
    "Connection refused": "connection refused",
    "error sending request": "no connection",
}
WHERE_KEYS = "give its keys in the environment (AWS_ACCESS_KEY_ID ...) or under [storage] options"


def object_files(path: str) -> ObjectFiles:
    """Return the files of the bucket or container that the URI names. Raises InputError."""
    return _object_files(root_of(path), storage())


@lru_cache(maxsize=32)
def _object_files(root: str, how: Storage) -> ObjectFiles:
    options = how.with_prefix(FAMILY[scheme_of(root)])
    timeout = dt.timedelta(seconds=how.timeout_s)
    client: Any = {name: value for key, value in options.items() if (name := key.split("_", 1)[1]) in CLIENT_OPTIONS}
    client |= {"timeout": timeout, "connect_timeout": min(timeout, dt.timedelta(seconds=10))}
    config: dict[str, Any] = {k: v for k, v in options.items() if k.split("_", 1)[1] not in CLIENT_OPTIONS}
    if root.startswith("s3"):
        config["aws_disable_bulk_delete"] = "true"  # not every compatible store has it, and few files are removed
    retry: Any = {"max_retries": how.retries, "retry_timeout": timeout * (how.retries + 1)}
    try:
        # Its overloads are one for each family of stores.
        store: ObjectStore = from_url(root, config=config, client_options=client, retry_config=retry)  # type: ignore
    except (BaseError, ValueError) as error:
        raise InputError(f"{root}: the store cannot be used: {first_line(error)}; {WHERE_KEYS}") from None
    return ObjectFiles(root, store)


class ObjectFiles:
    """The files of one bucket. ``root`` is its URI."""

    def __init__(self, root: str, store: ObjectStore) -> None:
        self.root, self._store = root, store

    def names(self, folder: str, after: str = "") -> list[str]:
        """As Files.names."""
        prefix = path_in_store(folder)
        begin = len(prefix) + 1 if prefix else 0
        with self._errors(folder):
            if after:  # a folder of files alone, as a table's log: the store skips those before
                pages = obstore.list(self._store, prefix, offset=f"{prefix}/{after}", chunk_size=LISTED)
                found = {item["path"][begin:].split("/")[0] for page in pages for item in page}
            else:
                listed = obstore.list_with_delimiter(self._store, prefix or None)
                found = {item["path"][begin:] for item in listed["objects"]}
                found |= {path[begin:] for path in listed["common_prefixes"]}
        return sorted(found)

    def walk(self, folder: str) -> Iterator[FileInfo]:
        """As Files.walk."""
        prefix = path_in_store(folder)
        begin = len(prefix) + 1 if prefix else 0
        with self._errors(folder):
            for page in obstore.list(self._store, prefix or None, chunk_size=LISTED):
                for item in page:
                    yield _info(item["path"][begin:], item)

    def info(self, path: str) -> FileInfo | None:
        """As Files.info."""
        try:
            with self._errors(path):
                return _info(path.rsplit("/", 1)[-1], obstore.head(self._store, path_in_store(path)))
        except FileNotFoundError:
            return None

    def read(self, path: str, most_bytes: int | None = None) -> bytes:
        """As Files.read."""
        with self._errors(path):
            found = obstore.get(self._store, path_in_store(path))
            if most_bytes is not None and found.meta["size"] > most_bytes:
                raise FileTooLarge(found.meta["size"])
            return found.bytes().to_bytes()

    def open(self, path: str) -> BinaryIO:
        """As Files.open."""
        return io.BufferedReader(_Raw(self, path), READ_AHEAD)

    def stream(self, path: str, options: Any = None) -> Any:
        """Return the answer to a request for a file, whose bytes come as they are read."""
        with self._errors(path):
            return obstore.get(self._store, path_in_store(path), options=options)

    def write(self, path: str, data: bytes) -> None:
        """As Files.write."""
        with self._errors(path):
            obstore.put(self._store, path_in_store(path), data)

    def create(self, path: str, data: bytes) -> None:
        """As Files.create."""
        try:
            with self._errors(path, "conditional writes (If-None-Match)"):
                obstore.put(self._store, path_in_store(path), data, mode="create", use_multipart=False)
        except (AlreadyExistsError, PreconditionError):
            raise FileExistsError(path) from None

    def upload(self, local: Path, path: str) -> None:
        """As Files.upload."""
        with self._errors(path):
            obstore.put(self._store, path_in_store(path), local)
        local.unlink()

    def remove(self, path: str) -> None:
        """As Files.remove."""
        try:
            with self._errors(path):
                obstore.delete(self._store, path_in_store(path))
        except FileNotFoundError:
            return

    def remove_folder(self, folder: str) -> None:
        """As Files.remove_folder."""
        prefix = path_in_store(folder)
        with self._errors(folder):
            for page in obstore.list(self._store, prefix, chunk_size=LISTED):
                obstore.delete(self._store, [item["path"] for item in page])

    @contextmanager
    def _errors(self, path: str, needed: str = "support for this request") -> Iterator[None]:
        """Raise errors of the store in one line that says what to do. ``needed`` is what the store may not have."""
        try:
            yield
        except (AlreadyExistsError, PreconditionError):
            raise
        except BaseError as error:
            raise object_error(self.root, path, error, needed) from None
        except FileNotFoundError as error:
            raise object_error(self.root, path, error, needed) from None


def object_error(
    root: str, path: str, error: BaseException, needed: str = "support for this request"
) -> StoreError | FileNotFoundError:
    """Return an error of obstore or delta-rs in one line that says what to do.

    ``root`` is the bucket's URI; ``needed`` is what the store may not have.
    """
    code, text = _code(error), str(error).partition(DETAILS)[0]
    if code in MISSING_BUCKET:
        return StoreError(f"{root} does not exist; create the bucket, or check its name")
    if isinstance(error, FileNotFoundError):
        return FileNotFoundError(2, "No such file", path)
    if isinstance(error, NotSupportedError) or code == "NotImplemented":
        return StoreError(
            f"{root} has no {needed}, which mqreplay needs ({code or first_line(error)}); use another store, or a "
            "folder of a file system"
        )
    is_refused = isinstance(error, (PermissionDeniedError, UnauthenticatedError)) or code in BAD_CREDENTIALS
    if is_refused or "Forbidden" in text or "Unauthorized" in text:
        return StoreError(f"{root} refuses the access to {path} ({code or first_line(error)}); {WHERE_KEYS}")
    if UNANSWERED.search(text):
        return StoreUnavailable(
            f"{root} {_failure(error)}; nothing stored before is lost; check its address and the network, or raise "
            "[storage] timeout_s, and run it again"
        )
    return StoreError(f"{path}: {first_line(error)}")


class _Raw(io.RawIOBase):
    """A file as one stream of bytes from the store; after a seek as another one, of the same version."""

    def __init__(self, files: ObjectFiles, path: str) -> None:
        self._files, self._path = files, path
        answer = files.stream(path)
        self._size, self._version = int(answer.meta["size"]), answer.meta["e_tag"]
        self._bytes, self._comes_at, self._at = iter(answer.stream(READ_AHEAD)), 0, 0
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if self._at >= self._size:
            return 0
        try:
            with self._files._errors(self._path):
                if self._at != self._comes_at:
                    self._begin_again()
                if not self._rest:
                    self._rest = memoryview(bytes(next(self._bytes)))
        except StopIteration:
            raise OSError(errno.EIO, "the store ended it before its end") from None
        except PreconditionError:
            raise OSError(errno.ESTALE, "it changed while it was read") from None
        size = min(len(buffer), len(self._rest))
        buffer[:size] = self._rest[:size]
        self._rest = self._rest[size:]
        self._at += size
        self._comes_at = self._at
        return size

    def _begin_again(self) -> None:
        options: dict[str, Any] = {"range": {"offset": self._at}}
        if self._version:
            options["if_match"] = self._version
        self._bytes = iter(self._files.stream(self._path, options).stream(READ_AHEAD))
        self._rest, self._comes_at = memoryview(b""), self._at

    def seek(self, offset: int, whence: int = 0) -> int:
        self._at = offset + (0, self._at, self._size)[whence]
        return self._at

    def tell(self) -> int:
        return self._at


def _info(name: str, item: Any) -> FileInfo:
    return FileInfo(name, item["size"], int(item["last_modified"].timestamp() * 1e9), item["e_tag"] or "")


def _code(error: BaseException) -> str:
    """Return the store's own code of an error, such as NoSuchBucket; empty if it has none."""
    match = CODE.search(str(error))
    return match[1] if match else ""


def _failure(error: BaseException) -> str:
    """Return how a request failed: by the status of the answer, or by what came in its place."""
    if found := STATUS.search(str(error)):
        return f"answers with {found[1].strip()} {_code(error)}".strip()
    reason = next((reason for words, reason in ERROR_REASONS.items() if words in str(error)), first_line(error))
    return f"does not answer ({reason})"
