"""A real standalone master with two workers, and jobs through real spark-submit: the same tables as on one machine."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Sequence
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


def submit(job: str, *arguments: str, master: str, options: Sequence[str] = ()) -> subprocess.CompletedProcess[str]:
    command = [str(BIN / "spark-submit"), "--master", master, "--conf", "spark.executor.memory=1g", *options]
    command += [str(ROOT / "jobs" / f"{job}.py"), *arguments]
    return subprocess.run(command, env=environment(), capture_output=True, text=True, check=False, timeout=1200)


def test_nightly_on_two_workers_gives_the_same_tables(master, night, tmp_path):
    root = str(tmp_path / "warehouse")
    recording, conf = str(SAMPLE / "bulk-5.3.3"), str(ROOT / "conf" / "sample.toml")
    done = submit("nightly", "--recording", recording, "--warehouse", root, "--conf", conf, master=master)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "Traceback" not in done.stderr
    assert re.search(r"pulls +6,875 +0 ", done.stdout), done.stdout
    assert len(tables(root)) > 20
    for name in sorted({*tables(root), *tables(night.root)} - SKIPPED):
        here = table_rows(root, name, CLUSTER) if name in tables(root) else []
        assert here == table_rows(night.root, name, CLUSTER), name


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
    conf = str(ROOT / "conf" / "sample.toml")
    names = ["--conf", conf, "--catalog", "spark_catalog", "--prefix", "mq_"]
    recording = str(SAMPLE / "bulk-5.3.3")
    done = submit("nightly", "--recording", recording, "--warehouse", root, *names, master=master, options=options)
    assert done.returncode == 0, done.stderr[-3000:]
    for name in sorted({*tables(root), *tables(night.root)} - SKIPPED):
        here = table_rows(root, name, CLUSTER) if name in tables(root) else []
        assert here == table_rows(night.root, name, CLUSTER), name
    log = json.loads(Path(root, "gold", "finding", "_delta_log", f"{0:020d}.json").read_text().splitlines()[0])
    assert log["commitInfo"]["engineInfo"].startswith("Apache-Spark")


def test_a_setting_that_comes_too_late_is_refused(tmp_path):
    conf, root = tmp_path / "own.toml", tmp_path / "warehouse"
    conf.write_text('[spark]\nmaster = "yarn"\ndriver_memory = "1024m"\n[spark.extra]\n"spark.driver.cores" = 2\n')
    recording = str(SAMPLE / "bulk-5.3.3")
    done = submit("nightly", "--recording", recording, "--warehouse", str(root), "--conf", str(conf), master="local[1]")
    assert done.returncode == 2, done.stderr
    assert [line for line in done.stderr.splitlines() if line.startswith("mqreplay: ")] == [
        "mqreplay: [spark] master = 'yarn' (spark-submit has 'local[1]'), [spark.extra] spark.driver.cores = '2' "
        "(spark-submit does not have it): too late, because spark-submit has already started Java. Give it before the "
        "job, or remove it from the settings: spark-submit --master yarn --driver-cores 2 ..."
    ]
    assert not list(root.glob("*/*"))
