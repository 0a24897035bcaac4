"""A pass in sessions that are not of one machine: a Spark Connect server, and a cluster whose executor is killed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from engines.test_spark_passes import CLUSTER, DAYS, counted, progress_of, same, warehouse
from engines.toy_pass import DAY, KILLS
from jobs.test_connect import server
from mqreplay.engines.local import LocalEngine
from mqreplay.lake.session import MEANING, TUNING
from mqreplay.lake.warehouse import Warehouse
from standalone_cluster import environment
from tests_shared import ROOT

__all__ = ["warehouse"]  # a fixture
TESTS = str(ROOT / "tests")


@pytest.fixture
def expected(warehouse: Warehouse, tmp_path: Path) -> pl.DataFrame:
    """The gold rows of the pass on one machine; none is left in the warehouse."""
    with LocalEngine(tmp_path, processes=1) as engine:
        counted(engine.pass_runner(warehouse, CLUSTER, DAY, DAYS), warehouse, 400)
    found = progress_of(warehouse)
    warehouse.drop("gold.queue_progress")
    return found


def in_session(master: str, warehouse: Warehouse, **variables: str) -> str:
    """Run other_session.py; return what it says."""
    env = environment() | {"PYTHONPATH": os.pathsep.join([str(ROOT / "lib"), TESTS])} | variables
    command = [sys.executable, str(Path(TESTS, "engines", "other_session.py")), master, warehouse.root]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout + done.stderr


def test_a_pass_on_a_connect_server(warehouse: Warehouse, expected: pl.DataFrame, tmp_path: Path) -> None:
    (tmp_path / "server").mkdir()
    with server(tmp_path / "server", TUNING | MEANING, os.pathsep.join([str(ROOT / "lib"), TESTS])) as address:
        in_session(address, warehouse)
    same(progress_of(Warehouse(warehouse.root)), expected)


def test_many_tasks_on_a_cluster_whose_executor_is_killed(
    warehouse: Warehouse, expected: pl.DataFrame, tmp_path: Path
) -> None:
    kills = tmp_path / "kills"
    kills.touch()
    said = in_session("local-cluster[2,1,1024]", warehouse, **{KILLS: str(kills)})
    assert not kills.exists()
    tasks, queues = map(int, said.split("\n")[0].split())
    assert tasks > 5
    assert queues == 200
    same(progress_of(Warehouse(warehouse.root)), expected)
