"""One builder, for this process and for workers in processes of their own; it leaves no litter and needs no network."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from mqreplay.lake import session
from mqreplay.lake.session import RUNNING, SOCKETS, SOCKETS_DIR, fit_plans

LIB = Path(__file__).parents[2] / "lib"
WORK = """
import dataclasses, os, sys
from pyspark.sql import functions as F
from mqreplay.lake.session import build_session
from mqreplay.settings import load_settings
spark = build_session("elsewhere", dataclasses.replace(load_settings().spark, master=sys.argv[1]))

@F.udf("string")
def where(number):
    from mqreplay.core.message_queue import MessageQueue  # the package is there
    return f"{os.getpid()} {sys.executable}"

spark.range(4).coalesce(1).write.format("delta").save(sys.argv[2])
told = spark.read.format("delta").load(sys.argv[2]).select(where("id")).collect()
print(sorted({row[0].split()[1] for row in told}), os.getpid() in {int(row[0].split()[0]) for row in told}, len(told))
spark.stop()
"""


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("spark.sql.session.timeZone", "UTC"),
        ("spark.sql.ansi.enabled", "true"),
        ("spark.sql.variable.substitute", "false"),
        ("spark.ui.enabled", "false"),
        ("spark.databricks.delta.snapshotPartitions", "1"),
        ("spark.databricks.delta.properties.defaults.enableDeletionVectors", "false"),
        ("spark.databricks.delta.properties.defaults.columnMapping.mode", "none"),
    ],
)
def test_what_the_answers_rest_on(spark, name: str, value: str) -> None:
    assert spark.conf.get(name) == value


def test_running_session_is_taken(spark) -> None:
    from mqreplay.lake.session import build_session
    from mqreplay.settings import load_settings

    assert build_session("again", load_settings().spark).sparkContext is spark.sparkContext


@pytest.mark.long  # each run of tests has workers of its own in tests/jobs/test_standalone.py
@pytest.mark.parametrize("master", ["local-cluster[1,1,1024]"])
def test_workers_in_processes_of_their_own(master: str, tmp_path: Path) -> None:
    env = {**os.environ, "PYTHONPATH": str(LIB)}
    for name in ("PYSPARK_PYTHON", "PYSPARK_SUBMIT_ARGS", "PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET"):
        env.pop(name, None)
    stand = tmp_path / "stand"
    stand.mkdir()
    command = [sys.executable, "-c", WORK, master, str(tmp_path / "table")]
    done = subprocess.run(command, cwd=stand, env=env, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == f"['{sys.executable}'] False 4"
    assert "ERROR" not in done.stderr
    assert [path.name for path in stand.iterdir()] == []


@pytest.mark.parametrize("small", [True, False])
def test_plans_of_few_rows_are_run_otherwise(spark, small) -> None:
    session = spark.newSession()
    fit_plans(session, small=small)
    assert [session.conf.get(name) for name, *_ in RUNNING] == [few if small else many for _, few, many in RUNNING]


def test_plans_are_as_the_user_set_them(spark) -> None:
    session = spark.newSession()
    session.conf.set("spark.sql.shuffle.partitions", "7")
    kept = {"spark.sql.shuffle.partitions": "7"}
    assert [fit_plans(session, small=small) for small in (True, False)] == [kept, kept]
    assert session.conf.get("spark.sql.shuffle.partitions") == "7"
    assert session.conf.get("spark.sql.adaptive.enabled") == "true"


@pytest.mark.long
def test_what_spark_submit_was_told_of_executors_java_stands(tmp_path: Path) -> None:
    script = tmp_path / "job.py"
    script.write_text(
        "from mqreplay.lake.session import EXECUTORS_JAVA, build_session\n"
        "from mqreplay.settings import load_settings\n"
        "spark = build_session('told', load_settings().spark)\n"
        "print(spark.sparkContext.getConf().get(EXECUTORS_JAVA))\n"
    )
    submit = [str(Path(sys.executable).parent / "spark-submit"), "--master", "local[1]"]
    told = ["--conf", "spark.executor.extraJavaOptions=-Dsite=one", str(script)]
    env = {**os.environ, "PYTHONPATH": str(LIB), "PYSPARK_PYTHON": sys.executable}
    done = subprocess.run([*submit, *told], env=env, capture_output=True, text=True, timeout=120, check=False)
    # Spark puts options of its own before.
    assert done.stdout.rstrip().endswith(" -Dsite=one"), done.stderr[-2000:]


def test_java_and_python_talk_by_sockets_of_this_process_where_paths_are_short(monkeypatch) -> None:
    told = session._sockets(local=True)
    assert told[SOCKETS] == "true"
    assert Path(told[SOCKETS_DIR]).is_dir()
    assert session._sockets(local=False) == {SOCKETS: "true"}
    monkeypatch.setattr(session, "scratch", lambda: SimpleNamespace(part=lambda name: Path("/tmp/" + "long" * 20)))
    assert session._sockets(local=True) == {SOCKETS: "false"}


def test_the_session_talks_by_them(spark) -> None:
    assert spark.sparkContext.getConf().get(SOCKETS) == "true"
