"""A store for a test, S3 or HDFS: a place in it by URI, and what its files are."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import obstore
from hdfs_native import Client, WriteOptions

from reliability.runs import Run, started
from storage.hdfs_server import HdfsServer
from storage.s3_client import opened
from storage.s3_server import S3Server

TRANSFERS = 16  # at once: HDFS needs half a second to close a file


@dataclass(frozen=True)
class Store:
    """A place that only this test uses. ``uri`` has no slash at its end; clients run with ``environment``."""

    uri: str
    environment: dict[str, str]

    def run(self, folder: Path, *command: str) -> Run:
        """Run `mqreplay COMMAND` to its end; ``folder`` takes its output."""
        with started(folder, list(command), self.environment) as run:
            run.wait()
        return run

    def nightly(self, folder: Path, recording: str, *options: str, warehouse: str = "warehouse") -> Run:
        """Run a night by the local engine on a warehouse of the store."""
        where = ["--warehouse", f"{self.uri}/{warehouse}", "--engine", "local"]
        return self.run(folder, "nightly", recording, *where, *options)

    def copy_of(self, name: str, folder: Path) -> Path:
        """Return a folder of this machine with the files that are below ``name``."""
        raise NotImplementedError

    def put(self, source: Path, name: str) -> str:
        """Write the files of a folder of this machine below ``name``. Return its URI."""
        raise NotImplementedError


@dataclass(frozen=True)
class S3Store(Store):
    """A bucket."""

    server: S3Server

    def copy_of(self, name: str, folder: Path) -> Path:
        """The server keeps plain files."""
        return self.server.path(f"{self.uri}/{name}")

    def put(self, source: Path, name: str) -> str:
        """As Store.put."""
        store = opened(self.server, self.uri.removeprefix("s3://"))
        _at_once(source, lambda path, below: obstore.put(store, f"{name}/{below}", path.read_bytes()))
        return f"{self.uri}/{name}"


@dataclass(frozen=True)
class HdfsStore(Store):
    """A folder of HDFS."""

    server: HdfsServer

    def copy_of(self, name: str, folder: Path) -> Path:
        """As Store.copy_of."""
        client, root = Client(self.server.uri), f"{self.uri.removeprefix(self.server.uri)}/{name}"

        def copy(path: str) -> None:
            target = folder / path.removeprefix(root).lstrip("/")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(client.read(path).read())

        with ThreadPoolExecutor(TRANSFERS) as pool:
            list(pool.map(copy, [item.path for item in client.list_status(root, recursive=True) if not item.isdir]))
        return folder

    def put(self, source: Path, name: str) -> str:
        """As Store.put."""
        client, root = Client(self.server.uri), f"{self.uri.removeprefix(self.server.uri)}/{name}"

        def write(path: Path, below: str) -> None:
            with client.create(f"{root}/{below}", WriteOptions(create_parent=True)) as stream:
                stream.write(path.read_bytes())

        _at_once(source, write)
        return f"{self.uri}/{name}"


def s3_store(server: S3Server) -> S3Store:
    """A new bucket."""
    return S3Store(f"s3://{server.make_bucket()}", server.environment(), server)


def hdfs_store(server: HdfsServer) -> HdfsStore:
    """A new folder."""
    return HdfsStore(server.make_folder(), {}, server)


def _at_once(source: Path, put: Callable[[Path, str], object]) -> None:
    paths = [path for path in source.rglob("*") if path.is_file()]
    with ThreadPoolExecutor(TRANSFERS) as pool:
        list(pool.map(put, paths, [str(path.relative_to(source)) for path in paths]))
