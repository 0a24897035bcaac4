"""bulk-5.3.3 through spark-submit on a standalone master with two workers, with a warehouse on real stores."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from reliability.table_rows import read_tables
from standalone_cluster import environment, standalone
from storage.artefacts import HADOOP_AWS
from storage.conftest import CleanNight
from storage.stores import S3Store, Store
from tests_shared import ROOT, SAMPLE, run

BIN = Path(sys.executable).parent
RECORDING = str(SAMPLE / "bulk-5.3.3")
CONF = str(ROOT / "conf" / "sample.toml")


@pytest.fixture(scope="module")
def master(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a standalone master with two workers of one core each."""
    with standalone(tmp_path_factory.mktemp("standalone"), "1500m") as address:
        yield address


def submit(store: Store, master: str, recording: str, *options: str) -> subprocess.CompletedProcess[str]:
    """Run the nightly job on the workers, which have no variables of the store."""
    command = [str(BIN / "spark-submit"), "--master", master, "--conf", "spark.executor.memory=1g"]
    command += [*options, str(ROOT / "jobs" / "nightly.py"), "--recording", recording, "--conf", CONF]
    command += ["--warehouse", f"{store.uri}/warehouse"]
    env = environment() | store.environment
    return subprocess.run(command, env=env, capture_output=True, text=True, check=False, timeout=1200)


def submitted(store: Store, master: str, recording: str) -> str:
    """Run the job with Spark's client of the store. Return its output."""
    jars = HADOOP_AWS.class_path() if isinstance(store, S3Store) else []
    done = submit(store, master, recording, *(["--jars", ",".join(jars)] if jars else []))
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout + done.stderr


def told(store: Store, *command: str) -> str:
    """Return the output of a command on the warehouse."""
    line = [str(BIN / "mqreplay"), *command, "--warehouse", f"{store.uri}/warehouse"]
    env = {**os.environ, **store.environment}
    done = subprocess.run(line, env=env, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@pytest.mark.long
def test_night_on_two_workers(store: Store, master: str, tmp_path: Path) -> None:
    from mqreplay.settings import load_settings

    run("nightly", str(tmp_path / "local"), load_settings(CONF), lambda what: None, recordings=[RECORDING])
    wanted = read_tables(tmp_path / "local")
    clean = CleanNight(RECORDING, wanted)
    recording = store.put(Path(RECORDING), "recording")
    if isinstance(store, S3Store):
        lacking = submit(store, master, recording)
        assert lacking.returncode == 2
        assert "has no Hadoop client for them (org.apache.hadoop.fs.s3a.S3AFileSystem)" in lacking.stderr
    submitted(store, master, recording)
    copy = store.copy_of("warehouse", tmp_path / "copy")
    assert not clean.wrong_in(copy, recording)
    assert "<html" in (copy / "report" / "grid-cluster.html").read_text(encoding="utf-8")

    pulls = json.loads(told(store, "sql", "SELECT count(*) AS n FROM silver.pull", "--format", "json"))
    assert pulls == {"n": wanted["silver.pull"].total()}
    findings = json.loads(told(store, "findings", "--json"))["findings"]
    assert len(findings) == wanted["gold.finding"].total()
    assert told(store, "explain", findings[0]["finding_id"])

    assert "none new or changed" in submitted(store, master, recording)
    assert not clean.wrong_in(store.copy_of("warehouse", tmp_path / "again"), recording)
