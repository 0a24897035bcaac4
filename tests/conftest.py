"""Options and shared fixtures of the test suite: one Spark session, one completed night, one server of each store.

Pure tests use none of them, so they never import pyspark.
"""

from __future__ import annotations

import gc
import os
import pickle
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    import polars as pl
    from pyspark.sql import SparkSession

    from mqreplay.answers.outcome import Outcome
    from storage.hdfs_server import HdfsServer
    from storage.s3_server import S3Server

# pytest-xdist's processes get it from readline: what they print would be as wide as some terminal.
os.environ.pop("COLUMNS", None)
# A busy machine is no failure: examples have no deadline. `make test-long` runs the short ones again, as whole ones.
settings.register_profile("whole", deadline=None)
settings.register_profile("short", deadline=None, max_examples=25)
settings.load_profile("whole")

SAMPLE = Path(__file__).parents[1] / "data" / "sample"
PURE = ("core", "decode", "vectors")
# Folders and files that take a minute and more each begin first: the last one would have a process alone.
SLOW = ("cluster", "jobs", "storage", "engines", "bind", "test_documented_commands.py", "test_other_tools.py")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add --vectors."""
    parser.addoption(
        "--vectors",
        metavar="DIR",
        default=None,
        help="folder of *.jsonl and *.jsonl.gz vector files to check (default: tests/vectors/data)",
    )


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect no garbage while modules are imported, nor look for it among them: they all stay."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_unconfigure() -> None:
    """Let the interpreter end as ever: libraries print what it does not collect."""
    gc.unfreeze()


def pytest_collectstart(collector: pytest.Collector) -> None:
    """Give the properties of laws all their examples, and those of tables, whose examples are slow, fewer."""
    if isinstance(collector, pytest.Module) and not collector.config.getoption("--hypothesis-profile"):
        settings.load_profile("whole" if _room(collector) in (*PURE, "oracles") else "short")


@pytest.hookimpl(tryfirst=True)  # marks decide what is left out
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what asks for the session, so that `-m "not spark"` runs the rest; put what takes longest first.

    Of a test with the mark first_case the other cases are long.
    """
    begun = set()
    for item in items:
        if item.get_closest_marker("first_case") is not None:
            test = (item.path, getattr(item, "originalname", item.name))
            if test in begun:
                item.add_marker(pytest.mark.long)
            begun.add(test)
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.spark)
    items.sort(key=lambda item: _room(item) not in SLOW)


def _room(item: pytest.Item | pytest.Module) -> str:
    """Return the folder of a test below tests, or its file."""
    return item.path.relative_to(Path(__file__).parent).parts[0]


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """The one session of a process, for few rows: Java compiles little, and a shuffle has few tasks."""
    from mqreplay.lake.session import build_session
    from mqreplay.settings import load_settings

    # Its Python workers find what tests hand to them.
    paths = [str(Path(__file__).resolve().parents[1] / "lib"), str(Path(__file__).resolve().parent)]
    os.environ["PYTHONPATH"] = os.pathsep.join([*paths, *filter(None, [os.environ.get("PYTHONPATH")])])
    session = build_session("mqreplay-tests", load_settings().spark, small=True)
    session.conf.set("spark.sql.shuffle.partitions", "2")
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
def night() -> Night:
    """Both sample recordings through the whole nightly run, once for all processes. Tests must not write to it."""
    from mqreplay.machine.places import conf_dir
    from mqreplay.settings import load_settings
    from tests_shared import made_once, run

    recordings = [str(SAMPLE / name) for name in ("orders-4.9.7", "bulk-5.3.3")]

    def judge(folder: Path) -> None:
        settings = load_settings(str(conf_dir() / "sample.toml"))
        outcomes = run("nightly", str(folder / "warehouse"), settings, lambda what: None, recordings=recordings)
        (folder / "outcomes").write_bytes(pickle.dumps({outcome.cluster: outcome for outcome in outcomes}))

    folder = made_once("night", judge, SAMPLE)
    return Night(str(folder / "warehouse"), pickle.loads((folder / "outcomes").read_bytes()))


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
