"""consumerOrderInfo.json in snapshots: each new, changed and removed record is a row, also over several runs."""

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

TABLE = "silver.pop_order"
FULL = '{"a":"x","cm":2,"i":30000,"l":7,"o":[5,1],"oc":{5:1},"ot":{5:17},"popTime":7}'
ONE = '{"cm":0,"i":30000,"l":8,"o":[9],"popTime":8}'


def write(recording: Path, moment: int, queues: dict[int, str]) -> None:
    folder = recording / "snapshots" / "b-0" / str(BEGAN + moment * 5000)
    folder.mkdir(parents=True)
    table = ",".join(f"{queue_id}:{order}" for queue_id, order in queues.items())
    (folder / "consumerOrderInfo.json").write_text('{"table":{"t@g":{' + table + "}}}")


def rows(recording: Path, root: Path) -> list[tuple]:
    recordings = KnownDigests(str(root)).of_recordings(find_recordings([str(recording)]))
    with LocalEngine(root, processes=1) as engine:
        ingest_recordings(Warehouse(str(root)), engine, recordings, "c", IngestSettings(), lambda _: None)
    found = table_at(root, TABLE).sort("ts", "queue_id")
    return found.select("topic", "consumer_group", "queue_id", "change", "pop_time", "offset_list").rows()


def test_records_that_come_change_and_go(tmp_path: Path) -> None:
    recording, root = tmp_path / "r", tmp_path / "w"
    write(recording, 0, {0: FULL, 1: ONE})
    first = [("t", "g", 0, "first", 7, [5, 1]), ("t", "g", 1, "first", 8, [9])]
    assert rows(recording, root) == first
    write(recording, 1, {0: FULL, 1: ONE.replace('"cm":0', '"cm":1')})
    write(recording, 2, {0: FULL})
    assert rows(recording, root) == [*first, ("t", "g", 1, "changed", 8, [9]), ("t", "g", 1, "removed", None, None)]
    times = table_at(root, TABLE).filter(queue_id=0).select("offset_next_visible_time", "offset_consumed_count")
    assert times.rows() == [([{"offset": 5, "time": 17}], [{"offset": 5, "times": 1}])]
