"""Copies that could not be read."""

from __future__ import annotations

from typing import Any

import polars as pl

from evidence_keys import evidence_of
from mqreplay.findings.shape import SCHEMA
from mqreplay.findings.snapshots import refused_snapshots, snapshot_findings
from silver_rows import rows

BASE = {"recording": "r", "kind": "consumer_offset", "reason": "", "advice": "", "content": b""}
COPIED_MS = 1795228800000
Row = dict[str, Any]


def refused(path: str, **differs: object) -> Row:
    return {"path": path, "line_number": 0, "detail_key": "", "code": "torn"} | differs


def found(*paths: Row) -> dict[tuple[str | None, int | None, str | None], Row]:
    findings = snapshot_findings(refused_snapshots(rows("bronze.quarantine", BASE, paths)), "c")
    return {(r["broker_name"], r["broker_id"], r["client_id"]): r for r in findings.iter_rows(named=True)}


def test_files_that_were_not_whole_are_reported_by_their_broker_or_client():
    of_source = found(
        refused(f"snapshots/broker-a-0/{COPIED_MS}/consumerOffset.json"),
        refused(f"snapshots/broker-a-0/{COPIED_MS + 5000}/topics.json", code="empty"),
        refused(f"snapshots/client-10.0.0.1@7/{COPIED_MS}/g.offsets.json"),
        refused(f"snapshots/broker-b-0/{COPIED_MS}/consumerOffset.json", detail_key="T@g"),  # one entry, not the file
        refused(f"snapshots/broker-b-0/{COPIED_MS}/consumerOffset.json", code="late"),  # whole, and not read
        refused(f"snapshots/broker-b-0/{COPIED_MS}/topics.json", line_number=3),
        refused("pull_log.jsonl.gz"),
    )
    assert of_source.keys() == {("broker-a", 0, None), (None, None, "10.0.0.1@7")}
    row = of_source["broker-a", 0, None]
    assert row["summary"] == (
        "2 snapshot files of broker-a-0 were not whole and were ignored (consumerOffset.json, topics.json: empty,"
        " torn)."
    )
    assert ((row["to_ts"] - row["from_ts"]).total_seconds(), row["severity"]) == (5, "info")
    assert row["from_ts"].timestamp() * 1000 == COPIED_MS
    assert row["evidence"][1] == evidence_of(
        "bronze.quarantine", path=f"snapshots/broker-a-0/{COPIED_MS + 5000}/topics.json"
    )
    assert of_source[None, None, "10.0.0.1@7"]["summary"].startswith("1 snapshot file of client-10.0.0.1@7 was not")


def test_a_folder_that_no_time_names_is_no_snapshot():
    assert found(*(refused(f"snapshots/b-0/{ms}/topics.json") for ms in ("9" * 15, "9" * 30, "12", "", "now"))) == {}


def test_a_folder_that_names_no_broker_has_no_broker_id():
    ids = ("99999999999999999999", "x")
    names = {(name, number) for name, number, _ in found(*(refused(f"snapshots/b-{i}/{COPIED_MS}/f") for i in ids))}
    assert names == {("b", None), ("", None)}


def test_no_rows_give_no_findings():
    none = refused_snapshots(rows("bronze.quarantine", {}, []))
    assert {
        "source": pl.String(),
        "ts": pl.Datetime("us", "UTC"),
        "file_name": pl.String(),
    }.items() <= none.schema.items()
    assert snapshot_findings(none, "c").schema == SCHEMA
