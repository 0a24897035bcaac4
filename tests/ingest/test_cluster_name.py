"""The cluster of a recording without a name in brokers.json."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from mqreplay.ingest.brokers import cluster_name
from mqreplay.ingest.listing import find_recordings
from mqreplay.settings import load_settings
from night.cut import cut
from tests_shared import SAMPLE, run, table_at

BULK = SAMPLE / "bulk-5.3.3"


@pytest.fixture
def clusters(tmp_path):
    """clusters(recording): those of the warehouse's files, after the recording was ingested."""

    def after(recording) -> set[str]:
        run("ingest", str(tmp_path / "warehouse"), load_settings(), lambda what: None, recordings=[str(recording)])
        return set(table_at(tmp_path / "warehouse", "bronze.source_file")["cluster"])

    return after


def test_a_torn_brokers_file_leaves_the_night_with_its_cluster(clusters, tmp_path) -> None:
    recording = cut(BULK, tmp_path / "recording", every=9, kinds=("heartbeats",))
    brokers = recording / "brokers.json"
    shutil.copy(BULK / "brokers.json", brokers)
    [name] = clusters(recording)
    assert name != "DefaultCluster"
    brokers.write_bytes(brokers.read_bytes()[:-300])
    assert clusters(recording) == {name}


def test_a_first_night_with_a_torn_brokers_file_is_of_the_default_cluster(clusters, tmp_path) -> None:
    recording = cut(BULK, tmp_path / "recording", every=9, kinds=("heartbeats",))
    (recording / "brokers.json").write_text("{")
    assert clusters(recording) == {"DefaultCluster"}


def named(folder: Path, answers: list[list[str]], known: list[tuple[str, str]] | None = None) -> tuple[str, list[str]]:
    """The name of the recording's cluster, and what was said. Each answer of a name server lists clusters."""
    bodies = [{"brokerAddrTable": {}, "clusterAddrTable": {name: ["b"] for name in names}} for names in answers]
    lines = [json.dumps({"ts": 1_795_228_795_108, "namesrv_addr": "n:1", "body": json.dumps(body)}) for body in bodies]
    (folder / "cluster_info.jsonl").write_text("\n".join(["{torn", *lines, ""]))
    said: list[str] = []
    (files,) = find_recordings([str(folder)]).values()
    return cluster_name(str(folder), [file for file, _ in files], known or [], said.append), said


def test_name_servers_name_the_cluster_where_no_brokers_file_does(tmp_path: Path) -> None:
    assert named(tmp_path, [[], ["orders"], ["orders"]]) == ("orders", [])
    name, (said,) = named(tmp_path, [["orders", "pay"]])
    assert name == "DefaultCluster"
    assert "names several clusters (orders, pay); taking DefaultCluster" in said
    name, (said,) = named(tmp_path, [])
    assert (name, "does not name its cluster" in said) == ("DefaultCluster", True)


def test_the_brokers_file_wins_and_a_conflict_is_said_once(tmp_path: Path) -> None:
    (tmp_path / "brokers.json").write_text('{"cluster": "mine", "brokers": {}}')
    name, (said,) = named(tmp_path, [["orders"]])
    assert name == "mine"
    assert "brokers.json names cluster mine, name servers name orders; taking mine" in said
    assert named(tmp_path, [["orders"]], [("mine", str(tmp_path))]) == ("mine", [])
    assert named(tmp_path, [["mine"]]) == ("mine", [])
