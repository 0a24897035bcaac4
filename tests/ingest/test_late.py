"""Late snapshots: the tables are as if they had come in time, and only needed files are read."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from mqreplay.ingest.late import SourceSpan, within
from mqreplay.settings import load_settings
from tests_shared import run, table_rows

MINUTE = 60_000
MIDNIGHT = 1_795_305_600_000  # 2026-11-22
MOMENTS = [MIDNIGHT + minute * MINUTE for minute in range(-4, 5)]
SOURCES = ("broker-a-0", "broker-b-0")
TABLES = ("silver.offset_change", "silver.snapshot", "silver.topic_config", "bronze.source_file", "bronze.quarantine")


def offsets(moment: int, source: str) -> str:
    """Some queues move at each moment, some never; one is there every other moment only."""
    at = MOMENTS.index(moment)
    queues = {0: 100 + 7 * at if source == "broker-a-0" else 5, 1: 900 - at, 2: 3}
    told = {"T@g": queues, "U@g": {0: at // 2}} | ({"V@g": {0: 1}} if at % 2 else {})
    return json.dumps({"offsetTable": {key: {str(q): v for q, v in table.items()} for key, table in told.items()}})


@pytest.fixture
def recording(tmp_path) -> Path:
    folder = tmp_path / "recording"
    for source in SOURCES:
        for at, moment in enumerate(MOMENTS):
            place = folder / "snapshots" / source / str(moment)
            place.mkdir(parents=True)
            (place / "consumerOffset.json").write_text(offsets(moment, source))
            if at % 3 == 0:
                topic = {"topicName": "T", "readQueueNums": 2 + at, "writeQueueNums": 4, "perm": 6}
                version = {"counter": at, "timestamp": 1}
                (place / "topics.json").write_text(
                    json.dumps({"topicConfigTable": {"T": topic}, "dataVersion": version})
                )
    torn = snapshot(folder, 3)
    torn.write_text(torn.read_text()[:20])
    return folder


def snapshot(folder: Path, at: int, source: str = SOURCES[0]) -> Path:
    return folder / "snapshots" / source / str(MOMENTS[at]) / "consumerOffset.json"


def ingest(folder: Path, warehouse: Path, *, forget: bool = True) -> dict[str, list[str]]:
    settings = load_settings()
    settings = replace(settings, ingest=replace(settings.ingest, forget_missing_files=forget))
    run("ingest", str(warehouse), settings, lambda what: None, recordings=[str(folder)], cluster="c")
    return {name: table_rows(str(warehouse), name, "c") for name in TABLES}


@pytest.mark.parametrize(
    ("late", "needed"),
    [
        pytest.param((2,), 4, id="torn behind"),
        pytest.param((2, 5), 6, id="two", marks=pytest.mark.long),
        pytest.param((0,), 1, id="first", marks=pytest.mark.long),
    ],
)
def test_it_is_as_if_it_had_come_in_time(recording, tmp_path, late, needed):
    whole = ingest(recording, tmp_path / "in-time")
    kept = {at: snapshot(recording, at).read_text() for at in late}
    for at in late:
        snapshot(recording, at).unlink()
    before = ingest(recording, tmp_path / "late")
    assert before["silver.offset_change"] != whole["silver.offset_change"]
    for at, text in kept.items():
        snapshot(recording, at).write_text(text)
    # What comes after the first whole snapshot behind the last late one, and other brokers', is not read again.
    for at in range(needed + 1, len(MOMENTS)):
        shutil.rmtree(snapshot(recording, at).parent)
    shutil.rmtree(recording / "snapshots" / SOURCES[1])
    assert ingest(recording, tmp_path / "late", forget=False) == whole


def test_without_what_is_needed_again_it_is_refused_until_that_is_back(recording, tmp_path):
    whole = ingest(recording, tmp_path / "in-time")
    late, needed = snapshot(recording, 5), snapshot(recording, 6)
    text = late.read_text(), needed.read_text()
    late.unlink()
    before = ingest(recording, tmp_path / "late")
    late.write_text(text[0])
    needed.unlink()
    found = ingest(recording, tmp_path / "late", forget=False)
    assert found["silver.offset_change"] == before["silver.offset_change"]
    (refused,) = set(found["bronze.quarantine"]) - set(before["bronze.quarantine"])
    assert "'code': 'late'" in refused
    assert "put back" in refused
    assert ingest(recording, tmp_path / "late", forget=False) == found, "told once"
    needed.write_text(text[1])
    assert ingest(recording, tmp_path / "late", forget=False) == whole


@pytest.mark.long
def test_a_removed_snapshot_leaves_the_tables_of_those_that_are_left(recording, tmp_path):
    ingest(recording, tmp_path / "warehouse")
    for at in (2, 5, 8):
        snapshot(recording, at).unlink()
    shutil.rmtree(recording / "snapshots" / SOURCES[1])
    assert ingest(recording, tmp_path / "warehouse") == ingest(recording, tmp_path / "clean")


def test_a_recording_that_was_moved_or_copied_tells_nothing_new(recording, tmp_path):
    before = ingest(recording, tmp_path / "warehouse")
    recording.rename(tmp_path / "moved")
    after = ingest(tmp_path / "moved", tmp_path / "warehouse")
    renamed = {
        name: sorted(row.replace(str(recording), str(tmp_path / "moved")) for row in rows)
        for name, rows in before.items()
    }
    assert after == renamed
    shutil.copytree(tmp_path / "moved", tmp_path / "the-copy")
    copied = ingest(tmp_path / "the-copy", tmp_path / "warehouse")
    assert all(copied[name] == after[name] for name in TABLES if not name.startswith("bronze"))
    added = set(copied["bronze.source_file"]) - set(after["bronze.source_file"])
    assert len(added) == len(before["bronze.source_file"])


def test_a_row_lies_within_the_stretch_of_its_own_source():
    found = {"client-10.0.0.1@ts": SourceSpan(5), "b'-0": SourceSpan(7, 9)}
    rows = pl.DataFrame(
        {"source_name": ["client-10.0.0.1@ts"] * 2 + ["b'-0"] * 4 + ["c"], "ms": [4, 5, 6, 7, 9, 10, 7]}
    )
    assert rows.select(within(found, pl.col("ms"))).to_series().to_list() == [0, 1, 0, 1, 1, 0, 0]
