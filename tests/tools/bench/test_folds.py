"""The folds that were weighed keep what they are said to keep, and the command prints a row of figures for each."""

from __future__ import annotations

import datetime as dt
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from bench.folds import CHAIN, NAMES, by_hour, by_number, segments

SCRIPT = Path(__file__).parents[3] / "tools" / "bench" / "folds.py"
BEGIN = dt.datetime(2026, 11, 20, tzinfo=dt.UTC)


def changes(seed: int, queues: int = 3, each: int = 400) -> pl.DataFrame:
    """Rows of silver.offset_change: offsets that rise unevenly, and fall now and then."""
    dice = random.Random(seed)
    rows = []
    for queue in range(queues):
        offset, ts = dice.randrange(1000), BEGIN
        for _ in range(each):
            moved = dice.randrange(1, 50) if dice.random() > 0.02 else -dice.randrange(1, 300)
            before, offset = offset, max(0, offset + moved)
            since, ts = ts, ts + dt.timedelta(seconds=dice.randrange(5, 60))
            rows.append(("broker-a-0", "broker-a", "orders", "billing", queue, before, offset, since, ts))
    names = ["source_name", "broker_name", "topic", "consumer_group", "queue_id", "previous_offset", "new_offset"]
    return pl.DataFrame(rows, [*names, "from_ts", "to_ts"], orient="row")


@pytest.mark.parametrize("within", [0, 10, 100])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_lines_are_off_by_no_more_than_was_allowed_and_keep_every_fall(seed: int, within: int) -> None:
    whole = changes(seed)
    lines = segments(whole, within)
    assert len(lines) <= len(whole)
    for number, (queue,) in enumerate(whole.group_by("queue_id", maintain_order=True).agg().rows(), start=1):
        seen = whole.filter(queue_id=queue)
        ends = lines.filter(queue=number)
        moment, offset = seen["to_ts"].dt.timestamp("ms").to_numpy(), seen["new_offset"].to_numpy()
        told = np.interp(moment, ends["ts"].to_numpy(), ends["offset"].to_numpy())
        assert np.abs(told - offset).max() <= within + 1e-6
        falls = np.flatnonzero(np.diff(offset) < 0)
        kept = set(zip(ends["ts"].to_list(), ends["offset"].to_list(), strict=True))
        for fall in falls.tolist():
            assert {(moment[fall], offset[fall]), (moment[fall + 1], offset[fall + 1])} <= kept


def test_an_hour_keeps_its_first_last_least_and_most() -> None:
    whole = changes(4, queues=1)
    hours = by_hour(whole).sort("hour")
    assert hours["first"][0] == whole["previous_offset"][0]
    assert hours["last"][-1] == whole["new_offset"][-1]
    assert hours["least"].min() == whole["new_offset"].min()
    assert hours["most"].max() == whole["new_offset"].max()
    assert hours["fell"].any()


def test_numbers_for_names_keep_queues_apart() -> None:
    whole = changes(5)
    numbered = by_number(whole)
    assert numbered["queue"].n_unique() == whole.select(CHAIN).n_unique()
    assert numbered.drop("queue").equals(whole.select(numbered.columns[1:]))


def test_the_command_prints_each_way(tmp_path: Path) -> None:
    from deltalake import write_deltalake

    place = tmp_path / "silver" / "offset_change"
    place.mkdir(parents=True)
    write_deltalake(place, changes(6).select(*NAMES, "queue_id", "previous_offset", "new_offset", "from_ts", "to_ts"))
    command = [sys.executable, SCRIPT, "--warehouse", tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert [line[:34].strip() for line in done.stdout.splitlines()] == [
        "silver.offset_change",
        "as it is",
        "queues by number",
        "hours",
        *[f"lines, to within {within} messages" for within in (0, 10, 100)],
    ]
