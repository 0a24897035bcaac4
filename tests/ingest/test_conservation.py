"""Rows in are rows out, quarantined or duplicate, or the run fails; refused lines are private."""

from __future__ import annotations

import pytest
from deltalake import DeltaTable

from mqreplay.engines.file_decoding import FileNewRows
from mqreplay.ingest.ledger import FileEntry
from mqreplay.ingest.manifest import NewFile, Plan
from mqreplay.ingest.recording import RecordedFile
from mqreplay.ingest.records import FileStats
from mqreplay.ingest.to_silver import _commit
from mqreplay.lake.table_writer import WrittenFile
from mqreplay.lake.warehouse import Warehouse
from mqreplay.settings import load_settings
from mqreplay.words.errors import ConservationError
from tests_shared import run

SECRET = "card 4111-1111"
PULL = (
    '{"request_ts":1795229406000,"client_id":"c","consumer_group":"g","topic":"t","queue_id":%d,'
    '"broker_name":"b","queue_offset":7}\n'
)


def test_rows_that_are_lost_between_reading_and_writing_fail_the_run(tmp_path):
    written = FileNewRows(Warehouse(str(tmp_path)), "silver.pull", [WrittenFile("f", 1, 2, (), "{}")])
    with pytest.raises(ConservationError, match="rows were lost"):
        _commit(None, "pull_log", Plan(), written, {"d": FileStats(3, 3)})


def test_more_rows_than_lines_fail_the_run():
    entry = FileEntry(NewFile(RecordedFile("/r", "pull_log.jsonl", "pull_log", 1), "a" * 64))
    entry.rows_in, entry.rows_out = 2, 3
    with pytest.raises(ConservationError, match="2 rows in, but 3 out"):
        entry.settle()


def test_the_ledger_adds_up_and_no_content_is_said(tmp_path):
    recording, warehouse = tmp_path / "recording", tmp_path / "warehouse"
    recording.mkdir()
    (recording / "pull_log.1.jsonl").write_text(PULL % 0 + PULL % 1 + f'{{"request_ts":"{SECRET}"}}\n' + PULL % 1)
    (recording / "pull_log.2.jsonl").write_text(PULL % 1 + PULL % 2)
    said: list[str] = []
    run("ingest", str(warehouse), load_settings(), said.append, recordings=[str(recording)], cluster="c")

    def rows(name):
        return DeltaTable(str(warehouse / name)).to_pyarrow_table().to_pylist()

    files = {row["path"]: row for row in rows("bronze/source_file")}
    assert [files[p]["rows_in"] for p in sorted(files)] == [4, 2]
    for row in files.values():
        assert row["rows_in"] == row["rows_out"] + row["rows_quarantined"] + row["rows_duplicate"]
        assert row["rows_out"] == sum(pull["source_digest"] == row["sha256"][:32] for pull in rows("silver/pull"))
    assert sum(row["rows_duplicate"] for row in files.values()) == 1
    assert [SECRET.encode() in row["content"] for row in rows("bronze/quarantine")] == [True]
    assert SECRET not in "\n".join(said)
