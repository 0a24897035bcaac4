"""spark-submit --archives: workers that have stock Spark and a bare Python run a night."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from mqreplay.settings import load_settings
from standalone_cluster import environment, standalone, stock_spark
from tests_shared import ROOT, SAMPLE, assert_same_tables, run

pytestmark = pytest.mark.long
BIN = Path(sys.executable).parent
RECORDING = str(SAMPLE / "orders-4.9.7")


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The archive that `make environment` makes."""
    folder = tmp_path_factory.mktemp("build")
    command = ["make", "--silent", "environment", f"BUILD={folder}", f"PYTHON={sys.executable}"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder / "environment.tar.gz"


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python with nothing but its standard library."""
    folder = tmp_path_factory.mktemp("bare")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    python = folder / "bin" / "python"
    for name in ("mqreplay", "polars", "pyspark"):
        assert subprocess.run([str(python), "-c", f"import {name}"], capture_output=True, check=False).returncode == 1
    return python


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("workers")


@pytest.fixture(scope="module")
def master(work: Path, bare: Path) -> Iterator[str]:
    """Two workers with Spark as Apache ships it, without Delta's JARs, and with the bare Python."""
    env = {name: os.environ[name] for name in ("HOME", "JAVA_HOME") if name in os.environ}
    env |= {
        "PATH": f"{bare.parent}:/usr/bin:/bin",
        "SPARK_HOME": str(stock_spark(work / "spark")),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    with standalone(work, "1500m", {**env, "PYSPARK_PYTHON": str(bare)}) as address:
        yield address


def submit(master: str, python: str, root: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Run a night as docs/clusters.md says. The driver has its own Python."""
    command = [str(BIN / "spark-submit"), "--master", master, "--conf", "spark.executor.memory=1g", *options]
    command += [str(ROOT / "jobs" / "nightly.py"), "--recording", RECORDING, "--warehouse", str(root)]
    env = {**environment(), "PYSPARK_PYTHON": python, "PYSPARK_DRIVER_PYTHON": sys.executable}
    return subprocess.run(command, env=env, capture_output=True, text=True, check=False, timeout=600)


def test_nothing_of_mqreplay_is_installed_on_the_workers(master: str, packed: Path, work: Path, tmp_path: Path) -> None:
    root = tmp_path / "warehouse"
    done = submit(master, "./environment/bin/python", root, "--archives", f"{packed}#environment")
    assert done.returncode == 0, done.stderr[-3000:]
    assert "Traceback" not in done.stderr
    unpacked = list(work.glob("*/app-*/*/environment/bin/python"))
    assert {path.relative_to(work).parts[0] for path in unpacked} == {"one", "two"}
    here = str(tmp_path / "here")
    run("nightly", here, load_settings(), lambda what: None, recordings=[RECORDING])
    assert_same_tables(str(root), here)


def test_workers_without_the_archive_get_one_line(master: str, bare: Path, tmp_path: Path) -> None:
    done = submit(master, str(bare), tmp_path / "warehouse")
    assert done.returncode == 2, done.stderr[-3000:]
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("mqreplay: ")]
    assert "the Python of the workers has no module mqreplay" in line
    assert "--archives" in line
