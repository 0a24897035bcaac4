"""The bench of many kept nights ends, and prints its figures."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).parents[3] / "tools" / "bench"


@pytest.mark.long
def test_the_night_of_an_estate_is_measured(tmp_path: Path) -> None:
    words = [sys.executable, BENCH / "many_nights.py", "--clusters", "2", "--nights", "0,2", "--out", tmp_path / "out"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    head, _, *rows = done.stdout.splitlines()
    assert head == "| kept nights | 0 | 2 | 2, maintained |"
    found = {name.strip(): [float(cell) for cell in cells] for _, name, *cells, _ in (row.split("|") for row in rows)}
    assert len(found) == 16
    assert all(figures[0] > 0 for name, figures in found.items() if name.startswith("all"))
