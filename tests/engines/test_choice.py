"""Which engine a run takes (docs/adr/0034)."""

from __future__ import annotations

import doctest
import sys
from pathlib import Path

import pytest

from mqreplay.cli.command_line import main
from mqreplay.cli.job import main as job
from mqreplay.engines import choice
from mqreplay.engines.choice import chosen_engine
from mqreplay.settings import SparkSettings
from tests_shared import SAMPLE

ONE_MACHINE = SparkSettings()
MASTER = SparkSettings(master="spark://host:7077")
EXTRA = SparkSettings(extra={"spark.master": "yarn"})
OTHER = SparkSettings(driver_memory="6g", extra={"spark.executor.memory": "4g"})


@pytest.mark.parametrize(
    ("option", "settings", "facts", "engine", "reason"),
    [
        (None, ONE_MACHINE, {}, "local", "no Spark master and no --catalog"),
        (None, OTHER, {}, "local", "no Spark master and no --catalog"),
        (None, MASTER, {}, "spark", "the settings name a Spark master"),
        (None, EXTRA, {}, "spark", "the settings name a Spark master"),
        (None, ONE_MACHINE, {"submitted": True}, "spark", "spark-submit started this run"),
        (None, ONE_MACHINE, {"catalog": True}, "spark", "--catalog needs Spark"),
        ("local", MASTER, {"submitted": True, "catalog": True}, "local", ""),
        ("spark", ONE_MACHINE, {}, "spark", ""),
    ],
)
def test_engine_of_a_run(
    option: str | None, settings: SparkSettings, facts: dict[str, bool], engine: str, reason: str
) -> None:
    found = chosen_engine(option, settings, **facts)
    assert found.engine == engine
    assert found.reason.partition(";")[0] == reason
    assert found.note == (f"engine {engine}: {found.reason}" if reason else "")


@pytest.fixture
def engines(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """Return the steps that commands start, each with its engine. Nothing runs."""
    found: list[tuple[str, str]] = []
    monkeypatch.setattr("mqreplay.night.nightly.run", lambda step, *_, engine, **__: found.append((step, engine)) or [])
    monkeypatch.setattr("mqreplay.night.maintain.maintain", lambda *_, engine, **__: found.append(("", engine)) or [])
    return found


@pytest.mark.parametrize(
    ("command", "engine"),
    [
        (["nightly", "r"], "local"),
        (["ingest", "r"], "local"),
        (["replay"], "local"),
        (["validate"], "local"),
        (["report"], "local"),
        (["maintain"], "local"),
        (["demo"], "local"),
        (["nightly", "r", "--catalog", "spark_catalog"], "spark"),
        (["nightly", "r", "--conf", "MASTER"], "spark"),
        (["maintain", "--conf", "MASTER"], "spark"),
        (["demo", "--engine", "spark"], "spark"),
        (["maintain", "--engine", "spark"], "spark"),
    ],
    ids=" ".join,
)
def test_engine_of_a_command(command: list[str], engine: str, engines: list[tuple[str, str]], tmp_path: Path) -> None:
    (tmp_path / "gold").mkdir()
    conf = tmp_path / "own.toml"
    conf.write_text('[spark]\nmaster = "local[2]"\n', encoding="utf-8")
    words = [str(conf) if word == "MASTER" else word for word in command]
    assert main([*words, "--warehouse", str(tmp_path)]) == 0
    assert [found for _, found in engines] == [engine]


def test_jobs_run_on_spark(engines: list[tuple[str, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mqreplay.cli.job.command_line", lambda words, own_process: main(words, own_process=False))
    assert job("nightly", ["--recording", "r", "--warehouse", str(tmp_path)]) == 0
    assert engines == [("nightly", "spark")]


@pytest.mark.parametrize(
    ("command", "instead"),
    [
        (["ingest", str(SAMPLE / "bulk-5.3.3"), "--engine", "spark"], "take --engine local"),
        (["sql", "SELECT 1", "--engine", "spark"], "leave out --engine spark"),
    ],
    ids=["ingest", "sql"],
)
def test_spark_that_is_not_installed_is_one_line(
    command: list[str],
    instead: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "gold").mkdir()
    monkeypatch.setitem(sys.modules, "delta", None)
    assert main([*command, "--warehouse", str(tmp_path)]) == 2
    expected = f"mqreplay: Spark needs delta-spark; pip install 'mqreplay[spark]' adds Spark, or {instead}\n"
    assert capsys.readouterr().err == expected


def test_doctests() -> None:
    assert doctest.testmod(choice)[:2] == (0, 1)
