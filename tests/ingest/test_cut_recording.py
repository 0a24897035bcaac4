"""Snapshots read in pieces give the same tables as snapshots read in one piece."""

from __future__ import annotations

import json

import pytest
from polars.testing import assert_frame_equal

from mqreplay.engines.local import LocalEngine
from mqreplay.ingest import pieces, snapshot_rounds, snapshots
from mqreplay.ingest.digests import KnownDigests
from mqreplay.ingest.listing import find_recordings
from mqreplay.ingest.run import ingest_recordings
from mqreplay.lake.warehouse import Warehouse
from mqreplay.settings import IngestSettings
from tests_shared import table_at

BEGAN = 1795132800000
TABLES = ("silver.offset_change", "silver.snapshot", "silver.topic_config", "bronze.source_file", "bronze.quarantine")


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    folder = tmp_path_factory.mktemp("recording")
    for source in ("b-0", "b-1"):
        for moment in range(12):
            at = folder / "snapshots" / source / str(BEGAN + moment * 5000)
            at.mkdir(parents=True)
            table = {"T@g": {"0": moment * 10, "1": moment // 3}, "strange": {"0": 1}, "odd": {"0": moment}}
            if moment < 6:
                del table["odd"]
            text = json.dumps({"offsetTable": table})
            torn = source == "b-0" and moment in (4, 5)
            (at / "consumerOffset.json").write_text(text[:-3] if torn else text)
            topics = {"T": {"topicName": "T", "readQueueNums": 1 + moment // 8, "writeQueueNums": 2, "perm": 6}}
            (at / "topics.json").write_text(
                json.dumps({"topicConfigTable": topics, "dataVersion": {"counter": moment}})
            )
    return str(folder)


@pytest.fixture(scope="module")
def whole(recording, tmp_path_factory):
    return read(recording, tmp_path_factory.mktemp("whole"))


def read(recording, root):
    """The tables of a warehouse in ``root`` after the recording was ingested."""
    recordings = KnownDigests(str(root)).of_recordings(find_recordings([recording]))
    with LocalEngine(root, processes=1) as engine:
        ingest_recordings(Warehouse(str(root)), engine, recordings, "c", IngestSettings(), lambda _: None)
    return {name: table_at(root, name) for name in TABLES}


@pytest.mark.parametrize(("lead", "in_one"), [(20, False), (1, True)])
def test_cut_or_not_the_tables_are_the_same(recording, whole, tmp_path, monkeypatch, lead, in_one):
    put_together = []
    monkeypatch.setattr(pieces, "LEAD", lead)
    monkeypatch.setattr(snapshot_rounds, "cut", lambda files: snapshots.cut(files, most_bytes=500))
    uncut = snapshot_rounds.uncut
    monkeypatch.setattr(snapshot_rounds, "uncut", lambda cuts, lost: put_together.append(lost) or uncut(cuts, lost))
    in_pieces = read(recording, tmp_path)
    assert put_together == ([{"b-0"}] if in_one else [])  # two torn files in a row are more than a lead of one
    for name in TABLES:
        assert not whole[name].is_empty()
        assert_frame_equal(in_pieces[name], whole[name], check_row_order=False)
