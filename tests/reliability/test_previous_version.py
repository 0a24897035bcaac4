"""A warehouse that version 0.1.0 wrote is read and brought up to date: its tables are as those of a clean run.

data/warehouse-0.1.0.tar.xz holds a cut of the sample recording bulk-5.3.3 (one group, a minute, lines in two parts) as
/srv/recording was, and two warehouses that the commit 7dfdfad made of it there:

- warehouse: by `mqreplay nightly /srv/recording --warehouse /srv/warehouse`.
- interrupted: by an ingest of the first half, and one of the whole recording that was ended as it began to write its
  ledger: rows without ledger rows, and the mark .mqreplay.unfinished.

Data Docs are left out. Here the recording lies in another folder than its ledger says.
"""

from __future__ import annotations

import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

from mqreplay.settings import load_settings
from mqreplay.words.errors import ContractError, InputError
from tests_shared import files_of, rows_at, run, table_rows, tables, unpack

KEPT = Path(__file__).parent / "data" / "warehouse-0.1.0.tar.xz"
CLUSTER = "grid-cluster"
MARK = ".mqreplay.unfinished"
INGESTED = ("bronze.", "silver.")
# Which steps were done, and with which version: not the recording's content.
NOT_COMPARED = {"bronze.step"}


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    """The folder with recording, warehouse and interrupted."""
    with tarfile.open(KEPT) as archive:
        unpack(archive, tmp_path)
    return tmp_path


def rows_after(step: str, warehouse: Path, recording: Path) -> dict[str, list[str]]:
    """The cluster's rows of every table, after the step."""
    run(step, str(warehouse), load_settings(), lambda text: None, recordings=[str(recording)])
    names = [name for name in tables(str(warehouse)) if name not in NOT_COMPARED]
    return {name: sorted(known(name, row) for row in rows_at(str(warehouse), name, CLUSTER)) for name in names}


def known(table: str, row: dict[str, Any]) -> str:
    """A row's values by column, without those that version 0.1.0 did not have: null, or the source that null means.

    The ledger keeps the reason that was written when a file was read: versions word it differently.
    """
    unlike = {"source", "reason"} if table == "bronze.source_file" else {"source"}
    return str(sorted((name, value) for name, value in row.items() if value is not None and name not in unlike))


def assert_same(found: dict[str, list[str]], clean: dict[str, list[str]]) -> None:
    wrong = [name for name in sorted(found.keys() | clean.keys()) if found.get(name, []) != clean.get(name, [])]
    assert not wrong, {name: (found.get(name, [])[:2], clean.get(name, [])[:2]) for name in wrong}


def test_what_is_kept_is_what_the_previous_version_wrote(kept: Path) -> None:
    ledger = table_rows(str(kept / "warehouse"), "bronze.source_file", CLUSTER)
    assert len(ledger) == 39
    assert all("'recording': '/srv/recording'" in row for row in ledger)
    assert json.loads((kept / "interrupted" / MARK).read_text()) == [f"ingest {CLUSTER} /srv/recording"]
    pulls = {name: len(table_rows(str(kept / name), "silver.pull", CLUSTER)) for name in ("warehouse", "interrupted")}
    assert pulls == {"warehouse": 91, "interrupted": 91}
    known = table_rows(str(kept / "interrupted"), "bronze.source_file", CLUSTER)
    assert not [row for row in known if "pull_log.0002" in row], "its ledger knows the first half only"


def test_its_tables_are_refused_in_one_line_and_stay_as_they_are(kept: Path) -> None:
    """Its tables have no partitions. The recording gives them again."""
    before = files_of(str(kept / "warehouse"))
    with pytest.raises(ContractError, match=r"made by mqreplay 0\.1, whose tables have no partitions") as refused:
        rows_after("ingest", kept / "warehouse", kept / "recording")
    assert "\n" not in str(refused.value)
    assert "mqreplay nightly RECORDING... --warehouse NEW" in str(refused.value), "it names the next step"
    assert files_of(str(kept / "warehouse")) == before
    assert len(rows_after("ingest", kept / "clean", kept / "recording")["silver.pull"]) == 91


def test_what_it_did_not_end_is_refused_in_one_line(kept: Path) -> None:
    """Its mark does not say which rows no ledger lists, so that nothing can be rolled back."""
    before = files_of(str(kept / "interrupted"))
    with pytest.raises(InputError, match=r"unfinished by mqreplay 0\.1\.0") as refused:
        rows_after("ingest", kept / "interrupted", kept / "recording")
    assert "\n" not in str(refused.value)
    assert "--warehouse" in str(refused.value), "it names the next step"
    assert files_of(str(kept / "interrupted")) == before
    assert (kept / "interrupted" / MARK).exists(), "the previous version may still end its run"
