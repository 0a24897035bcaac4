"""The benches of many nights and of many files end, and print their figures."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from bench.estate.write import write_estate

BENCH = Path(__file__).parents[3] / "tools" / "bench"


def printed(script: str, *options: object) -> str:
    done = subprocess.run(
        [sys.executable, BENCH / script, *map(str, options)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.long
@pytest.mark.parametrize("engine", ["spark", "local"])
def test_a_night_beside_others_is_timed(tmp_path: Path, engine: str) -> None:
    write_estate("XS", 3, tmp_path / "XS")
    given = ("--recording", tmp_path / "XS", "--nights", "0,2", "--out", tmp_path / "out", "--engine", engine)
    table = printed("kept.py", *given)
    head, _, *rows = table.splitlines()
    assert head == "| beside so many nights | 0 | 2 |"
    stages = {
        name.strip(): [float(cell.replace(",", "")) for cell in cells]
        for _, name, *cells, _ in (r.split("|") for r in rows)
    }
    assert stages.keys() == {"ingest", "replay", "validate", "report", "all", "peak MB"}
    assert all(seconds > 0 for cells in stages.values() for seconds in cells)


@pytest.mark.long
def test_memory_of_many_files_is_printed(tmp_path: Path) -> None:
    given = ("--sources", 3, "--snapshots", 20, "--engine", "local", "--folder", tmp_path)
    first, second = printed("many_files.py", *given).splitlines()
    for line, run in ((first, "first"), (second, "second")):
        found = re.match(
            rf"60 files, {run} run: [\d.]+ s, the driver's Python at the most (0\.\d\d) GB; largest other", line
        )
        assert found is not None, line
        assert 0.05 < float(found[1]) < 0.6
