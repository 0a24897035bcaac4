"""A night on which a consumer, a broker and a name server are killed and offsets are reset, recorded and judged."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from cluster.clients import client_processes
from cluster.clusters import CLUSTER, running_cluster
from cluster.recorders import recorder
from cluster.traffic import sending
from mqreplay.settings import load_settings
from tests_shared import rows_at, run

pytestmark = pytest.mark.long


@pytest.mark.parametrize("version", ["5.3.3", "4.9.7"])
def test_faults_are_found(tmp_path: Path, version: str) -> None:
    recording, warehouse = tmp_path / "recording", str(tmp_path / "warehouse")
    with (
        running_cluster(tmp_path / "cluster", version, {"die-1": 1, "die-2": 0}, name_servers=2) as cluster,
        client_processes(cluster, "one", "two") as (one, two),
    ):
        one.create_topic("coins", {"die-1": 4, "die-2": 4})
        one.consumer("counters", {"coins": "*"})
        lost = two.consumer("counters", {"coins": "*"})
        with recorder(cluster.name_servers, recording, "--every", "1s") as running:
            with sending(one, "coins"):
                time.sleep(45)
                reset_to = round(time.time() * 1000) - 30_000
                one.reset_offsets("coins", "counters", reset_to)
                time.sleep(30)
                two.kill()
                time.sleep(30)
                cluster.kill("die-2-0")
                time.sleep(40)
                cluster.start("die-2-0")
                time.sleep(30)
                cluster.kill("namesrv-2")
                time.sleep(20)
            dead = cluster.servers["namesrv-2"].address
            running.finish()
    run("nightly", warehouse, load_settings(), lambda what: None, recordings=[str(recording)])
    findings = rows_at(warehouse, "gold.finding", CLUSTER)
    found = {row["kind"] for row in findings}
    assert {"broker_down", "consumer_lost"} <= found
    assert found & {"offset_reset", "offset_rewind"}
    assert {row["broker_name"] for row in findings if row["kind"] == "broker_down"} == {"die-2"}
    assert lost.client_id in {row["client_id"] for row in findings if row["kind"] == "consumer_lost"}
    answers = [line for line in running.lines("cluster_info") if line["namesrv_addr"] == dead]
    assert answers[-1].get("error")
    assert "Traceback" not in running.output()
