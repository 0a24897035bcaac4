"""expect_rows_conserved."""

from __future__ import annotations

import json
from typing import Any

from quality_rows import Judge

NAME = "expect_rows_conserved"


def file(path: str, kind: str, counts: tuple[int, int, int, int], status: str = "read") -> dict[str, Any]:
    names = ("rows_in", "rows_out", "rows_quarantined", "rows_duplicate")
    return {"path": path, "kind": kind, "status": status} | dict(zip(names, counts, strict=True))


FILES = [
    file("pull_log.0001.jsonl", "pull_log", (10, 7, 2, 1)),
    file("pull_log.0002.jsonl", "pull_log", (3, 3, 0, 0)),
    file("snapshots/broker-a-0/1/consumerOffset.json", "consumer_offset", (4, 4, 0, 0)),
    file("snapshots/client-1/1/g.offsets.json", "client_offsets", (2, 2, 0, 0)),
    file("copy/pull_log.0001.jsonl", "pull_log", (10, 7, 2, 1), "duplicate"),
]
HELD = {"silver.pull": 10, "silver.offset_change": 6}


def test_rows_that_add_up(judged: Judge) -> None:
    found = judged("bronze.source_file", FILES, silver_rows=HELD)[NAME]
    assert (found.passed, found.unexpected_count) == (True, 0)


def test_rows_that_were_removed_because_of_their_day(judged: Judge) -> None:
    files = [FILES[0] | {"rows_expired": 7}, FILES[1] | {"rows_expired": 1}, *FILES[2:]]
    assert judged("bronze.source_file", files, silver_rows=HELD | {"silver.pull": 2})[NAME].passed
    assert not judged("bronze.source_file", files, silver_rows=HELD)[NAME].passed


def test_a_table_that_holds_less_than_its_files_gave(judged: Judge) -> None:
    found = judged("bronze.source_file", FILES, silver_rows=HELD | {"silver.pull": 9})[NAME]
    assert (found.passed, found.unexpected_count) == (False, 1)
    problem = "its files (pull_log) gave 10 rows, it holds 9"
    assert json.loads(found.unexpected_sample or "") == [{"where": "silver.pull", "problem": problem}]


def test_a_table_that_holds_rows_of_no_file(judged: Judge) -> None:
    assert not judged("bronze.source_file", FILES, silver_rows=HELD | {"silver.route": 1})[NAME].passed


def test_a_file_whose_counts_do_not_add_up(judged: Judge) -> None:
    lost = file("torn.jsonl", "routes", (5, 1, 1, 1))
    found = judged("bronze.source_file", [*FILES, lost], silver_rows=HELD | {"silver.route": 1})
    problem = "5 rows in, but 1 out, 1 quarantined and 1 duplicate"
    assert json.loads(found[NAME].unexpected_sample or "") == [{"where": "torn.jsonl", "problem": problem}]
    check = found["expect_check_constraint_to_hold"]
    assert (check.passed, check.unexpected_count) == (False, 1)
    assert json.loads(check.unexpected_sample or "")[0]["path"] == "torn.jsonl"


def test_a_sample_is_no_more_than_twenty_rows(judged: Judge) -> None:
    lost = [file(f"{i:02}.jsonl", "routes", (5, 0, 0, 0)) for i in range(30)]
    found = judged("bronze.source_file", lost)[NAME]
    assert found.unexpected_count == 30
    assert len(json.loads(found.unexpected_sample or "")) == 20
