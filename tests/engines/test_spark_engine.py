"""The Spark engine: its nights have the tables of the local engine, and its sessions fit the size of a night."""

from __future__ import annotations

import subprocess
import sys
import tarfile
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from engines.engine_tasks import fail_on_three, late_square
from mqreplay.engines import shards, spark_decoding, spark_passes
from mqreplay.engines.spark import SMALL_BYTES, SparkEngine
from mqreplay.importer.import_command import import_evidence
from mqreplay.lake import catalog as catalog_names
from mqreplay.lake.session import FITTED
from mqreplay.machine.places import conf_dir
from mqreplay.night import nightly as nights
from mqreplay.night.catalog import Catalog
from mqreplay.settings import load_settings
from reliability.recordings import small_night
from reliability.table_rows import difference, read_tables
from standalone_cluster import environment
from tests_shared import ROOT, SAMPLE, assert_same_tables, tables, unpack

CONF = conf_dir() / "sample.toml"
RECORDINGS = [str(SAMPLE / name) for name in ("orders-4.9.7", "bulk-5.3.3")]
TESTS = Path(__file__).parents[1]
ADAPTIVE = "spark.sql.adaptive.enabled"


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
    ("by_name", "few_rows", "large_shard"),
    [
        pytest.param(True, spark_passes.FEW_ROWS, 0, id="by name, two tasks for each queue"),
        pytest.param(True, 0, shards.LARGE_SHARD, id="by name, all rows stay in Spark", marks=pytest.mark.long),
        pytest.param(False, 0, 0, id="all rows stay in Spark, two tasks for each queue", marks=pytest.mark.long),
    ],
)
def test_a_small_night_on_spark(
    spark: Any, tmp_path: Path, by_name: bool, few_rows: int, large_shard: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shards, "LARGE_SHARD", large_shard)
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


def test_two_tasks_for_a_queue_find_what_one_finds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shards, "LARGE_SHARD", 0)
    root = str(tmp_path / "warehouse")
    recordings = [str(SAMPLE / "orders-4.9.7")]
    nights.run("nightly", root, load_settings(str(CONF)), lambda what: None, recordings=recordings, engine="local")
    monkeypatch.undo()
    expected = str(tmp_path / "expected")
    nights.run("nightly", expected, load_settings(str(CONF)), lambda what: None, recordings=recordings, engine="local")
    assert_same_tables(root, expected)


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
