"""expect_table_to_be_fresh."""

from __future__ import annotations

import json

from quality_rows import Judge, at, epoch_ms

ROWS = [{"record_id": str(minute), "request_ts": at(minute)} for minute in (3, 9, 5, 1, 2, 4, 6, 7, 8, 0)]
NAME = "expect_table_to_be_fresh"


def test_rows_up_to_the_end_are_fresh(judged: Judge) -> None:
    assert judged("silver.pull", ROWS, recording_end_ms=epoch_ms(at(19)))[NAME].passed


def test_rows_that_end_too_early_are_not(judged: Judge) -> None:
    found = judged("silver.pull", ROWS, recording_end_ms=epoch_ms(at(19.5)))[NAME]
    assert not found.passed
    assert found.unexpected_count is None
    assert json.loads(found.unexpected_sample or "") == [
        {"newest": "2026-11-21T03:09:00.000Z", "recording_end": "2026-11-21T03:19:30.000Z", "age_minutes": 10.5}
    ]


def test_a_few_rows_are_no_series_that_ends(judged: Judge) -> None:
    assert judged("silver.pull", ROWS[:9], recording_end_ms=epoch_ms(at(600)))[NAME].passed


def test_a_table_or_a_day_without_rows_was_not_recorded(judged: Judge) -> None:
    assert judged("silver.pull", [], recording_end_ms=epoch_ms(at(600)))[NAME].passed
