"""A quiet minute of real brokers and consumers of 5.3.3, recorded by `mqreplay record`.

Consumers of all six strategies run; one joins and one leaves. The tables of the recording must agree with the Java
clients, and no finding may be a warning.
"""

from __future__ import annotations

import json
import signal
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from cluster.client_classes import STRATEGIES
from cluster.clients import ClientProcess, Consumer, client_processes
from cluster.clusters import CLUSTER, running_cluster
from cluster.owners import Histories, disagreements, epoch_ms, histories
from cluster.recorders import recorder
from cluster.traffic import sending
from mqreplay.settings import load_settings
from tests_shared import rows_at, run

TOPIC = "coins"
SHARES = {room: [(TOPIC, name, i) for i in range(4)] for room, name in (("north", "north@a"), ("south", "south@b"))}
GROUPS = {f"group-{strategy}": strategy for strategy in STRATEGIES}
CHANGE_AFTER_S = 24  # more than the interval between rebalances: the members before the change are judged, too
LAST_MESSAGE_AFTER_S = 56  # each client is asked once more after the change
SETTLE_S = 12  # consumers commit every 5 s, and the first time after 10 s
SETTINGS = """
[strategies.groups."group-CONFIG".queues]
"north-*" = ["coins/north@a/0", "coins/north@a/1", "coins/north@a/2", "coins/north@a/3"]
"south-*" = ["coins/south@b/0", "coins/south@b/1", "coins/south@b/2", "coins/south@b/3"]
[strategies.groups."group-MACHINE_ROOM"]
machine_rooms = ["north", "south"]
[strategies.groups."group-MACHINE_ROOM_NEARBY"]
nearby_strategy = "AVG"
[strategies.groups."group-MACHINE_ROOM_NEARBY".client_rooms]
"north-*" = "north"
"south-*" = "south"
[strategies.groups."group-MACHINE_ROOM_NEARBY".broker_rooms]
"north@a" = "north"
"south@b" = "south"
"""


@dataclass
class Evening:
    """What happened, by the Java clients, and where its recording and tables are."""

    recording: Path
    warehouse: str
    status: int
    output: str
    held: Histories
    joined: str
    joined_ms: int
    left: str
    left_ms: int
    begin_ms: int
    end_ms: int
    offsets: dict[str, dict[tuple[str, int], int]]

    def rows(self, table: str) -> list[dict[str, Any]]:
        """Return a table's rows."""
        return rows_at(self.warehouse, table, CLUSTER)


@pytest.fixture(scope="module")
def evening(tmp_path_factory: pytest.TempPathFactory) -> Evening:
    folder = tmp_path_factory.mktemp("evening")
    recording, warehouse = folder / "recording", str(folder / "warehouse")
    with (
        running_cluster(folder / "cluster", "5.3.3", {"north@a": 1, "south@b": 0}) as cluster,
        client_processes(cluster, "one", "two") as (one, two),
    ):
        one.create_topic(TOPIC, {"north@a": 4, "south@b": 4})
        consumers = [
            _consumer(client, room, strategy)
            for client, room in ((one, "north"), (two, "south"))
            for strategy in STRATEGIES
        ]
        with recorder(cluster.name_servers, recording, "--every", "1s") as running:
            begin_ms, begun = _now_ms(), time.monotonic()
            with sending(one, TOPIC):
                time.sleep(CHANGE_AFTER_S)
                joined_ms = _now_ms()
                joined = two.consumer("group-AVG", {TOPIC: "*"}, client_name="south-2")
                left = next(consumer for consumer in consumers if consumer.group == "group-AVG_BY_CIRCLE")
                left.shutdown()
                left_ms = _now_ms()
                time.sleep(max(0.0, begun + LAST_MESSAGE_AFTER_S - time.monotonic()))
            time.sleep(SETTLE_S)
            end_ms = _now_ms()
            status = running.finish()
        offsets = {group: one.committed_offsets(group, TOPIC) for group in GROUPS}
        held = histories([*consumers, joined])
    conf = folder / "settings.toml"
    conf.write_text(SETTINGS)
    run("nightly", warehouse, load_settings(str(conf)), lambda what: None, recordings=[str(recording)])
    return Evening(
        recording, warehouse, status, running.output(), held, joined.client_id, joined_ms, left.client_id, left_ms,
        begin_ms, end_ms, offsets,
    )  # fmt: skip


def test_the_recorder_ends_in_order(evening: Evening) -> None:
    assert evening.status == 128 + signal.SIGTERM, evening.output
    assert "Traceback" not in evening.output


def test_brokers_are_described(evening: Evening) -> None:
    brokers = json.loads((evening.recording / "brokers.json").read_text())
    assert brokers["cluster"] == CLUSTER
    assert sorted(brokers["brokers"]) == ["north@a-0", "north@a-1", "south@b-0"]
    assert {broker["rocketmq_version"] for broker in brokers["brokers"].values()} == {"5.3.3"}


def test_members_are_those_that_ran(evening: Evening) -> None:
    lists = [row for row in evening.rows("silver.consumer_list") if row["cid_all"] is not None]
    for group, members in evening.held.items():
        rows = sorted((row for row in lists if row["consumer_group"] == group), key=lambda row: row["ts"])
        assert set(rows[-1]["cid_all"]) == set(members) - {evening.left}
        assert {client_id for row in rows for client_id in row["cid_all"]} == set(members)
    first = min(epoch_ms(row["ts"]) for row in lists if evening.joined in row["cid_all"])
    assert evening.joined_ms <= first <= evening.joined_ms + 5000
    last = max(
        epoch_ms(row["ts"])
        for row in lists
        if row["consumer_group"] == "group-AVG_BY_CIRCLE" and evening.left in row["cid_all"]
    )
    assert last <= evening.left_ms


def test_strategies_are_recognised(evening: Evening) -> None:
    found: dict[str, set[str]] = {}
    for row in evening.rows("silver.assignment"):
        if row["error"] is None:
            found.setdefault(row["consumer_group"], set()).add(row["strategy"])
    assert found == {group: {strategy} for group, strategy in GROUPS.items()}


def test_owners_are_those_that_held_the_queues(evening: Evening) -> None:
    rows = evening.rows("gold.queue_owner")
    wrong = disagreements(evening.held, TOPIC, rows, evening.begin_ms + 21_000, evening.end_ms - 2000)
    assert not wrong, f"{len(wrong)} disagreements: {wrong[:5]}"
    assert {row["source"] for row in rows} == {"running_info"}


def test_committed_offsets_are_those_of_the_brokers(evening: Evening) -> None:
    last: dict[tuple[str, str, int], tuple[Any, int]] = {}
    for row in evening.rows("silver.offset_change"):
        if row["topic"] == TOPIC and row["broker_id"] == 0:
            key = row["consumer_group"], row["broker_name"], row["queue_id"]
            last[key] = max(last.get(key, (row["to_ts"], -1)), (row["to_ts"], row["new_offset"]))
    expected = {
        (group, *queue): offset for group, queues in evening.offsets.items() for queue, offset in queues.items()
    }
    assert {key: offset for key, (_, offset) in last.items()} == expected
    assert max(expected.values()) > 10


def test_stable_allocations_agree(evening: Evening) -> None:
    rows = [row for row in evening.rows("gold.allocation") if row["topic"] == TOPIC]
    judgements = {group: Counter(r["judgement"] for r in rows if r["consumer_group"] == group) for group in GROUPS}
    assert all(counts["differ"] == 0 for counts in judgements.values()), judgements
    # Each client is asked every 20 s. On a slow machine few are asked while all they depend on is stable for long.
    assert [group for group in GROUPS if judgements[group]["agree"]], judgements


def test_the_master_reports_its_slave_in_sync(evening: Evening) -> None:
    rows = evening.rows("gold.slave_sync")
    assert {(row["broker_name"], row["connection"]) for row in rows} == {("north@a", 1)}, "south@b has no slave"
    assert {(row["judgement"], row["in_sync"]) for row in rows} == {("agree", True)}
    assert len(rows) > 3
    slaves = [row for row in evening.rows("silver.ha_status") if row["is_master"] is False]
    assert max(row["log_end"] for row in slaves) > 0


def test_a_quiet_evening_has_no_warning(evening: Evening) -> None:
    loud = [(row["kind"], row["summary"]) for row in evening.rows("gold.finding") if row["severity"] != "info"]
    assert not loud


def _consumer(client: ClientProcess, room: str, strategy: str) -> Consumer:
    return client.consumer(
        f"group-{strategy}",
        {TOPIC: "*"},
        client_name=f"{room}-1",
        strategy=strategy,
        queues=SHARES[room],
        rooms=list(SHARES),
    )


def _now_ms() -> int:
    return round(time.time() * 1000)
