"""What the tests on real stores share: a place in each store, a small recording, and a clean night of it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest

from reliability.recordings import small_night
from reliability.table_rows import Tables, difference, read_tables
from storage.hdfs_server import HdfsServer
from storage.s3_server import S3Server
from storage.stores import HdfsStore, S3Store, Store, hdfs_store, s3_store

STEPS = "bronze.step"  # has digests of the place of the recording


@pytest.fixture
def s3(s3_server: S3Server) -> S3Store:
    """A new bucket."""
    return s3_store(s3_server)


@pytest.fixture
def hdfs(hdfs_server: HdfsServer) -> HdfsStore:
    """A new folder."""
    return hdfs_store(hdfs_server)


@pytest.fixture(params=["s3", "hdfs"])
def store(request: pytest.FixtureRequest) -> Store:
    """A place in each store."""
    found: Store = request.getfixturevalue(request.param)
    return found


@dataclass(frozen=True)
class CleanNight:
    """A recording, and the tables that a night of it leaves in a local warehouse."""

    recording: str
    tables: Tables

    def wrong_in(self, warehouse: Path, recording: str | None = None) -> str:
        """Return in words what differs in the tables of a warehouse; its ``recording`` may be elsewhere."""
        found, wanted = read_tables(warehouse), self.tables
        if recording is not None:
            found = {name: _moved(rows, recording, self.recording) for name, rows in found.items() if name != STEPS}
            wanted = {name: rows for name, rows in wanted.items() if name != STEPS}
        return difference(found, wanted)


@pytest.fixture(scope="session")
def clean() -> CleanNight:
    """The small recording of the tests of interrupted runs."""
    recording, root = small_night()
    return CleanNight(recording, read_tables(Path(root)))


def _moved(rows: Counter[str], recording: str, elsewhere: str) -> Counter[str]:
    """The rows with another place of the recording."""
    return Counter({row.replace(f"'{recording}'", f"'{elsewhere}'"): count for row, count in rows.items()})
