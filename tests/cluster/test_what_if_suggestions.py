"""What-if against real clusters: brokers with another setting suggest what was predicted for the same reads.

A log of small messages and of large ones that nobody reads lies in a broker and its slave. A group reads the small ones
one by one, in each night from the first one, with another setting of both brokers. So the same message is read at the
same distance from the end of the log, and its answer can be compared.
"""

from __future__ import annotations

import shutil
import time
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl
import pytest

from cluster.clients import LARGE_BYTES, ClientProcess, client_processes, wait_until
from cluster.clusters import CLUSTER, Cluster, running_cluster
from cluster.night_recordings import captured, import_parts, physical_memory
from cluster.recorders import recorder
from mqreplay.core.topic_route import MASTER_ID
from mqreplay.decisions.slave_suggestion import FOUND
from mqreplay.decisions.supposed_suggestions import supposed_answers
from mqreplay.decisions.suppositions import RATIO, SLAVE_READ, BrokerSetting
from mqreplay.engines.local import LocalEngine
from mqreplay.lake.row_filter import RowFilter
from mqreplay.lake.scratch import scratch
from mqreplay.lake.warehouse import Warehouse
from mqreplay.moment.instant import recorded
from mqreplay.settings import load_settings
from mqreplay.suppose.what_if import predict
from tests_shared import run

TOPIC, BALLAST, GROUP, BROKER = "coins", "ballast", "watchers", "die-a"
QUEUES = 4
DISTANCE = 2.4  # of the first message from the end of the log, in percent of the memory
NIGHTS = {
    "ratio 1": BrokerSetting(RATIO, "1", BROKER),
    "ratio 2": BrokerSetting(RATIO, "2", BROKER),
    "ratio 3": BrokerSetting(RATIO, "3", BROKER),
    "no reads from slaves": BrokerSetting(SLAVE_READ, "false", BROKER),
}
CASES = [("ratio 1", other) for other in NIGHTS if other != "ratio 1"] + [
    ("ratio 3", "ratio 1"),
    ("ratio 3", "ratio 2"),
]


@dataclass(frozen=True)
class Nights:
    """The warehouses of the nights, by name."""

    version: str
    messages: int
    warehouses: dict[str, Warehouse] = field(default_factory=dict)


@pytest.fixture(scope="module", params=["4.9.7", "5.3.3"])
def nights(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Nights:
    folder = tmp_path_factory.mktemp("suggestions")
    with (
        running_cluster(folder / "cluster", request.param, {BROKER: 1}) as cluster,
        client_processes(cluster, "one") as (one,),
    ):
        one.create_topic(TOPIC, {BROKER: QUEUES})
        one.create_topic(BALLAST, {BROKER: 1})
        member = one.consumer(GROUP, {TOPIC: "*"})  # its heartbeats create the group
        wait_until(lambda: len(member.held_queues()) >= QUEUES, "the group has the queues of its topic")
        assert one.send_large(BALLAST) == "SEND_OK"
        _until_in_sync(cluster, one)  # a slave that connects later gets the last file of the log only (HAConnection)
        keys = _fill(cluster, one)
        member.shutdown()
        found = Nights(request.param, len(keys))
        for number, (name, setting) in enumerate(NIGHTS.items()):
            kept = folder / f"night-{number}"
            kept.mkdir()
            _restart(cluster, one, setting)
            _until_in_sync(cluster, one)
            _record_readers(cluster, one, kept, keys)
            found.warehouses[name] = Warehouse(str(kept / "warehouse"))
    shutil.rmtree(folder / "cluster")  # large logs
    for number, warehouse in enumerate(found.warehouses.values()):
        kept = folder / f"night-{number}"
        import_parts(kept, kept / "recording", "network", "night.pcap")
        run("nightly", warehouse.root, load_settings(), lambda what: None, recordings=[str(kept / "recording")])
    return found


def _fill(cluster: Cluster, client: ClientProcess) -> set[str]:
    """Send messages until the first one is far enough from the end of the log; return their keys."""
    rounds = int(DISTANCE / 100 * int(physical_memory()) / LARGE_BYTES)
    keys = set()
    for number in range(rounds):
        for queue_id in range(QUEUES):
            key = f"{number}/{queue_id}"
            assert client.send(TOPIC, key, queue=(TOPIC, BROKER, queue_id)) == "SEND_OK"
            keys.add(key)
        assert client.send_large(BALLAST) == "SEND_OK"
    _until_in_sync(cluster, client)
    return keys


def _until_in_sync(cluster: Cluster, client: ClientProcess) -> None:
    master, slave = (cluster.servers[f"{BROKER}-{broker_id}"].address for broker_id in (0, 1))
    wait_until(lambda: client.routed_ids(TOPIC, BROKER) == {0, 1}, "both brokers are registered")
    wait_until(lambda: None is not client.log_end(slave) == client.log_end(master), "the slave has the log")


def _restart(cluster: Cluster, client: ClientProcess, setting: BrokerSetting) -> None:
    """Start the brokers with a setting and without the offsets of the night before."""
    settings = {RATIO: "1", SLAVE_READ: "true"} | {setting.name: setting.value}
    for broker_id in (1, 0):
        name = f"{BROKER}-{broker_id}"
        cluster.stop_in_order(name)
        cluster.configure(name, **settings)
        for path in (cluster.servers[name].home / "store" / "config").glob("consumerOffset.json*"):
            path.unlink()
    # 5.x unregisters later than it answers, and so a broker that is already back (BatchUnregistrationService).
    wait_until(lambda: not client.routed_ids(TOPIC, BROKER), "both brokers are unregistered")
    for broker_id in (0, 1):
        cluster.start(f"{BROKER}-{broker_id}")


def _record_readers(cluster: Cluster, client: ClientProcess, kept: Path, keys: set[str]) -> None:
    """Record the network while the group reads all messages."""
    network = [cluster.name_servers, kept / "network", "--every", "1s", "--physical-memory", physical_memory()]
    with captured(cluster, kept), recorder(*network) as running:
        time.sleep(3)  # the recorder has asked for the ends of the logs
        member = client.consumer(GROUP, {TOPIC: "*"}, settings={"PullBatchSize": 1})
        wait_until(lambda: keys <= set(member.keys()), "all messages are read")
        time.sleep(3)
        member.shutdown()
        time.sleep(2)
        running.finish()


def _answers(warehouse: Warehouse, *suppositions: BrokerSetting) -> pl.DataFrame:
    """Return what was suggested to readers of a message, and what would be."""
    names = ("pull", "consume", "produce", "broker", "subscription_group", "broker_runtime")
    pull, *others = (warehouse.read(f"silver.{name}", RowFilter(CLUSTER)).collect() for name in names)
    asked = pull.filter(topic=TOPIC)
    found = supposed_answers(asked, *others, load_settings().replay.poll_slack_ms, (), suppositions)
    offsets = asked.filter(response_code=FOUND).select("record_id", "queue_offset")
    return found.join(offsets, "record_id").with_columns((pl.col("recorded_suggest") != MASTER_ID).alias("came"))


@pytest.mark.long
@pytest.mark.parametrize(("before", "after"), CASES)
def test_suggestions_lie_within_the_predicted_bounds(nights: Nights, before: str, after: str) -> None:
    message = ["queue_id", "queue_offset"]
    predicted = _answers(nights.warehouses[before], NIGHTS[after]).group_by(message)
    bounds = predicted.agg(least=pl.min("to_slave_min"), most=pl.max("to_slave_max"), was=pl.max("came"))
    came = _answers(nights.warehouses[after]).select(*message, "came")
    answers = came.join(bounds, message, how="left", coalesce=True)
    is_open = answers["least"] != answers["most"]
    wrong = answers.filter((pl.col("came") < pl.col("least")) | (pl.col("came") > pl.col("most")))
    other = answers.filter(pl.col("came") != pl.col("was"))
    print(
        f"{nights.version}, {before} to {after}: {len(answers)} suggestions, {len(wrong)} outside of the bounds, "
        f"{is_open.sum()} undetermined; {answers['came'].sum()} to the slave, {len(other)} other than before"
    )
    assert len(answers) >= nights.messages
    assert answers["least"].null_count() == 0
    assert wrong.is_empty(), wrong
    assert is_open.sum() <= 0.05 * len(answers)


@pytest.mark.long
@pytest.mark.parametrize(("before", "after"), CASES)
def test_counts_lie_within_the_predicted_bounds(nights: Nights, before: str, after: str) -> None:
    night = recorded(nights.warehouses[before], CLUSTER)
    with LocalEngine(scratch().folder, 1) as engine:
        found = predict(night.warehouse, engine, CLUSTER, night.judged_days()[-1], load_settings(), [NIGHTS[after]])
    (row,) = found.pulls.filter(consumer_group=GROUP, topic=TOPIC).to_dicts()
    assert row["to_slave_min"] <= _answers(nights.warehouses[after])["came"].sum() <= row["to_slave_max"]


@pytest.mark.long
def test_the_nights_differ(nights: Nights) -> None:
    came = {name: int(_answers(warehouse)["came"].sum()) for name, warehouse in nights.warehouses.items()}
    assert came["ratio 1"] >= came["ratio 2"] > 0
    assert came["ratio 3"] == came["no reads from slaves"] == 0
