"""A real standalone master with two workers, and jobs through real spark-submit: the same tables as on one machine."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from standalone_cluster import environment, standalone
from tests_shared import ROOT, SAMPLE, table_rows, tables

BIN = Path(sys.executable).parent
CLUSTER = "grid-cluster"
SKIPPED = {"bronze.step"}  # says what was done, not what was found


@pytest.fixture(scope="module")
def master(tmp_path_factory):
    """The address of a standalone master with two workers of one core each."""
    with standalone(tmp_path_factory.mktemp("standalone"), "1500m") as address:
        yield address


def submit(job: str, *arguments: str, master: str) -> subprocess.CompletedProcess[str]:
    command = [str(BIN / "spark-submit"), "--master", master, "--conf", "spark.executor.memory=1g"]
    command += [str(ROOT / "jobs" / f"{job}.py"), *arguments]
    return subprocess.run(command, env=environment(), capture_output=True, text=True, check=False, timeout=1200)


def test_nightly_on_two_workers_gives_the_same_tables(master, night, tmp_path):
    root = str(tmp_path / "warehouse")
    recording, told = str(SAMPLE / "bulk-5.3.3"), str(ROOT / "conf" / "sample.toml")
    done = submit("nightly", "--recording", recording, "--warehouse", root, "--conf", told, master=master)
    assert done.returncode == 0, done.stderr[-3000:]
    assert re.search(r"pulls\s+6,875\s+0\s", done.stdout), done.stdout
    assert len(tables(root)) > 20
    for name in sorted({*tables(root), *tables(night.root)} - SKIPPED):
        here = table_rows(root, name, CLUSTER) if name in tables(root) else []
        assert here == table_rows(night.root, name, CLUSTER), name


def test_a_job_says_what_is_wrong_with_its_input(tmp_path):
    done = submit(
        "ingest", "--recording", str(tmp_path / "none"), "--warehouse", str(tmp_path / "w"), master="local[1]"
    )
    assert done.returncode != 0
    assert "does not exist; give the folder that holds snapshots/" in done.stderr
