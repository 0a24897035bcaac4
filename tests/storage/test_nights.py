"""Nights on real stores: the warehouse and the recording by URI, the same tables as in local folders."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from storage.conftest import CleanNight
from storage.stores import Store


@pytest.mark.parametrize("store", ["s3", pytest.param("hdfs", marks=pytest.mark.long)], indirect=True)
def test_a_night_on_a_store_leaves_the_tables_of_a_local_one(store: Store, clean: CleanNight, tmp_path: Path) -> None:
    recording = store.put(Path(clean.recording), "recording")
    first = store.nightly(tmp_path / "first", recording)
    assert first.errors() == []
    assert first.wait() == 0
    assert not clean.wrong_in(store.copy_of("warehouse", tmp_path / "copy"), recording)


@pytest.mark.long
def test_commands_on_a_store(store: Store, clean: CleanNight, tmp_path: Path) -> None:
    recording = store.put(Path(clean.recording), "recording")
    assert store.nightly(tmp_path / "first", recording).wait() == 0

    again = store.nightly(tmp_path / "again", recording)
    assert (again.wait(), again.errors()) == (0, [])
    assert "none new or changed" in again.folder.joinpath("stderr").read_text()

    warehouse = ["--warehouse", f"{store.uri}/warehouse"]
    query = "SELECT count(*) AS pulls FROM silver.pull"
    asked = store.run(tmp_path / "sql", "sql", query, *warehouse, "--format", "json")
    assert json.loads(asked.folder.joinpath("stdout").read_text())["pulls"] == clean.tables["silver.pull"].total()
    told = store.run(tmp_path / "findings", "findings", "--json", *warehouse)
    findings = json.loads(told.folder.joinpath("stdout").read_text())["findings"]
    assert len(findings) == clean.tables["gold.finding"].total()
    explained = store.run(tmp_path / "explain", "explain", findings[0]["finding_id"], *warehouse)
    assert findings[0]["kind"] in explained.folder.joinpath("stdout").read_text()
    report = store.run(tmp_path / "report", "report", *warehouse, "--engine", "local")
    assert [run.wait() for run in (asked, told, explained, report)] == [0] * 4, report.errors()
