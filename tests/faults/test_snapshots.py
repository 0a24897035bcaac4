"""Unusable snapshots go to quarantine, and the rest of the night is judged as without them."""

from __future__ import annotations

import shutil

import pytest

from mqreplay.settings import load_settings
from tests_shared import SAMPLE, rows_at, run, table_at, table_rows

CLUSTER = "grid-cluster"
BROKER = "rmq-north-0"


@pytest.fixture(scope="module")
def spoilt(tmp_path_factory):
    """The small sample's snapshots and pulls, with a torn, an empty, a foreign and an older file put among them."""
    folder = tmp_path_factory.mktemp("spoilt") / "recording"
    folder.mkdir()
    source = SAMPLE / "bulk-5.3.3"
    shutil.copytree(source / "snapshots", folder / "snapshots")
    for name in ("brokers.json", "pull_log.jsonl.gz", "routes.jsonl.gz", "heartbeats.jsonl.gz"):
        shutil.copy(source / name, folder / name)
    broker = folder / "snapshots" / BROKER
    whole = (broker / "1795229405230" / "consumerOffset.json").read_bytes()
    old = (broker / "1795229310204" / "consumerOffset.json").read_bytes()
    for moment, data in {
        "1795229406000": whole[: len(whole) // 2],
        "1795229407000": b"",
        "1795229408000": (broker / "1795229400230" / "topics.json").read_bytes(),
    }.items():
        (broker / moment).mkdir()
        (broker / moment / "consumerOffset.json").write_bytes(data)
    # Beside the torn file lies a .bak of long ago: believing it would look like a rewind.
    (broker / "1795229406000" / "consumerOffset.json.bak").write_bytes(old)
    root = str(folder.parent / "warehouse")
    [outcome] = run("nightly", root, load_settings(), lambda what: None, recordings=[str(folder)])
    return root, outcome


def test_each_is_in_quarantine_with_a_reason_and_a_mend(spoilt):
    root, _ = spoilt
    rows = rows_at(root, "bronze.quarantine")
    assert {(r["path"].split("/")[2], r["code"]) for r in rows} == {
        ("1795229406000", "torn"),
        ("1795229407000", "empty"),
        ("1795229408000", "foreign"),
    }
    assert all(r["reason"] and r["advice"] and r["line_number"] == 0 for r in rows)
    assert table_at(root, "bronze.source_file")["status"].to_list().count("refused") == 3


def test_the_rest_is_judged_as_without_them(spoilt, night):
    root, outcome = spoilt
    for name in ("gold.offset_continuity", "gold.pull_route", "silver.offset_change"):
        assert table_rows(root, name, CLUSTER) == table_rows(night.root, name, CLUSTER)
    assert [f["kind"] for f in outcome.findings if f["kind"] == "torn_snapshot"] == ["torn_snapshot"]
    assert [f for f in outcome.findings if "offset" in str(f["kind"])] == []
    assert outcome.failed_expectations == []


def test_what_is_missing_is_said(spoilt):
    root, outcome = spoilt
    assert outcome.judgements["gold.slave_suggestion"].get("differ", 0) == 0
    missing = {gap["evidence"] for gap in rows_at(root, "gold.replay_gap") if gap["decisions"] == 0}
    assert {"broker_runtime", "rebalance_log", "offset_commits"} <= missing
