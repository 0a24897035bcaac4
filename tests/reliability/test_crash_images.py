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
# 500 in all. An ingest has some 400 operations that are no write of a part of a file, a night 1,500.
LONG = [
    (Scenario("ingest", 0), 150),
    (Scenario("ingest", 1), 200),
    (Scenario("nightly", 0), 75),
    (Scenario("nightly", 1), 75),
]
ONE_MORE = 5  # one in so many images gets one more run, which must change nothing
ROLLING_BACK = 30


def test_kill_before_and_after_commits(library: Path, histories: dict[str, Histories], tmp_path: Path) -> None:
    scenario = Scenario("ingest", 1)
    images = scenario.images(library, tmp_path, histories["ingest"], changes_a_table)
    wrong = all_broken(telling(images), scenario, histories["ingest"])
    assert not wrong, "\n".join(wrong)


@pytest.mark.long
@pytest.mark.parametrize(("scenario", "count"), LONG, ids=str)
def test_kill_at_any_operation(
    library: Path, histories: dict[str, Histories], tmp_path: Path, scenario: Scenario, count: int
) -> None:
    images = scenario.images(library, tmp_path, histories[scenario.step], changes_a_file)
    some = random.Random(20).sample(images, min(count, len(images)))
    wrong = all_broken(some, scenario, histories[scenario.step])
    assert len(some) == count
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
        i for i, image in enumerate(images) if image.operation.path == JOURNAL and "link" in image.operation.call
    )
    some = random.Random(20).sample(images[: done + 2], min(ROLLING_BACK, done + 2))
    wrong = all_broken(some, scenario, its)
    assert not wrong, "\n".join([f"{len(wrong)} of {len(some)} images are not recovered:", *wrong])


def before_ledger(seen: Sequence[Operation]) -> bool:
    """Whether the last operation makes the version of the ledger: all silver tables are written by then."""
    return is_commit(seen[-1]) and seen[-1].path.startswith(LEDGER)


def telling(images: Sequence[Image]) -> list[Image]:
    """Return the images before the first version of a new table, and before and after that of the ledger."""
    new = next(i for i, image in enumerate(images) if image.operation.path.endswith("/00000000000000000000.json"))
    ledger = next(i for i, image in enumerate(images) if image.operation.path.startswith(LEDGER))
    return [images[i] for i in (new, ledger, ledger + 1)]


def all_broken(images: Sequence[Image], scenario: Scenario, histories: Histories) -> list[str]:
    """Recover each image, with the recording in one of three states in turn; return what is wrong."""
    wrong = []
    for number, image in enumerate(images):
        recovery, again = RECOVERIES[number % len(RECOVERIES)], number % ONE_MORE == 0
        wrong.append(broken(image, scenario, recovery, histories, again=again))
        shutil.rmtree(image.root)
    return [words for words in wrong if words]
