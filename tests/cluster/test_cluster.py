"""The harness itself: a message sent is consumed, and its offset committed."""

from __future__ import annotations

from pathlib import Path

import pytest

from cluster.clients import client_processes, wait_until
from cluster.clusters import running_cluster


@pytest.mark.long  # test_record.py needs the same of 5.3.3
@pytest.mark.parametrize("version", ["5.3.3", "4.9.7"])
def test_a_message_is_consumed_and_its_offset_committed(tmp_path: Path, version: str) -> None:
    with running_cluster(tmp_path, version, {"die-1": 0}) as cluster, client_processes(cluster, "one") as (client,):
        client.create_topic("coins", {"die-1": 2})
        consumer = client.consumer("counters", {"coins": "*"})
        for number in range(10):
            client.send("coins", f"coin-{number}")
        wait_until(lambda: len(consumer.keys()) == 10, "ten messages are consumed")
        assert {queue for queue in consumer.held_queues() if queue[0] == "coins"} == {
            ("coins", "die-1", 0),
            ("coins", "die-1", 1),
        }
        wait_until(lambda: sum(client.committed_offsets("counters", "coins").values()) == 10, "offsets are committed")
