"""How a session is fitted to a warehouse: by what its silver tables take, of which no file need stay there."""

from __future__ import annotations

from pathlib import Path

import pytest

from mqreplay.cli.recorded_size import recorded_bytes
from mqreplay.lake.session import LARGE_NIGHT, SMALL_NIGHT


@pytest.fixture
def warehouse(tmp_path: Path) -> Path:
    """Silver tables of 50 MB, and what does not count: logs, gold, a report."""
    sizes = {"silver/pull/part-1.parquet": 40_000_000, "silver/offset_change/part-2.parquet": 10_000_000}
    others = {"silver/pull/_delta_log/0.json": 10**9, "gold/pull_route/part-3.parquet": 10**9, "report/c.html": 10**9}
    for name, size in (sizes | others).items():
        path = tmp_path / name
        path.parent.mkdir(parents=True)
        with path.open("wb") as file:
            file.truncate(size)
    return tmp_path


def test_silver_tells_how_much_was_recorded(warehouse: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    assert recorded_bytes(str(warehouse)) == 300_000_000
    assert SMALL_NIGHT < 300_000_000 < LARGE_NIGHT
    assert recorded_bytes(str(tmp_path_factory.mktemp("empty"))) == 0
    assert recorded_bytes("nowhere") == 0


def test_a_file_that_a_night_replaces_meanwhile_is_passed_over(warehouse: Path) -> None:
    (warehouse / "silver/pull/part-0.parquet").symlink_to(warehouse / "gone")
    assert recorded_bytes(str(warehouse)) == 300_000_000
