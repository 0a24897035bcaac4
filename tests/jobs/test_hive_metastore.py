"""nightly --catalog with a real Hive metastore: tables are read and written by name, and equal those of a path."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from mqreplay.lake.catalog_tables import CHECK
from mqreplay.lake.contract import PROPERTIES
from mqreplay.lake.journal import JOURNAL
from mqreplay.settings import load_settings
from standalone_cluster import environment
from tests_shared import ROOT, SAMPLE, table_at, table_rows, tables
from tests_shared import run as run_here

pytestmark = pytest.mark.long
BIN = Path(sys.executable).parent
CLUSTER = "DefaultCluster"


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
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False, timeout=1800)


def jobs(events: Path) -> int:
    """The number of jobs of Spark in the event log of a folder."""
    lines = (line for path in events.rglob("events_*") for line in path.read_text().splitlines())
    return sum(json.loads(line)["Event"] == "SparkListenerJobStart" for line in lines)


def night(root: Path, metastore: list[str], folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Run the night of a sample by names, or with other options of the job."""
    job = [str(ROOT / "jobs" / "nightly.py"), "--recording", str(SAMPLE / "orders-4.9.7"), "--warehouse", str(root)]
    conf = ["--conf", str(ROOT / "conf" / "sample.toml")]
    names = options or ("--catalog", "spark_catalog", "--prefix", "mq_")
    return run("spark-submit", *metastore, *job, *conf, *names, folder=folder)


def maintained(root: Path, metastore: list[str], folder: Path, *options: str) -> dict[str, Any]:
    """What jobs/maintain.py did to each table."""
    job = [str(ROOT / "jobs" / "maintain.py"), "--warehouse", str(root), "--json", *options]
    done = run("spark-submit", *metastore, *job, "--catalog", "spark_catalog", "--prefix", "mq_", folder=folder)
    assert done.returncode == 0, done.stderr[-3000:]
    return {each["table"]: each for each in json.loads(done.stdout)["tables"]}


def counted(metastore: list[str], folder: Path) -> int:
    """The findings that another program of Spark counts by the name of the table."""
    read = ["--properties-file", str(ROOT / "conf" / "spark-defaults.conf")]
    done = run("spark-sql", *read, *metastore, "-e", "SELECT count(*) FROM mq_gold.finding", folder=folder)
    assert done.returncode == 0, done.stderr[-3000:]
    return int(done.stdout.split()[-1])


def versions(root: Path) -> dict[str, int]:
    return {name: DeltaTable(str(root / name.replace(".", "/"))).version() for name in tables(str(root))}


def assert_as_by_path(root: Path, other: str) -> None:
    """The tables have the rows of the night by path, and are made by the same contracts."""
    assert len(tables(str(root))) > 20
    by_path = Path(other)
    for name in sorted({*tables(str(root)), *tables(other)} - {"bronze.step"}):
        expected = table_rows(other, name, CLUSTER) if name in tables(other) else []
        assert table_rows(str(root), name, CLUSTER) == expected, name
        if name in tables(other):
            here, there = (DeltaTable(str(place.joinpath(*name.split(".")))) for place in (root, by_path))
            assert here.schema().to_json() == there.schema().to_json(), name
            assert here.metadata().partition_columns == there.metadata().partition_columns, name
            assert here.metadata().description == there.metadata().description, name
            # Spark also writes the defaults of the session.
            settings = (each.metadata().configuration for each in (here, there))
            own, expected = ({k: v for k, v in each.items() if k in PROPERTIES or CHECK in k} for each in settings)
            assert own.keys() == expected.keys(), name
            assert {key: own[key] for key in PROPERTIES} == PROPERTIES, name


def test_nights_by_names_in_a_metastore(metastore: list[str], night_by_path: str, tmp_path: Path) -> None:
    root, folder, events = (tmp_path / name for name in ("warehouse", "cwd", "events"))
    folder.mkdir()
    events.mkdir()
    logged = {"enabled": "true", "compress": "false", "dir": events.as_uri()}
    first = night(
        root, metastore + [w for k, v in logged.items() for w in ("--conf", f"spark.eventLog.{k}={v}")], folder
    )
    assert first.returncode == 0, first.stderr[-3000:]
    assert 60 < jobs(events) <= 150
    assert_as_by_path(root, night_by_path)
    assert counted(metastore, folder) == len(table_at(root, "gold.finding")) > 0

    before = versions(root)
    again = night(root, metastore, folder)
    assert again.returncode == 0, again.stderr[-3000:]
    assert versions(root) == before, "a night without new files writes nothing"

    # As if the first night had been killed before its last commit.
    (root / JOURNAL).write_text(json.dumps({"name": "test", "versions": dict.fromkeys(before)}))
    after = night(root, metastore, folder)
    assert after.returncode == 0, after.stderr[-3000:]
    assert "the last run was interrupted (test); rolling it back" in after.stderr
    assert_as_by_path(root, night_by_path)

    kept = maintained(root, metastore, folder)
    assert kept["gold.finding"]["rows_removed"] == 0
    assert kept["bronze.step"]["files_after"] == 1
    assert_as_by_path(root, night_by_path)

    by_path = night(root, metastore, folder, "--engine", "local")
    assert by_path.returncode == 2, by_path.stderr
    other = night(root, metastore, folder, "--catalog", "spark_catalog", "--prefix", "other_")
    assert other.returncode == 2, other.stderr
    assert "was begun with --catalog spark_catalog --prefix mq_" in other.stderr
    assert list(folder.iterdir()) == []


@pytest.fixture(scope="module")
def night_by_path(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The warehouse of the same night by path, made by the local engine."""
    root = str(tmp_path_factory.mktemp("by_path") / "warehouse")
    settings = load_settings(str(ROOT / "conf" / "sample.toml"))
    run_here("nightly", root, settings, lambda text: None, recordings=[str(SAMPLE / "orders-4.9.7")])
    return root
