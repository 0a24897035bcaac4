"""A real standalone master with two workers, and jobs through real spark-submit: the same tables as on one machine."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from reliability.recordings import small_night
from standalone_cluster import environment, standalone, stock_spark
from tests_shared import ROOT, SAMPLE, table_rows, tables

BIN = Path(sys.executable).parent
BULK, CONF = str(SAMPLE / "bulk-5.3.3"), str(ROOT / "conf" / "sample.toml")
CLUSTER = "grid-cluster"
SKIPPED = {"bronze.step"}  # says what was done, not what was found


@pytest.fixture(scope="module")
def master(tmp_path_factory):
    """The address of a standalone master with two workers of one core each, whose Spark has no Delta."""
    work = tmp_path_factory.mktemp("standalone")
    with standalone(work, "1500m", environment() | {"SPARK_HOME": str(stock_spark(work / "spark"))}) as address:
        yield address


def submit(job: str, *arguments: str, master: str, options: Sequence[str] = ()) -> subprocess.CompletedProcess[str]:
    command = [str(BIN / "spark-submit"), "--master", master, "--conf", "spark.executor.memory=1g", *options]
    command += [str(ROOT / "jobs" / f"{job}.py"), *arguments]
    return subprocess.run(command, env=environment(), capture_output=True, text=True, check=False, timeout=1200)


@pytest.fixture
def small() -> tuple[str, str, list[str]]:
    """Two minutes of a sample, the warehouse of their night on this machine, and the options for its settings."""
    return *small_night(), []


@pytest.fixture
def bulk(night) -> tuple[str, str, list[str]]:
    """The sample, the warehouse of its night on this machine, and the options for its settings."""
    return BULK, night.root, ["--conf", CONF]


def test_ingest_on_two_workers_gives_the_same_tables(master, small, tmp_path):
    """The night has ten times as many jobs: it is long."""
    root, (recording, local, _) = str(tmp_path / "warehouse"), small
    done = submit("ingest", "--recording", recording, "--warehouse", root, master=master)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "Traceback" not in done.stderr
    names = [name for name in tables(local) if name.startswith(("bronze.", "silver.")) and name not in SKIPPED]
    assert len(names) > 5
    for name in names:
        assert table_rows(root, name, CLUSTER) == table_rows(local, name, CLUSTER), name


@pytest.mark.long
@pytest.mark.parametrize("size", ["small", "bulk"])
def test_nightly_on_two_workers_gives_the_same_tables(master, request, size, tmp_path):
    root = str(tmp_path / "warehouse")
    recording, local, options = request.getfixturevalue(size)
    done = submit("nightly", "--recording", recording, "--warehouse", root, *options, master=master)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "Traceback" not in done.stderr
    pulls = len(table_rows(local, "silver.pull", CLUSTER))
    assert re.search(rf"pulls +{pulls:,} +0\b", done.stdout), done.stdout
    assert_same_rows(root, local)


def assert_same_rows(root: str, local: str) -> None:
    """The cluster has the same rows in both warehouses."""
    assert len(tables(root)) > 20
    for name in sorted({*tables(root), *tables(local)} - SKIPPED):
        here = table_rows(root, name, CLUSTER) if name in tables(root) else []
        assert here == table_rows(local, name, CLUSTER), name


@pytest.mark.long
def test_nightly_on_two_workers_reads_and_writes_by_names(master, night, tmp_path):
    """Names in a Hive metastore: Derby is in the driver, and the workers need no metastore."""
    root = str(tmp_path / "warehouse")
    extra = {
        "spark.sql.catalogImplementation": "hive",
        "spark.sql.warehouse.dir": str(tmp_path / "databases"),
        "spark.hadoop.javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={tmp_path}/derby;create=true",
    }
    options = [word for name, value in extra.items() for word in ("--conf", f"{name}={value}")]
    names = ["--conf", CONF, "--catalog", "spark_catalog", "--prefix", "mq_"]
    done = submit("nightly", "--recording", BULK, "--warehouse", root, *names, master=master, options=options)
    assert done.returncode == 0, done.stderr[-3000:]
    assert_same_rows(root, night.root)
    log = json.loads(Path(root, "gold", "finding", "_delta_log", f"{0:020d}.json").read_text().splitlines()[0])
    assert log["commitInfo"]["engineInfo"].startswith("Apache-Spark")


@pytest.mark.long
def test_a_setting_that_comes_too_late_is_refused(tmp_path):
    conf, root = tmp_path / "own.toml", tmp_path / "warehouse"
    conf.write_text('[spark]\nmaster = "yarn"\ndriver_memory = "1024m"\n[spark.extra]\n"spark.driver.cores" = 2\n')
    done = submit("nightly", "--recording", BULK, "--warehouse", str(root), "--conf", str(conf), master="local[1]")
    assert done.returncode == 2, done.stderr
    assert [line for line in done.stderr.splitlines() if line.startswith("mqreplay: ")] == [
        "mqreplay: [spark] master = 'yarn' (spark-submit has 'local[1]'), [spark.extra] spark.driver.cores = '2' "
        "(spark-submit does not have it): too late, because spark-submit has already started Java. Give it before the "
        "job, or remove it from the settings: spark-submit --master yarn --driver-cores 2 ..."
    ]
    assert not list(root.glob("*/*"))
