"""delayOffset.json in snapshots: each new and changed offset of a delay level is a row, also over several runs."""

from __future__ import annotations

from pathlib import Path

from ingest.test_cut_recording import BEGAN
from mqreplay.engines.local import LocalEngine
from mqreplay.ingest.digests import KnownDigests
from mqreplay.ingest.listing import find_recordings
from mqreplay.ingest.run import ingest_recordings
from mqreplay.lake.warehouse import Warehouse
from mqreplay.settings import IngestSettings
from tests_shared import table_at

TABLE = "silver.delay_offset"


def write(recording: Path, moment: int, text: str) -> None:
    folder = recording / "snapshots" / "b-0" / str(BEGAN + moment * 5000)
    folder.mkdir(parents=True)
    (folder / "delayOffset.json").write_text(text)


def rows(recording: Path, root: Path) -> list[tuple]:
    recordings = KnownDigests(str(root)).of_recordings(find_recordings([str(recording)]))
    with LocalEngine(root, processes=1) as engine:
        ingest_recordings(Warehouse(str(root)), engine, recordings, "c", IngestSettings(), lambda _: None)
    return table_at(root, TABLE).sort("ts", "delay_level").select("delay_level", "offset", "change").rows()


def test_offsets_that_grow(tmp_path: Path) -> None:
    recording, root = tmp_path / "r", tmp_path / "w"
    write(recording, 0, '{"offsetTable":{}}')
    write(recording, 1, '{"offsetTable":{3:3,10:4}}')
    first = [(3, 3, "first"), (10, 4, "first")]
    assert rows(recording, root) == first
    write(recording, 2, '{"dataVersion":{"counter":1,"stateVersion":0,"timestamp":7},"offsetTable":{3:3,10:6}}')
    assert rows(recording, root) == [*first, (10, 6, "changed")]
