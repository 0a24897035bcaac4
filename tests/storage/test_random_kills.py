"""Nights on real stores, killed at swept moments: the next run, begun at once, makes the tables of one clean night."""

from __future__ import annotations

import random
import re
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from reliability.runs import started
from storage.conftest import CleanNight
from storage.hdfs_server import HdfsServer
from storage.s3_front import S3Front, s3_front
from storage.s3_server import S3Server
from storage.stores import Store, hdfs_store, s3_store

KILLS = 50  # on each store
VICTIMS = ("all", "driver")
LATER_S = 0.1  # a kill comes up to so much after a request


@dataclass
class Place:
    """A store, and how far a clean night got: requests on S3, seconds on HDFS."""

    name: str
    front: S3Front | None
    hdfs: HdfsServer | None
    s3: S3Server | None
    whole: float = 0

    def new(self) -> Store:
        """A new place in the store."""
        if self.s3 is None:
            assert self.hdfs is not None
            return hdfs_store(self.hdfs)
        assert self.front is not None
        store = s3_store(self.s3)
        store.environment["AWS_ENDPOINT_URL"] = self.front.endpoint
        self.front.seen = 0
        return store

    def progress(self, began: float) -> float:
        """Return how far the run is that began at a moment."""
        return time.monotonic() - began if self.front is None else self.front.seen


@pytest.fixture(scope="session")
def of_s3(s3_server: S3Server, clean: CleanNight, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """S3 behind a proxy that counts what is written and removed."""
    with s3_front(s3_server.front.port) as front:
        front.matching = re.compile("PUT|DELETE")
        place = Place("s3", front, None, s3_server)
        yield _measured(place, clean, tmp_path_factory.mktemp("s3-night"))


@pytest.fixture(scope="session")
def of_hdfs(hdfs_server: HdfsServer, clean: CleanNight, tmp_path_factory: pytest.TempPathFactory) -> Place:
    """HDFS: no proxy counts its requests."""
    return _measured(Place("hdfs", None, hdfs_server, None), clean, tmp_path_factory.mktemp("hdfs-night"))


def _measured(place: Place, clean: CleanNight, folder: Path) -> Place:
    store, began = place.new(), time.monotonic()
    assert store.nightly(folder, clean.recording).wait() == 0
    place.whole = place.progress(began)
    return place


@pytest.mark.long
@pytest.mark.parametrize("number", range(KILLS))
def test_killed_night_on_s3(of_s3: Place, clean: CleanNight, tmp_path: Path, number: int) -> None:
    assert not killed(of_s3, clean, tmp_path, number)


@pytest.mark.long
@pytest.mark.parametrize("number", range(KILLS))
def test_killed_night_on_hdfs(of_hdfs: Place, clean: CleanNight, tmp_path: Path, number: int) -> None:
    assert not killed(of_hdfs, clean, tmp_path, number)


def killed(place: Place, clean: CleanNight, folder: Path, number: int) -> str:
    """Kill a night at one of KILLS moments, run the next one at once, and return what is wrong in words."""
    store, victim = place.new(), VICTIMS[number % len(VICTIMS)]
    command = ["nightly", clean.recording, "--warehouse", f"{store.uri}/warehouse", "--engine", "local"]
    with started(folder / "killed", command, store.environment) as run:
        began, moment = time.monotonic(), place.whole * (number + 0.5) / KILLS
        while place.progress(began) < moment and not run.ended:
            time.sleep(0.002)
        time.sleep(random.Random(number).uniform(0, LATER_S))
        ended = run.ended
        run.kill(victim)
        status = run.wait()
        # Begun while processes of the killed run may still live.
        again = store.nightly(folder / "again", clean.recording)
    wrong = [clean.wrong_in(store.copy_of("warehouse", folder / "copy"))]
    if (again.wait(), again.errors()) != (0, []):
        wrong.append(f"the next run ended with {again.wait()}: {again.errors()}")
    if status != (0 if ended else -signal.SIGKILL):
        wrong.append(f"the killed run ended with {status}")
    return "; ".join(filter(None, wrong))
