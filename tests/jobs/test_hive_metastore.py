"""nightly --catalog with a real Hive metastore: the names outlive the run, and show the next night."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from standalone_cluster import environment
from tests_shared import ROOT, SAMPLE, table_at

pytestmark = pytest.mark.long
BIN = Path(sys.executable).parent


@pytest.fixture(scope="module")
def metastore(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Options of spark-submit and spark-sql for a metastore in Derby, which Spark includes."""
    folder = tmp_path_factory.mktemp("metastore")
    settings = {
        "spark.sql.catalogImplementation": "hive",
        "spark.sql.warehouse.dir": str(folder / "databases"),
        "spark.hadoop.javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={folder}/derby;create=true",
    }
    derby = f"-Dderby.stream.error.file={folder}/derby.log"
    options = ["--driver-java-options", derby]
    for name, value in settings.items():
        options += ["--conf", f"{name}={value}"]
    return options


def run(program: str, *words: str, folder: Path) -> subprocess.CompletedProcess[str]:
    env = {**environment(), "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}"}
    command = [str(BIN / program), "--master", "local[2]", *words]
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False, timeout=600)


def night(recording: str, root: Path, metastore: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    job = [str(ROOT / "jobs" / "nightly.py"), "--recording", str(SAMPLE / recording), "--warehouse", str(root)]
    return run("spark-submit", *metastore, *job, "--catalog", "spark_catalog", "--prefix", "mq_", folder=folder)


def counted(metastore: list[str], folder: Path) -> int:
    """The findings that another program of Spark counts by the name of the table."""
    read = ["--properties-file", str(ROOT / "conf" / "spark-defaults.conf")]
    done = run("spark-sql", *read, *metastore, "-e", "SELECT count(*) FROM mq_gold.finding", folder=folder)
    assert done.returncode == 0, done.stderr[-3000:]
    return int(done.stdout.split()[-1])


def test_names_in_a_metastore_show_each_night(metastore: list[str], tmp_path: Path) -> None:
    root, folder = tmp_path / "warehouse", tmp_path / "cwd"
    folder.mkdir()
    first = night("orders-4.9.7", root, metastore, folder)
    assert first.returncode == 0, first.stderr[-3000:]
    tables = len(list(root.glob("*/*/_delta_log")))
    assert tables > 20
    assert f"catalog spark_catalog: tables registered: {tables}, new among them: {tables}" in first.stderr
    before = counted(metastore, folder)
    assert before == len(table_at(root, "gold.finding"))
    second = night("bulk-5.3.3", root, metastore, folder)
    assert second.returncode == 0, second.stderr[-3000:]
    after = counted(metastore, folder)
    assert after == len(table_at(root, "gold.finding")) > before
    known = len(list(root.glob("*/*/_delta_log")))
    assert f"catalog spark_catalog: tables registered: {known}, new among them: {known - tables}" in second.stderr
    assert list(folder.iterdir()) == []
