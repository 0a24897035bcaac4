"""A day's chains continue from the offsets before it: stored ones, or those found from changes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mqreplay.lake.contract import load_contracts
from mqreplay.quality import Scope
from mqreplay.quality.run import validate
from quality_rows import Folder, Row, at, change

CHANGES, KEPT = "silver.offset_change", "silver.offset_checkpoint"
DAY = 24 * 60  # minutes
NAME = "expect_offset_continuity"


def on(minute: int, row: Row) -> Row:
    return row | {"cluster": "c", "day": at(minute).date()}


def changed(minute: int, previous: int | None, new: int | None, **differs: Any) -> Row:
    return on(minute, change(minute, previous, new, **differs))


def kept(for_day: int, minute: int, offset: int | None) -> Row:
    return change(minute, None, offset) | {"cluster": "c", "day": at(for_day * DAY).date()}


TODAY = changed(2 * DAY + 1, 9, 12)
CASES: dict[str, tuple[list[Row], list[Row], bool]] = {
    "no checkpoint": ([], [], True),
    "found from changes": ([changed(1, None, 5), changed(2, 5, 9)], [], True),
    "a change is missing": ([changed(1, None, 5)], [], False),
    "kept for the day": ([], [kept(2, 1, 9)], True),
    "kept for the day, and another": ([], [kept(2, 1, 8)], False),
    "kept for the day before, and changed since": ([changed(DAY + 1, 5, 9)], [kept(1, 1, 5)], True),
    "kept for a day after it": ([changed(1, None, 9)], [kept(3, 2 * DAY + 1, 12)], True),
    "gone when the day began": ([changed(1, None, 9), changed(2, 9, None)], [], False),
    "of another queue": ([changed(1, None, 5, queue_id=7)], [], True),
}


@pytest.mark.parametrize(("before", "checkpoint", "holds"), CASES.values(), ids=CASES)
def test_the_first_change_begins_where_the_last_ended(
    tmp_path: Path, before: list[Row], checkpoint: list[Row], holds: bool
) -> None:
    folder = Folder(tmp_path / "w", load_contracts())
    folder.write(CHANGES, [*before, TODAY])
    folder.write(KEPT, checkpoint)
    counts: dict[str, int] = {}
    scope = Scope("a-run", at(2 * DAY).date(), (CHANGES,), goes_on=True)
    found = validate(folder, "c", scope, str(tmp_path / "results"), counts)
    assert {row.expectation: row.passed for row in found}[NAME] is holds
    assert [row.expectation for row in found if not row.passed] == ([] if holds else [NAME])
    assert counts == {CHANGES: 1}
