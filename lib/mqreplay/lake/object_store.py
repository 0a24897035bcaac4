"""Files in an object store (S3 and compatible ones, Google Cloud Storage, Azure), by the library obstore.

There are no folders: a folder is the prefix of its files. A write is seen completely or not at all. ``create`` is a
conditional write (If-None-Match), which the store decides.
"""

from __future__ import annotations

import datetime as dt
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

from mqreplay.errors import InputError, StoreError, StoreUnavailable
from mqreplay.lake.files import FileInfo, scheme_of
from mqreplay.lake.storage import Storage, storage

FAMILY = {"s3": "aws_", "s3a": "aws_", "gs": "google_", "abfs": "azure_", "abfss": "azure_", "az": "azure_"}
OF_CLIENT = ("allow_http", "proxy_url", "allow_invalid_certificates", "root_certificate")  # obstore's client options
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
NO_BUCKET = ("NoSuchBucket", "ContainerNotFound")
NO_ANSWER = re.compile(r"timed? ?out|connect|connection|dns|HTTP error|request or response body", re.IGNORECASE)
WHERE_KEYS = "give its keys in the environment (AWS_ACCESS_KEY_ID ...) or under [storage] options"


def object_files(path: str) -> ObjectFiles:
    """Return the files of the bucket or container that the URI names. Raises InputError."""
    scheme, _, rest = path.partition("://")
    bucket = rest.split("/", 1)[0]
    if not bucket:
        raise InputError(f"{path} names no bucket: write {scheme}://BUCKET/FOLDER")
    return _object_files(f"{scheme.lower()}://{bucket}", storage())


@lru_cache(maxsize=32)
def _object_files(root: str, how: Storage) -> ObjectFiles:
    options = how.with_prefix(FAMILY[scheme_of(root)])
    timeout = dt.timedelta(seconds=how.timeout_s)
    client: Any = {name: value for key, value in options.items() if (name := key.split("_", 1)[1]) in OF_CLIENT}
    client |= {"timeout": timeout, "connect_timeout": min(timeout, dt.timedelta(seconds=10))}
    config: dict[str, Any] = {k: v for k, v in options.items() if k.split("_", 1)[1] not in OF_CLIENT}
    if root.startswith("s3"):
        config["aws_disable_bulk_delete"] = "true"  # not every compatible store has it, and few files are removed
    retry: Any = {"max_retries": how.retries, "retry_timeout": timeout * (how.retries + 1)}
    try:
        # Its overloads are one for each family of stores.
        store: ObjectStore = from_url(root, config=config, client_options=client, retry_config=retry)  # type: ignore
    except (BaseError, ValueError) as error:
        raise InputError(f"{root}: the store cannot be used: {_first_line(error)}; {WHERE_KEYS}") from None
    return ObjectFiles(root, store)


class ObjectFiles:
    """The files of one bucket. ``root`` is its URI."""

    def __init__(self, root: str, store: ObjectStore) -> None:
        self.root, self._store = root, store

    def _key(self, path: str) -> str:
        return path.partition("://")[2].partition("/")[2].strip("/")

    def names(self, folder: str, after: str = "") -> list[str]:
        """As Files.names."""
        prefix = self._key(folder)
        begin = len(prefix) + 1 if prefix else 0
        with self._told(folder):
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
        prefix = self._key(folder)
        begin = len(prefix) + 1 if prefix else 0
        with self._told(folder):
            for page in obstore.list(self._store, prefix or None, chunk_size=LISTED):
                for item in page:
                    yield _info(item["path"][begin:], item)

    def info(self, path: str) -> FileInfo | None:
        """As Files.info."""
        try:
            with self._told(path):
                return _info(path.rsplit("/", 1)[-1], obstore.head(self._store, self._key(path)))
        except FileNotFoundError:
            return None

    def read(self, path: str) -> bytes:
        """As Files.read."""
        with self._told(path):
            return obstore.get(self._store, self._key(path)).bytes().to_bytes()

    def open(self, path: str) -> BinaryIO:
        """As Files.open."""
        with self._told(path):
            reader = obstore.open_reader(self._store, self._key(path), buffer_size=READ_AHEAD)
        return io.BufferedReader(_Raw(reader, self, path), READ_AHEAD)

    def write(self, path: str, data: bytes) -> None:
        """As Files.write."""
        with self._told(path):
            obstore.put(self._store, self._key(path), data)

    def create(self, path: str, data: bytes) -> None:
        """As Files.create."""
        try:
            with self._told(path):
                obstore.put(self._store, self._key(path), data, mode="create", use_multipart=False)
        except (AlreadyExistsError, PreconditionError):
            raise FileExistsError(path) from None
        except NotSupportedError:
            raise StoreError(f"{self.root} has no conditional writes, which a warehouse needs") from None

    def upload(self, local: Path, path: str) -> None:
        """As Files.upload."""
        with self._told(path):
            obstore.put(self._store, self._key(path), local)
        local.unlink()

    def remove(self, path: str) -> None:
        """As Files.remove."""
        try:
            with self._told(path):
                obstore.delete(self._store, self._key(path))
        except FileNotFoundError:
            return

    def remove_folder(self, folder: str) -> None:
        """As Files.remove_folder."""
        prefix = self._key(folder)
        with self._told(folder):
            for page in obstore.list(self._store, prefix, chunk_size=LISTED):
                obstore.delete(self._store, [item["path"] for item in page])

    @contextmanager
    def _told(self, path: str) -> Iterator[None]:
        """Say errors of the store in one line that says what to do."""
        try:
            yield
        except (AlreadyExistsError, PreconditionError, NotSupportedError):
            raise
        except FileNotFoundError as error:
            if _code(error) in NO_BUCKET:
                raise self._no_bucket() from None
            raise FileNotFoundError(2, "No such file", path) from None
        except (PermissionDeniedError, UnauthenticatedError) as error:
            raise self._refused(path, _code(error) or _first_line(error)) from None
        except BaseError as error:
            code = _code(error)
            if code in NO_BUCKET:
                raise self._no_bucket() from None
            if code in BAD_CREDENTIALS or "Forbidden" in str(error) or "Unauthorized" in str(error):
                raise self._refused(path, code or _first_line(error)) from None
            if NO_ANSWER.search(str(error)):
                raise StoreUnavailable(
                    f"{self.root} does not answer ({_first_line(error)}); nothing stored before is lost; check its "
                    "address and the network, or raise [storage] timeout_s, and run it again"
                ) from None
            raise StoreError(f"{path}: {_first_line(error)}") from None

    def _no_bucket(self) -> StoreError:
        return StoreError(f"{self.root} does not exist; create the bucket, or check its name")

    def _refused(self, path: str, code: str) -> StoreError:
        return StoreError(f"{self.root} refuses the access to {path} ({code}); {WHERE_KEYS}")


class _Raw(io.RawIOBase):
    """A reader of obstore as a file of Python."""

    def __init__(self, reader: Any, files: ObjectFiles, path: str) -> None:
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
        return int(self._reader.seek(offset, whence))

    def tell(self) -> int:
        return int(self._reader.tell())


def _info(name: str, item: Any) -> FileInfo:
    return FileInfo(name, item["size"], int(item["last_modified"].timestamp() * 1e9), item["e_tag"] or "")


def _code(error: BaseException) -> str:
    """Return the store's own code of an error, such as NoSuchBucket; empty if it has none."""
    match = CODE.search(str(error))
    return match[1] if match else ""


def _first_line(error: BaseException) -> str:
    line = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    return line if len(line) <= 160 else f"{line[:157]}..."
