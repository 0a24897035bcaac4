"""What-if against real clusters: no more is delivered again than was predicted for the loss of a master.

Three groups consume when the master is killed: `keepers` go on, members of `leavers` were stopped in order just before,
and those of `losers` are killed with it. The latter two start again and resume from what the slave knows.
"""

from __future__ import annotations

import datetime as dt
import re
import time
from collections import Counter
from dataclasses import dataclass

import pytest

from cluster.clients import ClientProcess, Consumer, client_processes, wait_until
from cluster.clusters import CLUSTER, Cluster, running_cluster
from cluster.night_recordings import captured, import_parts, physical_memory
from cluster.recorders import recorder
from cluster.traffic import sending
from mqreplay.lake.warehouse import Warehouse
from mqreplay.moment.instant import recorded
from mqreplay.settings import load_settings
from mqreplay.suppose.instants import LostMaster, lost_master
from tests_shared import run

TOPIC, BROKER = "coins", "die-a"
QUEUES = 4
KEEPERS, LEAVERS, LOSERS = "keepers", "leavers", "losers"
AFTER_COPY_S = 5  # consumed since the slave fetched the offsets: this is delivered again
POLLED_S = 2.5  # until the recorder knows the last commits; 4.9 fetches offsets again after 10 s
RESUME_S = 75  # clients ask for routes every 30 s


@dataclass(frozen=True)
class Loss:
    """What was predicted for the instant of the loss, and the deliveries of messages that the group had consumed."""

    predicted: LostMaster
    again: dict[str, int]


@pytest.fixture(scope="module", params=["4.9.7", "5.3.3"])
def loss(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Loss:
    folder = tmp_path_factory.mktemp("loss")
    kept = folder / "kept"
    kept.mkdir()
    with (
        running_cluster(folder / "cluster", request.param, {BROKER: 1}) as cluster,
        client_processes(cluster, "stays", "dies", "later") as (stays, dies, later),
    ):
        stays.create_topic(TOPIC, {BROKER: QUEUES})
        with captured(cluster, kept):
            members = {group: _member(stays, group) for group in (KEEPERS, LEAVERS)} | {LOSERS: _member(dies, LOSERS)}
            network = [cluster.name_servers, kept / "network", "--every", "1s", "--physical-memory", physical_memory()]
            with recorder(*network) as running, sending(stays, TOPIC):
                wait_until(lambda: _copied(cluster, members), "the slave has offsets of all groups", patience_s=120)
                time.sleep(AFTER_COPY_S)
                members[LEAVERS].shutdown()
                time.sleep(POLLED_S)
                lost_at = dt.datetime.now(dt.UTC)
                cluster.kill(f"{BROKER}-0")
                consumed = {group: Counter(member.keys()) for group, member in members.items()}
                dies.kill()
                running.finish()
        again = members | {group: _member(later, group) for group in (LEAVERS, LOSERS)}
        _until_quiet(again)
        after = {group: Counter(member.keys()) for group, member in again.items()}
    after[KEEPERS] -= consumed[KEEPERS]
    import_parts(kept, folder / "recording", "network", "night.pcap")
    warehouse = str(folder / "warehouse")
    run("nightly", warehouse, load_settings(), lambda what: None, recordings=[str(folder / "recording")])
    predicted = lost_master(recorded(Warehouse(warehouse), CLUSTER), BROKER, lost_at)
    twice = {group: sum(n for key, n in keys.items() if key in consumed[group]) for group, keys in after.items()}
    return Loss(predicted, twice)


def _member(client: ClientProcess, group: str) -> Consumer:
    return client.consumer(group, {TOPIC: "*"})


def _copied(cluster: Cluster, groups: dict[str, Consumer]) -> bool:
    """Return whether the slave keeps an offset above 0 of each queue and group."""
    path = cluster.servers[f"{BROKER}-1"].home / "store" / "config" / "consumerOffset.json"
    text = path.read_text() if path.exists() else ""
    found = [re.search(rf'"{TOPIC}@{group}":\s*\{{([^}}]*)\}}', text) for group in groups]
    offsets = [re.findall(r":\s*(\d+)", each[1]) if each else [] for each in found]
    return all(len(each) == QUEUES and "0" not in each for each in offsets)


def _until_quiet(members: dict[str, Consumer]) -> None:
    """Wait until each member has consumed from the slave, and nothing more arrives."""
    time.sleep(RESUME_S)
    counted = {group: len(member.keys()) for group, member in members.items()}
    time.sleep(5)
    assert counted == {group: len(member.keys()) for group, member in members.items()}


@pytest.mark.long
@pytest.mark.parametrize("group", [KEEPERS, LEAVERS, LOSERS])
def test_no_more_is_delivered_again_than_predicted(loss: Loss, group: str) -> None:
    files, at_most = loss.predicted.redelivered, loss.predicted.redelivered_max
    assert files is not None
    assert at_most is not None
    print(f"{group}: {loss.again[group]} delivered again, predicted {files.get(group)}, at most {at_most.get(group)}")
    if group == LEAVERS:  # all that its members consumed is in the master's file
        assert loss.again[group] <= files.get(group, 0)
    assert loss.again[group] <= at_most.get(group, 0)


@pytest.mark.long
def test_the_loss_delivers_something_again(loss: Loss) -> None:
    assert loss.predicted.slaves == [1]
    assert loss.again[LEAVERS] > 0
    assert loss.again[LOSERS] > 0
