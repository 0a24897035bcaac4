"""Stored nights cost nothing: a day is validated again only if it or the day before changed."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from mqreplay.lake.contract import load_contracts
from mqreplay.lake.ticker import Ticker
from mqreplay.lake.warehouse import Warehouse
from mqreplay.night.steps import Span
from mqreplay.night.validation import VALIDATION_TABLE, Validation
from mqreplay.quality import UNDATED
from mqreplay.settings import load_settings
from quality_rows import Folder, Row, at, change
from tests_shared import SAMPLE

TABLES = (
    "bronze.source_file",
    "silver.broker",
    "silver.offset_change",
    "silver.pull",
    "silver.route",
    "silver.offset_checkpoint",
    VALIDATION_TABLE,
)
NIGHT, NEXT = 0, 24 * 60  # minutes
FIRST, SECOND, THIRD = (str(at(days * NEXT).date()) for days in range(3))


def on(minute: int, row: Row) -> Row:
    """The row on the day of that minute."""
    return row | {"day": at(minute).date(), "cluster": "c"}


def moved(minute: int, previous: int | None, new: int | None, **differs: Any) -> Row:
    return on(minute, change(minute, previous, new, **differs))


def pull(minute: int) -> Row:
    return on(minute, {"record_id": str(minute), "request_ts": at(minute), "queue_id": 0})


def file(name: str, kind: str, first: int, last: int, rows: int) -> Row:
    counts = {"rows_in": rows, "rows_out": rows, "rows_quarantined": 0, "rows_duplicate": 0}
    times = {"first_ts": at(first), "last_ts": at(last)}
    return {"cluster": "c", "path": name, "kind": kind, "status": "read"} | counts | times


IMPORTED = """
import sys
from mqreplay.cli.command_line import main
assert main(["nightly", sys.argv[1], "--warehouse", sys.argv[2], "--lang", "en"]) == 0
print("great_expectations" in sys.modules)
"""


def test_a_night_in_which_no_rule_is_in_doubt_does_not_load_great_expectations(tmp_path: Path) -> None:
    """Its import takes more processor time than all else of a small night."""
    words = [sys.executable, "-c", IMPORTED, str(SAMPLE / "bulk-5.3.3"), str(tmp_path / "w")]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "False"


class Kept(Warehouse):
    """Rows given by a test, so that they may break what they like."""

    rows: dict[str, list[Row]]

    def validated(self, results: Path, *, scopes: list[str] | None = None, **told: Any) -> Validation:
        """Write the rows, and run those scopes; all, where none are given."""
        for name, rows in self.rows.items():
            Folder(Path(self.root), self.contracts).write(name, rows)
        found = [Span("r", f["kind"], f["path"], f["first_ts"], f["last_ts"]) for f in self.rows["bronze.source_file"]]
        judging = Validation(self, "c", found, load_settings())
        judging.run(sorted(judging.wanted) if scopes is None else scopes, str(results), **told)
        return judging


@pytest.fixture
def kept(tmp_path: Path) -> Kept:
    contracts = {name: load_contracts()[name] for name in TABLES}
    return Kept(str(tmp_path / "warehouse"), contracts)


def failed(warehouse: Kept) -> set[tuple[str, str, str]]:
    rows = (
        warehouse.read(VALIDATION_TABLE)
        .filter(~pl.col("passed"))
        .select("day", "table_name", "expectation")
        .collect()
        .rows()
    )
    return {(str(day or UNDATED), table, expectation.removeprefix("expect_")) for day, table, expectation in rows}


def results(warehouse: Kept) -> set[tuple[Any, ...]]:
    rows = warehouse.read(VALIDATION_TABLE).select("day", "run_id", "table_name", "expectation", "arguments")
    return set(rows.collect().rows())


def test_of_several_days_only_those_that_changed_are_looked_at(
    kept: Kept, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept.rows = {
        "bronze.source_file": [
            file("s1", "consumer_offset", NIGHT, NIGHT + 9, 2),
            file("p1", "pull_log", NIGHT, NIGHT + 9, 1),
            file("s2", "consumer_offset", NEXT, NEXT + 9, 3),
            file("p2", "pull_log", NEXT, NEXT + 9, 1),
        ],
        "silver.offset_change": [
            moved(1, None, 5),
            moved(2, 5, 9),
            moved(NEXT + 1, 9, 12),  # goes on where the day before ended
            moved(NEXT + 1, 3, 4, queue_id=1),  # of a queue that no day before has
            moved(NEXT + 9, 12, 13),
        ],
        "silver.pull": [pull(9), pull(NEXT + 9)],
    }
    folder = tmp_path / "results"
    judging = kept.validated(folder)
    assert sorted(judging.wanted) == [FIRST, SECOND, UNDATED]
    assert failed(kept) == set()
    before = results(kept)
    assert {str(day or UNDATED) for day, *_ in before} == {FIRST, SECOND, UNDATED}
    written_ns = (folder / f"{FIRST}.json").stat().st_mtime_ns

    # A third day: a row is lost on the way over midnight. A day without pulls is none that ends early.
    kept.rows["bronze.source_file"].append(file("s3", "consumer_offset", 2 * NEXT, 2 * NEXT + 59, 2))
    kept.rows["silver.offset_change"] += [moved(2 * NEXT + 1, 15, 16), moved(2 * NEXT + 59, 16, 17)]
    said: list[str] = []
    monkeypatch.setattr("mqreplay.night.validation.Ticker", partial(Ticker, every_s=0.05))
    again = kept.validated(folder, scopes=[THIRD, UNDATED], say=said.append)
    changed = [scope for scope, digest in again.wanted.items() if judging.wanted.get(scope) != digest]
    assert sorted(changed) == [THIRD, UNDATED]
    assert said
    assert all(re.fullmatch(r"c: validated 0 of 0 MB(, 0\.\d MB/s, about [\d,]+ s left)?", line) for line in said)
    assert failed(kept) == {(THIRD, "silver.offset_change", "offset_continuity")}
    after = results(kept)
    assert {row for row in before if row[0] is not None} < after
    assert (folder / f"{FIRST}.json").stat().st_mtime_ns == written_ns
    assert {path.stem for path in folder.iterdir()} == {FIRST, SECOND, THIRD, UNDATED}
    assert all("silver.pull" in json.loads((folder / f"{day}.json").read_text()) for day in (FIRST, SECOND, THIRD))


def test_rows_lost_on_any_day_are_missed(kept: Kept, tmp_path: Path) -> None:
    kept.rows = {
        "bronze.source_file": [
            file("b", "brokers", NIGHT, NIGHT, 1),
            file("p1", "pull_log", NIGHT, NIGHT + 9, 2),
            file("p2", "pull_log", NEXT, NEXT + 9, 1),
        ],
        "silver.broker": [{"cluster": "c", "broker_name": "broker-a"}],
        "silver.pull": [pull(9), pull(NEXT + 9)],
    }
    kept.validated(tmp_path / "results", scopes=[SECOND, UNDATED])
    lost = kept.read(VALIDATION_TABLE).filter(~pl.col("passed") & pl.col("day").is_null()).collect()
    row = lost.row(0, named=True)
    assert row["expectation"] == "expect_rows_conserved"
    problem = "its files (pull_log) gave 3 rows, it holds 2"
    assert json.loads(row["unexpected_sample"]) == [{"where": "silver.pull", "problem": problem}]


def test_a_recording_that_pauses_ends_with_the_days_own_rows(kept: Kept, tmp_path: Path) -> None:
    kept.rows = {
        # One file, written on both days, with hours between.
        "bronze.source_file": [
            file("s", "consumer_offset", NIGHT, NEXT + 9, 2),
            file("p", "pull_log", NIGHT, NEXT + 9, 2),
        ],
        "silver.offset_change": [moved(9, None, 5), moved(NEXT + 9, 5, 6)],
        "silver.pull": [pull(9), pull(NEXT + 9)],
    }
    kept.validated(tmp_path / "results")
    assert failed(kept) == set()
