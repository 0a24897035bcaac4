"""Of which cluster a recording is, where its brokers.json cannot tell."""

from __future__ import annotations

import shutil

import pytest

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
