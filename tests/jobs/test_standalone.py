"""A real standalone master with two workers, and jobs through real spark-submit: the same tables as on one machine."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests_shared import ROOT, SAMPLE, table_rows, tables

BIN = Path(sys.executable).parent
CLUSTER = "grid-cluster"
SKIPPED = {"bronze.step"}  # says what was done, not what was found


def environment() -> dict[str, str]:
    import pyspark

    return {
        **os.environ,
        "SPARK_HOME": str(Path(pyspark.__file__).parent),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYTHONPATH": "",
    }


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture(scope="module")
def master(tmp_path_factory):
    """The address of a standalone master with two workers of one core each."""
    folder = tmp_path_factory.mktemp("standalone")
    env, port = environment(), free_port()
    spark_class = str(BIN / "spark-class")
    if not Path(spark_class).exists():
        spark_class = str(Path(env["SPARK_HOME"], "bin", "spark-class"))
    address = f"spark://127.0.0.1:{port}"
    ui = ["--webui-port", "0"]
    commands = [["org.apache.spark.deploy.master.Master", "--host", "127.0.0.1", "--port", str(port), *ui]]
    for name in ("one", "two"):
        work = ["--cores", "1", "--memory", "1500m", "--work-dir", str(folder / name), "--host", "127.0.0.1", *ui]
        commands.append(["org.apache.spark.deploy.worker.Worker", *work, address])
    log = folder / "log"
    running = []
    with log.open("w") as out:
        for command in commands:
            running.append(subprocess.Popen([spark_class, *command], env=env, stdout=out, stderr=out))
        deadline = time.monotonic() + 120
        while log.read_text().count("Successfully registered with master") < 2:
            assert time.monotonic() < deadline, log.read_text()[-3000:]
            assert all(p.poll() is None for p in running), log.read_text()[-3000:]
            time.sleep(0.5)
        yield address
        for process in running:
            process.terminate()
        for process in running:
            process.wait(30)


def submit(job: str, *arguments: str, master: str) -> subprocess.CompletedProcess[str]:
    command = [str(BIN / "spark-submit"), "--master", master, "--conf", "spark.executor.memory=1g"]
    command += [str(ROOT / "jobs" / f"{job}.py"), *arguments]
    return subprocess.run(command, env=environment(), capture_output=True, text=True, check=False, timeout=1200)


def test_nightly_on_two_workers_gives_the_same_tables(master, night, tmp_path):
    root = str(tmp_path / "warehouse")
    recording, told = str(SAMPLE / "bulk-5.3.3"), str(ROOT / "conf" / "sample.toml")
    done = submit("nightly", "--recording", recording, "--warehouse", root, "--conf", told, master=master)
    assert done.returncode == 0, done.stderr[-3000:]
    assert re.search(r"gold.pull_route\s+6,875\s+0\s+0", done.stdout), done.stdout
    assert len(tables(root)) > 20
    for name in sorted({*tables(root), *tables(night.root)} - SKIPPED):
        here = table_rows(root, name, CLUSTER) if name in tables(root) else []
        assert here == table_rows(night.root, name, CLUSTER), name


def test_a_job_says_what_is_wrong_with_its_input(tmp_path):
    done = submit(
        "ingest", "--recording", str(tmp_path / "none"), "--warehouse", str(tmp_path / "w"), master="local[1]"
    )
    assert done.returncode != 0
    assert "is no folder that can be read" in done.stderr
