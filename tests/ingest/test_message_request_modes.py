"""messageRequestMode.json in snapshots: each new, changed and removed mode is a row, also over several runs."""

from __future__ import annotations

import json
from pathlib import Path

from ingest.test_cut_recording import BEGAN
from mqreplay.engines.local import LocalEngine
from mqreplay.ingest.digests import KnownDigests
from mqreplay.ingest.listing import find_recordings
from mqreplay.ingest.run import ingest_recordings
from mqreplay.lake.warehouse import Warehouse
from mqreplay.settings import IngestSettings
from tests_shared import table_at

TABLE = "silver.message_request_mode"


def write(recording: Path, moment: int, modes: dict[str, dict[str, str]]) -> None:
    folder = recording / "snapshots" / "b-0" / str(BEGAN + moment * 5000)
    folder.mkdir(parents=True)
    table = {topic: {group: {"mode": mode} for group, mode in groups.items()} for topic, groups in modes.items()}
    (folder / "messageRequestMode.json").write_text(json.dumps({"messageRequestModeMap": table}))


def rows(recording: Path, root: Path) -> list[tuple]:
    recordings = KnownDigests(str(root)).of_recordings(find_recordings([str(recording)]))
    with LocalEngine(root, processes=1) as engine:
        ingest_recordings(Warehouse(str(root)), engine, recordings, "c", IngestSettings(), lambda _: None)
    found = table_at(root, TABLE).sort("ts", "topic", "consumer_group")
    return found.select("topic", "consumer_group", "change", "mode", "pop_share_queue_num").rows()


def test_modes_that_come_change_and_go(tmp_path: Path) -> None:
    recording, root = tmp_path / "r", tmp_path / "w"
    write(recording, 0, {"t": {"g": "POP", "h": "POP"}})
    first = [("t", "g", "first", "POP", 0), ("t", "h", "first", "POP", 0)]
    assert rows(recording, root) == first
    write(recording, 1, {"t": {"g": "POP", "h": "PULL"}})
    write(recording, 2, {"t": {"h": "PULL"}})
    assert rows(recording, root) == [*first, ("t", "h", "changed", "PULL", 0), ("t", "g", "removed", None, None)]
