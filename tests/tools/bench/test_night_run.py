"""The stages of a night by its progress lines, with and without Spark."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType

import pytest

BENCH = Path(__file__).parents[3] / "tools" / "bench"
REPLAY = [(9.0, "c: replaying 2026-11-20"), (9.5, "queues judged"), (11.0, "c: 2026-11-20 replayed")]
LINES = [(1.0, "c: 5 files, 5 to read"), *REPLAY, (15.0, "c: 393 expectations run"), (18.0, "end")]
SPARK = [(1.5, "starting Spark"), (6.0, "Spark 4.1.4 runs on local[*]")]


@pytest.fixture
def night_run(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(BENCH)  # it imports its neighbours as a script does
    return importlib.import_module("night_run")


def test_a_night_without_spark_has_no_session(night_run: ModuleType) -> None:
    assert night_run.stages(LINES) == {
        "session": 0.0,
        "ingest": 9.0,
        "replay": 2.0,
        "validate": 4.0,
        "report": 3.0,
        "all": 18.0,
    }


def test_the_start_of_spark_is_no_part_of_the_ingest(night_run: ModuleType) -> None:
    stages = night_run.stages([LINES[0], *SPARK, *LINES[1:]])
    assert (stages["session"], stages["ingest"], stages["all"]) == (5.0, 4.0, 18.0)


def test_a_line_that_is_missing_is_named(night_run: ModuleType) -> None:
    with pytest.raises(SystemExit, match="did not print 'expectations run'"):
        night_run.stages([line for line in LINES if "expectations" not in line[1]])
