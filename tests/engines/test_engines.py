"""Engines run the same tasks to the same tables, and the caller learns how a task failed."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator
from concurrent.futures.process import BrokenProcessPool
from io import StringIO
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from engines.engine_tasks import fail_on_three, kill_itself, kinds_of_errors, late_square
from mqreplay.decode.logs.log_line import UnusableLine
from mqreplay.engines import spark_decoding, spark_passes
from mqreplay.engines.local import FEW_BYTES, LocalEngine
from mqreplay.engines.spark import SMALL_BYTES, SparkEngine
from mqreplay.importer.import_command import import_evidence
from mqreplay.lake import catalog as catalog_names
from mqreplay.lake.delta_table import UnreadableLog
from mqreplay.lake.session import FITTED
from mqreplay.lake.table_versions import DamagedTable
from mqreplay.machine.crash import failure_of
from mqreplay.machine.places import conf_dir
from mqreplay.night import nightly as nights
from mqreplay.night.catalog import Catalog
from mqreplay.recorder.remoting.connection import CallFailed
from mqreplay.settings import load_settings
from mqreplay.words.errors import ContractError, DecodeError, InputErrors, MqreplayError, OwnDiskError, RecordingFull
from reliability.recordings import small_night
from reliability.table_rows import difference, read_tables
from standalone_cluster import environment
from tests_shared import ROOT, SAMPLE, assert_same_tables, table_rows, tables, unpack

CONF = conf_dir() / "sample.toml"
RECORDINGS = [str(SAMPLE / name) for name in ("orders-4.9.7", "bulk-5.3.3")]
TESTS = Path(__file__).parents[1]
ADAPTIVE = "spark.sql.adaptive.enabled"


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalEngine]:
    with LocalEngine(tmp_path_factory.mktemp("pool"), processes=2) as engine:
        yield engine


WITHOUT_JAVA = """
import shutil, sys
from mqreplay.cli.command_line import main
assert shutil.which("java") is None
status = main(sys.argv[1:], own_process=False)
assert not {"pyspark", "py4j", "delta"} & set(sys.modules)
sys.exit(status)
"""


@pytest.mark.long
@pytest.mark.parametrize("recordings", [RECORDINGS[1:], pytest.param(RECORDINGS, marks=pytest.mark.long)], ids=len)
def test_two_processes_without_java_and_pyspark_give_the_tables_of_one(
    night: Any, tmp_path: Path, recordings: list[str]
) -> None:
    root, conf = str(tmp_path / "warehouse"), tmp_path / "two.toml"
    conf.write_text(f"{CONF.read_text(encoding='utf-8')}\n[local]\nprocesses = 2\n", encoding="utf-8")
    command = ["nightly", *recordings, "--warehouse", root, "--conf", str(conf), "--engine", "local"]
    # Great Expectations imports pyspark if it is installed: here, and in the processes of the pool, it is not.
    for name in ("pyspark", "py4j", "delta"):
        (tmp_path / f"{name}.py").write_text("raise ImportError('not installed')\n", encoding="utf-8")
    search = os.pathsep.join([str(tmp_path), str(ROOT / "lib")])
    bare = {"PATH": str(tmp_path), "PYTHONPATH": search, "HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_JAVA, *command],
        env=bare,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    if recordings == RECORDINGS:
        assert_same_tables(root, night.root)
    for name in tables(root):
        assert table_rows(root, name, "grid-cluster") == table_rows(night.root, name, "grid-cluster"), name


@pytest.mark.long
@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize(
    "few_rows",
    [
        pytest.param(0, id="all rows by Spark"),
        # test_polled_night.py has a smaller night of this kind.
        pytest.param(spark_passes.FEW_ROWS, id="few rows by the driver", marks=pytest.mark.long),
    ],
)
def test_spark_gives_the_tables_of_one_process(
    night: Any, tmp_path: Path, few_rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spark_passes, "FEW_ROWS", few_rows)
    root = str(tmp_path / "warehouse")
    settings = load_settings(str(CONF))
    outcomes = nights.run("nightly", root, settings, lambda what: None, recordings=RECORDINGS, engine="spark")
    assert {outcome.cluster for outcome in outcomes} == set(night.outcomes)
    assert_same_tables(root, night.root)


@pytest.mark.parametrize(
    ("by_name", "few_rows"),
    [
        pytest.param(True, spark_passes.FEW_ROWS, id="by name"),
        pytest.param(True, 0, id="by name, all rows stay in Spark", marks=pytest.mark.long),
        pytest.param(False, 0, id="all rows stay in Spark", marks=pytest.mark.long),
    ],
)
def test_a_small_night_on_spark(
    spark: Any, tmp_path: Path, by_name: bool, few_rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (spark_decoding, spark_passes):
        monkeypatch.setattr(module, "FEW_ROWS", few_rows)
    # The names end with this session, which has no metastore (tests/jobs/test_hive_metastore.py has one).
    monkeypatch.setattr(catalog_names, "missing_catalog", lambda session, catalog: None)
    recording, here = small_night()
    root, catalog = str(tmp_path / "warehouse"), Catalog("spark_catalog", "small_") if by_name else None
    nights.run(
        "nightly", root, load_settings(), lambda what: None, recordings=[recording], engine="spark", catalog=catalog
    )
    for layer in ("bronze", "silver", "gold") if by_name else ():
        spark.sql(f"DROP DATABASE small_{layer} CASCADE")
    assert not difference(read_tables(Path(root)), read_tables(Path(here)))


@pytest.mark.long
@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("name", sorted(path.name for path in (TESTS / "data").glob("*.tar.xz")))
def test_both_engines_give_the_same_tables_of_each_recording(name: str, tmp_path: Path) -> None:
    with tarfile.open(TESTS / "data" / name) as archive:
        unpack(archive, tmp_path / "recording")
    recordings = [str(tmp_path / "recording")]
    if name.startswith("hooked-"):  # a capture and logs, not yet a recording
        recordings = [str(tmp_path / "imported")]
        import_evidence([str(tmp_path / "recording")], *recordings, StringIO(), as_json=True)
    for engine in ("local", "spark"):
        root = str(tmp_path / engine)
        nights.run("nightly", root, load_settings(), lambda what: None, recordings=recordings, engine=engine)
    assert_same_tables(str(tmp_path / "spark"), str(tmp_path / "local"))


@pytest.mark.long
def test_spark_submit_with_the_local_engine_is_refused_in_one_line(tmp_path: Path) -> None:
    submit = Path(sys.executable).with_name("spark-submit")
    job = [str(ROOT / "jobs" / "nightly.py"), "--recording", RECORDINGS[1], "--warehouse", str(tmp_path / "w")]
    command = [str(submit), "--master", "local[1]", *job, "--engine", "local"]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode != 0
    assert done.stderr.count("--engine local does not use Spark: start it with mqreplay, not with spark-submit") == 1
    assert "Traceback" not in done.stdout + done.stderr
    assert tables(str(tmp_path / "w")) == []


def test_results_come_in_the_order_of_the_items_from_other_processes(pool: LocalEngine) -> None:
    found = list(pool.map(late_square, range(12), 100))
    assert [square for square, _ in found] == [item * item + 100 for item in range(12)]
    processes = {process for _, process in found}
    assert len(processes) == 2
    assert os.getpid() not in processes
    assert list(pool.map(late_square, [], 100)) == []


def test_one_process_is_that_of_the_caller(tmp_path: Path) -> None:
    with LocalEngine(tmp_path, processes=1) as engine:
        assert list(engine.map(late_square, [7, 6], 1)) == [(50, os.getpid()), (37, os.getpid())]
    assert list(tmp_path.iterdir()) == []


def test_little_is_read_without_other_processes_unless_they_are_asked_for(tmp_path: Path, pool: LocalEngine) -> None:
    with LocalEngine(tmp_path) as engine:
        for size, is_here in ((FEW_BYTES, True), (FEW_BYTES + 1, len(os.sched_getaffinity(0)) == 1)):
            engine.expect(size)
            [(_, process)] = engine.map(late_square, [7], 1)
            assert (process == os.getpid()) is is_here
    pool.expect(1)
    [(_, process)] = pool.map(late_square, [7], 1)
    assert process != os.getpid()


@pytest.mark.parametrize(
    "error",
    [
        ContractError("rows lack queue_id"),
        DecodeError("torn", "ends within a value", 17),
        InputErrors(["a.toml: no such file", "b.toml: no such file"]),
        FileNotFoundError(2, "No such file or directory", "/r/pull_log.jsonl"),
        pl.exceptions.ComputeError("cannot cast"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_error_of_a_task_reaches_the_caller(pool: LocalEngine, error: Exception) -> None:
    with pytest.raises(type(error)) as raised:
        list(pool.map(fail_on_three, range(6), error))
    assert type(raised.value) is type(error)
    assert (str(raised.value), vars(raised.value)) == (str(error), vars(error))
    assert [square for square, _ in pool.map(late_square, [1, 2], 0)] == [1, 4], "the engine goes on"


MADE_WITH: dict[type[MqreplayError], tuple[Any, ...]] = {
    DecodeError: ("torn", "a detail", 3),
    InputErrors: (["a", "b"],),
    RecordingFull: ("a folder", "a detail", True),
    CallFailed: ("timeout", "a detail"),
    OwnDiskError: ("a folder", "a detail"),
    UnusableLine: ("no_date", "lines of a form", "a detail"),
    DamagedTable: ("what happened", "what to do"),
    UnreadableLog: ("a location", "a reason"),
}


@pytest.mark.parametrize("kind", kinds_of_errors())
def test_every_error_passes_between_processes(kind: type[MqreplayError]) -> None:
    made = kind(*MADE_WITH.get(kind, ("a text",)))
    copy = pickle.loads(pickle.dumps(made))
    assert type(copy) is kind
    assert (str(copy), vars(copy)) == (str(made), vars(made))


def test_a_killed_task_ends_the_map_and_has_a_name(tmp_path: Path) -> None:
    with LocalEngine(tmp_path, processes=2) as engine, pytest.raises(BrokenProcessPool) as raised:
        list(engine.map(kill_itself, range(6), None))
    failure, cause = failure_of(raised.value)
    assert failure is not None
    assert failure.happened == "a Python worker was killed"
    assert "terminated abruptly" in cause
    assert list(tmp_path.iterdir()) == []


WAITING = """
import sys
from pathlib import Path
from mqreplay.engines.local import LocalEngine
from engines.engine_tasks import wait_for_ever
with LocalEngine(Path(sys.argv[1]), processes=2) as engine:
    list(engine.map(wait_for_ever, [0, 1], sys.argv[2]))
"""


def test_processes_end_when_their_parent_is_killed(tmp_path: Path) -> None:
    shared, began = tmp_path / "shared", tmp_path / "began"
    for folder in (shared, began):
        folder.mkdir()
    paths = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "lib"), str(TESTS)])}
    with subprocess.Popen([sys.executable, "-c", WAITING, str(shared), str(began)], env=paths) as parent:
        try:
            assert soon(lambda: len(list(began.iterdir())) == 2, 60)
            started = children(parent.pid)
            assert {int(path.name) for path in began.iterdir()} <= started
        finally:
            parent.send_signal(signal.SIGKILL)
    try:
        assert soon(lambda: not any(map(runs, started)), 10)
    finally:
        for process in filter(runs, started):
            os.kill(process, signal.SIGKILL)


def soon(condition: Any, seconds: float) -> bool:
    """Whether the condition comes true within these seconds."""
    until = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > until:
            return False
        time.sleep(0.05)
    return True


def children(process: int) -> set[int]:
    found = Path(f"/proc/{process}/task").glob("*/children")
    return {int(child) for listed in found for child in listed.read_text().split()}


def runs(process: int) -> bool:
    """Whether the process is there, and not only its exit status."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_spark_gives_results_in_the_order_of_the_items(spark: Any) -> None:
    engine = SparkEngine(lambda small: spark)
    found = [square for square, _ in engine.map(late_square, [5, 3, 9, 1, 0], 100)]
    assert found == [125, 109, 181, 101, 100]
    assert [square for square, _ in engine.map(late_square, [4], 0)] == [16]


def test_the_text_of_an_error_in_spark_reaches_the_caller(spark: Any) -> None:
    error = ValueError("item 3 of the night is torn")
    with pytest.raises(Exception, match="ValueError: item 3 of the night is torn"):
        list(SparkEngine(lambda small: spark).map(fail_on_three, [1, 3], error))


def test_no_items_start_no_session() -> None:
    def start(small: bool) -> Any:
        raise AssertionError("a session was started")

    engine = SparkEngine(start)
    assert list(engine.map(late_square, [], 0)) == []
    assert engine.progress() == "starting Spark"
    engine.cancel()


def test_a_session_starts_for_a_small_night_or_a_large_one(spark: Any) -> None:
    asked: list[bool] = []

    def start(small: bool) -> Any:
        asked.append(small)
        return spark

    for size in (SMALL_BYTES, SMALL_BYTES + 1):
        engine = SparkEngine(start)
        engine.expect(size)
        assert engine.session is spark
        assert engine.progress() == "Spark is working"
        engine.cancel()
        engine.restart()
        assert [square for square, _ in engine.map(late_square, [4], 0)] == [16]
    assert asked == [True, False]


def test_the_plans_of_a_running_session_follow_the_size_of_the_night(spark: Any) -> None:
    before = {row.key: row.value for row in spark.sql("SET").collect()}
    engine = SparkEngine(lambda small: spark)
    assert engine.session is spark
    engine.expect(SMALL_BYTES)
    assert spark.conf.get(ADAPTIVE, "unset") == before.get(ADAPTIVE, "unset"), "no night has fitted this session"
    try:
        spark.conf.set(FITTED, ADAPTIVE)
        for size, adaptive in ((SMALL_BYTES, "false"), (SMALL_BYTES + 1, "true")):
            engine.expect(size)
            assert spark.conf.get(ADAPTIVE) == adaptive
    finally:
        spark.conf.unset(FITTED)
        if ADAPTIVE in before:
            spark.conf.set(ADAPTIVE, before[ADAPTIVE])
        else:
            spark.conf.unset(ADAPTIVE)
