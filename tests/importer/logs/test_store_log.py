"""store.log: when a broker marked its disk as full is a disk_full of that time."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path

import pytest

from importer.logs.collected_logs import imported
from mqreplay.decode.broker_runtime import decode_broker_runtime
from mqreplay.evidence.brokers.full_disks import full_disks
from silver_moments import at
from silver_rows import rows

OLD = ("physic disk maybe full soon 0.91, so mark disk full", "physic disk space OK 0.74, so mark disk ok")
PATH = ", storePathPhysic=/data/commitlog"
WRITTEN = (
    OLD,
    (OLD[0] + PATH, OLD[1] + PATH),
    (
        "physic disk of commitLog maybe full soon, used 0.91, so mark disk full",
        "physic disk space of commitLog OK 0.74, so mark disk ok",
    ),
    ("logics disk maybe full soon 0.91, so mark disk full", "logics disk space OK 0.74, so mark disk ok"),
)


@pytest.mark.parametrize("lines", WRITTEN)
def test_a_mark_of_a_full_disk(lines: tuple[str, str], tmp_path: Path) -> None:
    folder = tmp_path / "broker-a-0"
    folder.mkdir()
    (folder / "broker.log").write_text("2020-06-02 11:30:00 INFO main - register broker[0]to name server h:9876 OK\n")
    texts = [
        f"2020-06-02 11:3{minute}:44 ERROR StoreScheduledThread1 - {text}\n"
        for minute, text in zip((5, 9), lines, strict=True)
    ]
    (folder / "store.log").write_text("".join(texts))
    records, report = imported(tmp_path, dt.UTC)
    marks = [record for record in records["broker_runtime"] if record["source"] == "store_log"]
    assert [record["broker_name"] for record in marks] == ["broker-a", "broker-a"]
    assert any("store.log of RocketMQ" in what for _, what, _ in report.recognised)
    decoded = [decode_broker_runtime(json.dumps(record).encode()) for record in marks]
    base = {"broker_name": "broker-a", "broker_id": 0}
    polls = [{"ts": at(240 * place), "runtime": row["table"]} for place, row in enumerate(decoded)]
    [full] = full_disks(rows("silver.broker_runtime", base, polls), rows("silver.broker", {}, [])).to_dicts()
    assert (full["from_ts"], full["to_ts"], full["ratio"], full["ends"]) == (at(0), at(240), 0.91, True)
