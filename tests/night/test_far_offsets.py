"""Extreme offsets and instants: the run completes, and breaks are reported."""

from __future__ import annotations

import re

import pytest

from mqreplay.settings import load_settings
from night.cut import cut, first_instant
from tests_shared import SAMPLE, rows_at, run

FIRST_ENTRY = re.compile(rb'("[^"@%]+@[^"]+":\{0:)(-?\d+)')
MOST, LEAST = 2**63 - 1, -(2**63)
ANSWERED_MS = (4_102_444_800_000, 0)  # in 2100 and in 1970


@pytest.fixture(scope="module")
def outcome(tmp_path_factory):
    """Two minutes of the small sample; the master's and the slave's files show both ends of the numbers for a while.

    Two of its pulls are said to have been answered a century off.
    """
    source, folder = SAMPLE / "bulk-5.3.3", tmp_path_factory.mktemp("far")
    began = first_instant(source)
    answers = list(ANSWERED_MS)

    def change(told):
        if answers and told.get("response_ts") and told.get("broker_id") == 0 and told.get("max_offset"):
            told["response_ts"] = answers.pop()
            return True
        return False

    recording = cut(source, folder / "recording", from_ms=began, to_ms=began + 120_000, change=change)
    assert not answers
    of_broker = [sorted(b.glob("*/consumerOffset.json")) for b in sorted((recording / "snapshots").iterdir())]
    often = [files for files in of_broker if len(files) > 7]
    assert often
    for files in often:
        for file, offset in zip(files[3:7], (MOST, LEAST, -1, MOST), strict=True):
            told, times = FIRST_ENTRY.subn(rb"\g<1>%d" % offset, file.read_bytes(), count=1)
            assert times == 1
            file.write_bytes(told)
    root = str(folder / "warehouse")
    [outcome] = run("nightly", root, load_settings(), lambda what: None, recordings=[str(recording)])
    return outcome, rows_at(root, "gold.offset_continuity"), rows_at(root, "gold.group_status")


def test_the_night_is_judged_and_both_ends_are_told(outcome):
    told, breaks, _ = outcome
    assert {"offset_rewind", "offset_beyond_max"} <= {f["kind"] for f in told.findings}
    seen = {(row["kind"], row["new_offset"]) for row in breaks}
    assert {("rewind", LEAST), ("beyond_max", MOST)} <= seen
    assert all(row["size"] is None or row["size"] >= 0 for row in breaks)


def test_a_difference_that_no_number_holds_is_the_most_there_is(outcome):
    _, breaks, _ = outcome
    (fall,) = {row["size"] for row in breaks if (row["previous_offset"], row["new_offset"]) == (MOST, LEAST)}
    assert fall == MOST


def test_windows_end_with_the_day_whatever_an_answer_says(outcome):
    _, _, status = outcome
    assert status
    assert len({row["to_ts"] for row in status}) <= 24 * 12
