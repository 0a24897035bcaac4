"""Nights on real stores: the warehouse and the recording by URI, the same tables as in local folders."""

from __future__ import annotations

import json
from pathlib import Path

from storage.conftest import CleanNight
from storage.stores import Store


def test_a_night_on_a_store_leaves_the_tables_of_a_local_one(store: Store, clean: CleanNight, tmp_path: Path) -> None:
    first = store.nightly(tmp_path / "first", clean.recording)
    assert first.errors() == []
    assert first.wait() == 0
    assert not clean.wrong_in(store.copy_of("warehouse", tmp_path / "copy"))

    again = store.nightly(tmp_path / "again", clean.recording)
    assert (again.wait(), again.errors()) == (0, [])
    assert "none new or changed" in again.folder.joinpath("stderr").read_text()

    warehouse = ["--warehouse", f"{store.uri}/warehouse"]
    query = "SELECT count(*) AS pulls FROM silver.pull"
    asked = store.run(tmp_path / "sql", "sql", query, *warehouse, "--format", "json")
    pulls = json.loads(asked.folder.joinpath("stdout").read_text())
    assert pulls[0]["pulls"] == clean.tables["silver.pull"].total()
    told = store.run(tmp_path / "findings", "findings", "--json", *warehouse)
    assert len(json.loads(told.folder.joinpath("stdout").read_text())) == clean.tables["gold.finding"].total()
