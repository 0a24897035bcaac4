"""Options and shared fixtures of the test suite: one Spark session, one completed night, one server of each store.

Pure tests use none of them, so they never import pyspark.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    import polars as pl
    from pyspark.sql import SparkSession

    from mqreplay.night.outcome import Outcome
    from storage.hdfs_server import HdfsServer
    from storage.s3_server import S3Server

# A busy machine is no failure: examples have no deadline.
settings.register_profile("mqreplay", deadline=None)
settings.load_profile("mqreplay")

SAMPLE = Path(__file__).parents[1] / "data" / "sample"
# Fixtures that are made once in a process, and the group of files that share the process. The first match counts.
SHARED = {
    group: re.compile(rf"^def \w+\([^)]*\b(?:{fixtures})\b", re.MULTILINE)
    for group, fixtures in (("stores", "s3_server|hdfs_server"), ("shared", "spark|night"))
}


# Folders and files that take a minute and more each begin first: the last one would have a process alone.
SLOW = ("cluster", "jobs", "test_documented_commands.py", "test_other_tools.py")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add --vectors."""
    parser.addoption(
        "--vectors",
        metavar="DIR",
        default=None,
        help="folder of *.jsonl and *.jsonl.gz vector files to check (default: tests/vectors/data)",
    )


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what asks for the session, so that `-m "not spark"` runs the rest; put what takes longest first."""
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.spark)
    items.sort(key=lambda item: _rank(item.path))


def _rank(file: Path) -> int:
    if group_of(file):
        return 0
    return 1 if file.relative_to(Path(__file__).parent).parts[0] in SLOW else 2


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Return a scheduler that runs each file in one process, and files that share fixtures in the same one.

    Processes share no fixture. The groups of xdist itself are lost with pytest 9, whose node ids cannot be changed.
    """
    from xdist.scheduler import LoadFileScheduling

    class ByFile(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = super()._split_scope(nodeid)
            return group_of(config.rootpath / file) or file

    return ByFile(config, log)


@cache
def group_of(file: Path) -> str | None:
    """Return the group of SHARED whose fixtures a test or a fixture of the file, or of its folder, asks for."""
    folder = file.with_name("conftest.py")
    paths = [file] if folder == Path(__file__) else [file, folder]
    sources = [path.read_text(encoding="utf-8") for path in paths if path.is_file()]
    return next((group for group, uses in SHARED.items() if any(uses.search(source) for source in sources)), None)


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """The one session of all tests."""
    from mqreplay.lake.session import build_session
    from mqreplay.settings import load_settings

    # Its Python workers find what tests hand to them.
    paths = [str(Path(__file__).resolve().parents[1] / "lib"), str(Path(__file__).resolve().parent)]
    os.environ["PYTHONPATH"] = os.pathsep.join([*paths, *filter(None, [os.environ.get("PYTHONPATH")])])
    session = build_session("mqreplay-tests", load_settings().spark)
    yield session
    session.stop()


@dataclass(frozen=True)
class Night:
    """A nightly run that is done: its warehouse, and what it left for each cluster."""

    root: str
    outcomes: dict[str, Outcome]

    def table(self, name: str, cluster: str) -> pl.DataFrame:
        """A cluster's rows of a table."""
        from tests_shared import table_at

        return table_at(self.root, name, cluster)


@pytest.fixture(scope="session")
def night(tmp_path_factory: pytest.TempPathFactory) -> Night:
    """Both sample recordings through the whole nightly run, once for all tests. Tests must not write to it."""
    from mqreplay.places import conf_dir
    from mqreplay.settings import load_settings
    from tests_shared import run

    root = str(tmp_path_factory.mktemp("night") / "warehouse")
    recordings = [str(SAMPLE / name) for name in ("orders-4.9.7", "bulk-5.3.3")]
    settings = load_settings(str(conf_dir() / "sample.toml"))
    outcomes = run("nightly", root, settings, lambda what: None, recordings=recordings)
    return Night(root, {outcome.cluster: outcome for outcome in outcomes})


@pytest.fixture(scope="session")
def s3_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """A real S3 server on this machine. Each test makes its own bucket."""
    from storage.s3_server import running_s3_server

    with running_s3_server(tmp_path_factory.mktemp("s3")) as server:
        yield server


@pytest.fixture(scope="session")
def hdfs_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HdfsServer]:
    """A real HDFS on this machine. Each test makes its own folder."""
    from storage.hdfs_server import running_hdfs_server

    with running_hdfs_server(tmp_path_factory.mktemp("hdfs")) as server:
        yield server
