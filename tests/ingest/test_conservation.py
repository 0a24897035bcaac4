"""Rows in are rows out, quarantined or duplicate, or the run fails; refused lines are private."""

from __future__ import annotations

import dataclasses
import hashlib
from itertools import count

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

# Of so few lines, half may be refused.
SETTINGS = dataclasses.replace(load_settings(), ingest=dataclasses.replace(load_settings().ingest, refused_share=1.0))
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


def test_refused_lines_of_a_file_stay_if_another_file_takes_a_line_over(tmp_path):
    recording, warehouse = tmp_path / "recording", tmp_path / "warehouse"
    recording.mkdir()

    def ingest(name: str, text: str) -> None:
        (recording / name).write_text(text)
        run("ingest", str(warehouse), SETTINGS, lambda text: None, recordings=[str(recording)], cluster="c")

    first = PULL % 0 + "{\n"
    digest = hashlib.sha256(first.encode()).hexdigest()
    others = (PULL % 0 + PULL % number for number in count(1))
    ingest("pull_log.1.jsonl", first)
    # Of files with the same line, that with the least digest has the row.
    ingest("pull_log.2.jsonl", next(text for text in others if hashlib.sha256(text.encode()).hexdigest() < digest))
    rows = Warehouse(str(warehouse)).read("bronze.source_file").sort("path").collect()
    assert rows["rows_duplicate"].to_list() == [1, 0]
    refused = Warehouse(str(warehouse)).read("bronze.quarantine").collect()
    assert refused["path"].to_list() == ["pull_log.1.jsonl"]


def test_a_run_of_one_recording_reads_no_snapshot_again_that_another_one_has_too(tmp_path):
    recordings, warehouse = [tmp_path / "a", tmp_path / "b"], str(tmp_path / "warehouse")
    for place in recordings:
        snapshot = place / "snapshots" / "broker-a-0" / "1795229406000" / "consumerOffset.json"
        snapshot.parent.mkdir(parents=True)
        snapshot.write_text('{"offsetTable":{"t@g":{0:5}}}')
    for named in (recordings, recordings[1:]):
        run("ingest", warehouse, SETTINGS, lambda text: None, recordings=[*map(str, named)], cluster="c")
        assert len(Warehouse(warehouse).read("silver.snapshot").collect()) == 1
        assert len(Warehouse(warehouse).read("silver.offset_change").collect()) == 1
