"""Snapshots read in rounds give the same tables as in one, and a written round stays if the run dies."""

from __future__ import annotations

import pytest
from deltalake import DeltaTable

from mqreplay.ingest import snapshot_rounds
from mqreplay.ingest.ledger import Ledgers
from mqreplay.settings import load_settings
from tests_shared import SAMPLE, run, tables


def ingest(warehouse):
    said = []
    run("ingest", str(warehouse), load_settings(), said.append, recordings=[str(SAMPLE / "bulk-5.3.3")])
    return {name: rows(warehouse, name) for name in tables(str(warehouse))}, said


def rows(warehouse, name):
    """As text; entries of a map have no order."""
    told = DeltaTable(str(warehouse / name.replace(".", "/"))).to_pyarrow_table().to_pylist()
    return sorted(str({k: sorted(v) if k == "properties" and v else v for k, v in row.items()}) for row in told)


@pytest.fixture(scope="module")
def at_once(tmp_path_factory):
    return ingest(tmp_path_factory.mktemp("once"))[0]


def test_rounds_give_the_tables_of_one(at_once, tmp_path, monkeypatch):
    written = []
    write = Ledgers.write
    monkeypatch.setattr(Ledgers, "write", lambda self, *given: written.append(write(self, *given)))
    monkeypatch.setattr(snapshot_rounds, "ROUND_FILES", 1)
    assert ingest(tmp_path)[0] == at_once
    assert len(written) > 3


def test_a_run_that_dies_between_rounds_is_taken_up(at_once, tmp_path, monkeypatch):
    monkeypatch.setattr(snapshot_rounds, "ROUND_FILES", 1)
    written = []

    write = Ledgers.write

    def die(self, ledger, *more):
        if len(written) == 2:
            raise KeyError("died")
        write(self, ledger, *more)
        written.append(len(ledger.files))

    with monkeypatch.context() as dying:
        dying.setattr(Ledgers, "write", die)
        with pytest.raises(KeyError, match="died"):
            ingest(tmp_path)
    found, said = ingest(tmp_path)
    assert found == at_once
    (line,) = [line for line in said if "to read" in line]
    seen, to_read = (int(word) for word in line.split() if word.isdigit())
    assert to_read <= seen - sum(written), "what was written is read again"
