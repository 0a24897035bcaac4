"""Commands on a store that cannot be used: one line on stderr, the exit status, and no long wait."""

from __future__ import annotations

import re
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from reliability.runs import started
from storage.conftest import CleanNight
from storage.s3_front import S3Front, s3_front
from storage.s3_server import S3Server
from storage.stores import HdfsStore, S3Store

BAD_INPUT, LOCKED, CRASHED = 2, 3, 4
LONGEST_S = 60
LIMITS = "[storage]\ntimeout_s = 2\nretries = 1\nlease_s = 6\n"
Ends = Callable[..., list[str]]


@pytest.fixture
def ends(clean: CleanNight, s3: S3Store, tmp_path: Path) -> Ends:
    """Run a night that must end with a status; returns its lines on stderr that are no progress."""
    conf = tmp_path / "limits.toml"
    conf.write_text(LIMITS)

    def ended(status: int, warehouse: str = f"{s3.uri}/warehouse", **changed: str) -> list[str]:
        options = ["--warehouse", warehouse, "--engine", "local", "--conf", str(conf)]
        began = time.monotonic()
        with started(tmp_path / "run", ["nightly", clean.recording, *options], s3.environment | changed) as run:
            assert run.wait() == status, run.errors()
        assert time.monotonic() - began < LONGEST_S
        return run.errors()

    return ended


@pytest.fixture
def front(s3_server: S3Server) -> Iterator[S3Front]:
    """A proxy in front of the server, for one test."""
    with s3_front(s3_server.front.port) as proxy:
        yield proxy


@pytest.fixture
def silent() -> Iterator[str]:
    """The address of a server that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"AWS_ACCESS_KEY_ID": "another"}, "InvalidAccessKeyId"),
        ({"AWS_SECRET_ACCESS_KEY": "another"}, "SignatureDoesNotMatch"),
    ],
)
def test_wrong_key(ends: Ends, s3: S3Store, changed: dict[str, str], code: str) -> None:
    (line,) = ends(BAD_INPUT, **changed)
    assert line.startswith(f"mqreplay: {s3.uri} refuses the access to {s3.uri}/warehouse/")
    assert f"({code}); give its keys in the environment" in line


def test_missing_bucket(ends: Ends) -> None:
    assert ends(BAD_INPUT, "s3://no-such-bucket/warehouse") == [
        "mqreplay: s3://no-such-bucket does not exist; create the bucket, or check its name"
    ]


def test_address_without_a_server(ends: Ends, s3: S3Store) -> None:
    (line,) = ends(CRASHED, AWS_ENDPOINT_URL="http://127.0.0.1:1")
    assert line.startswith(f"mqreplay: {s3.uri} does not answer (connection refused); nothing stored")
    (line,) = ends(CRASHED, "hdfs://127.0.0.1:1/warehouse")
    assert line.startswith("mqreplay: hdfs://127.0.0.1:1 does not answer (Connection refused")


@pytest.mark.long
def test_server_that_never_answers(ends: Ends, s3: S3Store, silent: str) -> None:
    (line,) = ends(CRASHED, AWS_ENDPOINT_URL=f"http://{silent}")
    assert line.startswith(f"mqreplay: {s3.uri} does not answer (no answer in time); nothing stored")
    (line,) = ends(CRASHED, f"hdfs://{silent}/warehouse")
    assert line.startswith(f"mqreplay: hdfs://{silent} does not answer (no answer in 2 s); nothing stored")


@pytest.mark.long
@pytest.mark.parametrize("how", ["cuts", "stalls"])
def test_store_that_fails_midway(ends: Ends, s3: S3Store, front: S3Front, how: str) -> None:
    front.matching = re.compile("/warehouse/silver/pull/")
    setattr(front, how, True)
    (line,) = ends(CRASHED, AWS_ENDPOINT_URL=front.endpoint)
    assert line.startswith(f"mqreplay: {s3.uri} does not answer"), line
    assert front.seen
    assert ends(0) == []


@pytest.mark.long
def test_slow_store(ends: Ends, front: S3Front) -> None:
    front.delay_s, front.matching = 0.3, re.compile("/silver/pull/")
    assert ends(0, AWS_ENDPOINT_URL=front.endpoint) == []


@pytest.mark.first_case
@pytest.mark.parametrize("how", ["refuses", "ignores"])
def test_store_without_conditional_writes(ends: Ends, s3: S3Store, front: S3Front, how: str) -> None:
    if how == "refuses":
        front.refuses = 501
    else:
        front.ignores_conditions_in = s3.server.folder
    (line,) = ends(BAD_INPUT, AWS_ENDPOINT_URL=front.endpoint)
    assert line.startswith("mqreplay: ")
    assert "has no conditional writes" in line


@pytest.mark.long
def test_data_nodes_that_stop_answering(ends: Ends, hdfs: HdfsStore) -> None:
    with hdfs.server.stopped(*hdfs.server.data_nodes):
        (line,) = ends(CRASHED, f"{hdfs.uri}/warehouse")
    assert line.startswith(f"mqreplay: {hdfs.server.uri} does not answer"), line


@pytest.mark.long
def test_second_run_on_the_same_warehouse(
    ends: Ends, front: S3Front, clean: CleanNight, s3: S3Store, tmp_path: Path
) -> None:
    front.delay_s, front.matching = 1, re.compile("PUT.*/warehouse/(bronze|silver)")
    command = ["nightly", clean.recording, "--warehouse", f"{s3.uri}/warehouse", "--engine", "local"]
    with started(tmp_path / "first", command, s3.environment | {"AWS_ENDPOINT_URL": front.endpoint}) as first:
        while not front.seen and not first.ended:
            time.sleep(0.05)
        lines = ends(LOCKED)
        assert not first.ended
    assert re.match(r"mqreplay: warehouse \S+ is in use by process \d+ on \S+ since .* UTC; wait for it", lines[-1])
