"""A run in an empty network namespace, with the surroundings that a server may have: LC_ALL=C, blanks in TMPDIR."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

from night.cut import cut
from reliability.empty_network import run_alone
from tests_shared import SAMPLE, table_rows

LIB = Path(__file__).parents[2] / "lib"
SOURCE = SAMPLE / "bulk-5.3.3"
FIRST_MS = 1795229270000
ODD = "tables é `${env:HOME}` 'a' \"b\" #?*[c]{d} ; 東京"
CALL = "import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).connect(('192.0.2.1', 53))"


def surroundings(temporary: Path) -> dict[str, str]:
    """The environment of a process started by cron: no locale, and folders for temporary files with odd names."""
    temporary.mkdir(exist_ok=True)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYSPARK_", "LANG", "LC_"))}
    return kept | {"LC_ALL": "C", "TMPDIR": str(temporary), "PYTHONPATH": str(LIB), "NO_COLOR": "1"}


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    """A few seconds of the sample, in a folder with an odd name."""
    kinds = ("pull_log", "offset_commits")
    return cut(SOURCE, tmp_path / "nächtlich $(id) %s", from_ms=FIRST_MS, to_ms=FIRST_MS + 20_000, every=4, kinds=kinds)


@pytest.mark.long
@pytest.mark.parametrize(
    "step", ["ingest", pytest.param("nightly", marks=pytest.mark.long), pytest.param("sql", marks=pytest.mark.long)]
)
def test_run_reaches_nothing_outside_and_keeps_to_its_folders(step: str, recording: Path, tmp_path: Path) -> None:
    warehouse, temporary = tmp_path / ODD, tmp_path / "temporary files é"
    environment = surroundings(temporary)
    before = sorted(path.name for path in tmp_path.iterdir())
    command = [sys.executable, "-m", "mqreplay.cli"]
    run = ["ingest" if step == "sql" else step, str(recording), "--warehouse", str(warehouse), "--engine", "spark"]
    done = run_alone([*command, *run, "--cluster", "${env:HOME}"], tmp_path, environment)
    assert (done.status, done.attempts, done.left) == (0, {}, []), done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*before, ODD, "told.json"])
    assert list(temporary.iterdir()) == []
    copy = shutil.copytree(warehouse, tmp_path / "copy")  # delta-rs takes a path for a URL
    pulls = table_rows(str(copy), "silver.pull", "${env:HOME}")
    assert pulls
    if step == "sql":
        ask = ["sql", "SELECT count(*) AS n FROM silver.pull", "--format", "csv", "--warehouse", str(warehouse)]
        done = run_alone([*command, *ask], tmp_path, environment)
        assert (done.status, done.attempts, done.left) == (0, {}, []), done.stderr
        assert done.stdout.split() == ["n", str(len(pulls))]


def test_a_call_that_a_program_hides_is_noticed(tmp_path: Path) -> None:
    hidden = [sys.executable, "-c", f"try:\n  {CALL}\nexcept OSError: pass"]
    assert run_alone(hidden, tmp_path, surroundings(tmp_path)).attempts == {"Ip:OutNoRoutes": 1}
