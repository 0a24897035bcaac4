"""A night on a real Spark Connect server: the same tables as on one machine, without a Java of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cluster.processes import free_port, wait_for_port
from mqreplay.lake.session import MEANING, SOCKETS, TUNING
from mqreplay.settings import load_settings
from standalone_cluster import environment
from tests_shared import ROOT, SAMPLE, assert_same_tables, run

pytestmark = pytest.mark.long
MAIN = "org.apache.spark.sql.connect.service.SparkConnectServer"
MQREPLAY = str(Path(sys.executable).with_name("mqreplay"))
RECORDING = str(SAMPLE / "bulk-5.3.3")
DELTA = ("spark.sql.extensions", "spark.sql.catalog.spark_catalog")


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server on this machine."""
    with server(tmp_path_factory.mktemp("connect"), TUNING | MEANING) as found:
        yield found


@contextmanager
def server(folder: Path, options: dict[str, str], modules: str = str(ROOT / "lib")) -> Iterator[str]:
    """The address of a server, while it runs; its workers find ``modules``."""
    port, log = free_port(), folder / "console.log"
    env = environment() | {"PYTHONPATH": modules, "TZ": "UTC"}
    command = [str(Path(sys.executable).with_name("spark-submit")), "--master", "local[2]", "--driver-memory", "2g"]
    for name, value in {**options, SOCKETS: "true", "spark.connect.grpc.binding.port": str(port)}.items():
        command += ["--conf", f"{name}={value}"]
    with log.open("w") as out:
        process = subprocess.Popen(
            [*command, "--class", MAIN, "spark-internal"], cwd=folder, env=env, stdout=out, stderr=out
        )
    try:
        wait_for_port(process, port, folder)
        yield f"sc://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(60)


def settings_of(folder: Path, address: str) -> str:
    path = folder / "settings.toml"
    path.write_text(f'[spark]\nmaster = "{address}"\n')
    return str(path)


def night(folder: Path, address: str) -> subprocess.CompletedProcess[str]:
    """Run a night whose own Java cannot start."""
    command = [MQREPLAY, "nightly", RECORDING, "--warehouse", str(folder / "w"), "--conf", settings_of(folder, address)]
    env = {**os.environ, "JAVA_HOME": str(folder / "no-java"), "PATH": str(folder)}
    return subprocess.run(command, env=env, capture_output=True, text=True, check=False, timeout=900)


def test_a_night_on_a_server_gives_the_tables_of_one_machine(address: str, tmp_path: Path) -> None:
    done = night(tmp_path, address)
    assert done.returncode == 0, done.stderr[-3000:]
    assert f"connecting to {address}" in done.stderr
    here = str(tmp_path / "here")
    run("nightly", here, load_settings(), lambda text: None, recordings=[RECORDING])
    assert_same_tables(str(tmp_path / "w"), here)


def test_a_server_without_delta_or_none_is_one_line(tmp_path: Path) -> None:
    without = {name: value for name, value in (TUNING | MEANING).items() if name not in DELTA}
    with server(tmp_path, without) as found:
        done = night(tmp_path, found)
    assert done.returncode == 2, done.stderr[-3000:]
    assert "this server was started without Delta; start it with spark.sql.extensions=" in done.stderr
    gone = night(tmp_path, found)
    assert gone.returncode == 2, gone.stderr[-3000:]
    assert f"{found}: no Spark Connect server answers: " in gone.stderr
    assert "Traceback" not in done.stderr + gone.stderr
