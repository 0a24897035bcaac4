"""A kill at any file operation of a run: readers can read, and the next run makes the tables of one clean run."""

from __future__ import annotations

import random
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from mqreplay.lake.journal import JOURNAL
from reliability.crash_images import Image, changes_a_file, changes_a_table, is_commit
from reliability.crash_recovery import RECOVERIES, Scenario, broken
from reliability.file_faults import Operation
from reliability.histories import Histories

LEDGER = "bronze/source_file/_delta_log/"
SHORT = 6  # images, before or after a commit or at the beginning of a table
CHECKPOINTED = Scenario("ingest", 0, rounds=5)  # its commits make version 10 of some tables, which get a checkpoint
# At least 500 in all. An ingest has some 1,300 operations, a night 3,200; most are writes of parts of files.
LONG = [
    (Scenario("ingest", 0), 160),
    (Scenario("ingest", 1), 140),
    (CHECKPOINTED, 120),
    (Scenario("nightly", 0), 40),
    (Scenario("nightly", 1), 40),
]
TABLES = 7  # that an ingest over existing tables changes
ONE_MORE = 5  # one in so many images gets one more run, which must change nothing
ROLLING_BACK = 30


@pytest.mark.parametrize(
    "scenario", [Scenario("ingest", 1), pytest.param(Scenario("ingest", 0), marks=pytest.mark.long)], ids=str
)
def test_kill_before_and_after_commits(
    library: Path, histories: dict[str, Histories], tmp_path: Path, scenario: Scenario
) -> None:
    images = scenario.images(library, tmp_path, histories[scenario.step], changes_a_table)
    assert sum(is_commit(image.operation) for image in images) >= TABLES
    some = random.Random(20).sample(images, SHORT)
    wrong = all_broken(some, scenario, histories[scenario.step])
    assert not wrong, "\n".join([f"{len(wrong)} of {len(some)} images are not recovered:", *wrong])


@pytest.mark.long
@pytest.mark.parametrize(("scenario", "count"), LONG, ids=str)
def test_kill_at_any_operation(
    library: Path, histories: dict[str, Histories], tmp_path: Path, scenario: Scenario, count: int
) -> None:
    images = scenario.images(library, tmp_path, histories[scenario.step], changes_a_file)
    assert len(images) >= count
    some = random.Random(20).sample(images, count)
    wrong = all_broken(some, scenario, histories[scenario.step])
    assert not wrong, "\n".join([f"{len(wrong)} of {len(some)} images are not recovered:", *wrong])


@pytest.mark.long
@pytest.mark.parametrize("content", [0, 1])
def test_kill_of_the_run_that_rolls_back(
    library: Path, histories: dict[str, Histories], tmp_path: Path, content: int
) -> None:
    scenario, its = Scenario("ingest", content), histories["ingest"]
    killed = scenario.images(library, tmp_path / "first", its, before_ledger)[0]
    images = scenario.images(library, tmp_path / "second", its, changes_a_file, killed.root)
    done = next(
        i for i, image in enumerate(images) if image.operation.path == JOURNAL and image.operation.call == "unlink"
    )
    some = random.Random(20).sample(images[: done + 2], min(ROLLING_BACK, done + 2))
    wrong = all_broken(some, scenario, its)
    assert not wrong, "\n".join([f"{len(wrong)} of {len(some)} images are not recovered:", *wrong])


def before_ledger(seen: Sequence[Operation]) -> bool:
    """Whether the last operation makes the version of the ledger: all silver tables are written by then."""
    return is_commit(seen[-1]) and seen[-1].path.startswith(LEDGER)


def all_broken(images: Sequence[Image], scenario: Scenario, histories: Histories) -> list[str]:
    """Recover each image, with the recording in one of three states in turn; return what is wrong."""
    wrong = []
    for number, image in enumerate(images):
        recovery, again = RECOVERIES[number % len(RECOVERIES)], number % ONE_MORE == 0
        wrong.append(broken(image, scenario, recovery, histories, again=again))
        shutil.rmtree(image.root)
    return [words for words in wrong if words]
