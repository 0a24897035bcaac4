"""Kills of `mqreplay maintain` between its commits: the next one completes it."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from mqreplay.lake.journal import JOURNAL
from mqreplay.night.maintain import maintain
from mqreplay.settings import load_settings
from night.over_midnight import make_nights
from reliability.crash_images import is_commit, take_images
from reliability.crash_recovery import unreadable
from reliability.file_faults import Operation
from reliability.table_rows import difference, left_by_maintenance, read_tables, table_names
from tests_shared import run

KEEP = "3d"
EVERY = 3  # one in so many commits is the last of a killed run; a run has some 40


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A warehouse of four days, of which maintenance removes the first. Copy it before you change it."""
    folder = tmp_path_factory.mktemp("nights")
    nights = make_nights(folder, 3)
    root = folder / "warehouse"
    for night in nights:
        run("ingest", str(root), load_settings(), lambda what: None, recordings=[str(night)])
    run("replay", str(root), load_settings(), lambda what: None)
    return root


def maintained(root: Path) -> None:
    maintain(str(root), load_settings(), lambda what: None, keep=KEEP, engine="local")


@pytest.mark.long
def test_a_killed_maintenance_is_completed_by_the_next(library: Path, before: Path, tmp_path: Path) -> None:
    clean, root = tmp_path / "clean", tmp_path / "warehouse"
    for copy in (clean, root):
        shutil.copytree(before, copy)
    maintained(clean)
    wanted = read_tables(clean)
    assert difference(read_tables(before), wanted)
    seen = 0

    def some(operations: Sequence[Operation]) -> bool:
        nonlocal seen
        seen += is_commit(operations[-1])
        return is_commit(operations[-1]) and seen % EVERY == 0

    images = take_images(library, tmp_path, ["maintain", "--keep", KEEP], root, some)
    assert len(images) >= 10
    assert all((image.root / JOURNAL).exists() for image in images)
    for image in images:
        assert not unreadable(image.root, table_names(before)), image.operation
        maintained(image.root)
        wrong = difference(read_tables(image.root), wanted)
        assert not wrong, f"{image.operation}: {wrong}"
        assert not (image.root / JOURNAL).exists()
        assert not left_by_maintenance(image.root), image.operation
