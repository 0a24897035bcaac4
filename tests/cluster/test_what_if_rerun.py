"""What-if against real clusters: what was predicted from a recording is what the cluster does with the setting.

Members have other client ids after a restart, so owners are compared by their place in the group's list, which is
sorted by client id (RebalanceImpl#rebalanceByTopic).
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import pytest

from cluster.clients import ClientProcess, Consumer, client_processes, wait_until
from cluster.clusters import CLUSTER, running_cluster
from cluster.recorders import recorder
from cluster.traffic import sending
from mqreplay.decisions.suppositions import GroupConsumers, GroupStrategy, Supposition, TopicQueues
from mqreplay.engines.local import LocalEngine
from mqreplay.lake.scratch import scratch
from mqreplay.lake.warehouse import Warehouse
from mqreplay.moment.instant import recorded
from mqreplay.settings import load_settings
from mqreplay.suppose.what_if import predict
from tests_shared import run

TOPIC, GROUP = "coins", "watchers"
RECORDED_S = 80  # running info is asked each 20 s, and counts from a minute after the topic is first seen
QUEUES = {"die-a": 4, "die-b": 3}
MORE_QUEUES = 6
Places = dict[tuple[str, int], set[int]]  # (broker, queue id) -> places of its owners in the list of members
CASES: dict[str, list[Supposition]] = {
    "strategy": [GroupStrategy(GROUP, "AVG_BY_CIRCLE")],
    "one member more": [GroupStrategy(GROUP, "AVG_BY_CIRCLE"), GroupConsumers(GROUP, 1)],
    "more queues": [GroupStrategy(GROUP, "AVG_BY_CIRCLE"), GroupConsumers(GROUP, 1), TopicQueues(TOPIC, MORE_QUEUES)],
}


@dataclass(frozen=True)
class Rerun:
    """The warehouse of the recording, and what clients held in each case of CASES."""

    warehouse: str
    held: dict[str, Places]


@pytest.fixture(scope="module", params=["4.9.7", "5.3.3"])
def rerun(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Rerun:
    folder = tmp_path_factory.mktemp("rerun")
    held: dict[str, Places] = {}
    with (
        running_cluster(folder / "cluster", request.param, dict.fromkeys(QUEUES, 0)) as cluster,
        client_processes(cluster, "one", "two") as clients,
    ):
        clients[0].create_topic(TOPIC, QUEUES)
        members = [_member(client, number, "AVG") for number, client in enumerate(clients, 1)]
        with recorder(cluster.name_servers, folder / "recording", "--every", "1s") as running:
            with sending(clients[0], TOPIC):
                time.sleep(RECORDED_S)
            running.finish()
        for member in members:
            member.shutdown()
        members = [_member(client, number, "AVG_BY_CIRCLE") for number, client in enumerate(clients, 1)]
        held["strategy"] = _settled(members, sum(QUEUES.values()))
        members.append(_member(clients[0], 3, "AVG_BY_CIRCLE"))
        held["one member more"] = _settled(members, sum(QUEUES.values()))
        clients[0].create_topic(TOPIC, dict.fromkeys(QUEUES, MORE_QUEUES))
        held["more queues"] = _settled(members, MORE_QUEUES * len(QUEUES))
    warehouse = str(folder / "warehouse")
    run("nightly", warehouse, load_settings(), lambda what: None, recordings=[str(folder / "recording")])
    return Rerun(warehouse, held)


def _member(client: ClientProcess, number: int, strategy: str) -> Consumer:
    """Start a consumer. A new member sorts last: its name is the last one."""
    return client.consumer(GROUP, {TOPIC: "*"}, client_name=f"10.97.0.{number}", strategy=strategy)


def _settled(members: list[Consumer], queues: int) -> Places:
    """Wait until the members hold all queues, each one client's, and nothing moves; return who holds which."""

    def places() -> Places:
        found: Places = {}
        for place, member in enumerate(sorted(members, key=lambda each: each.client_id)):
            for topic, broker_name, queue_id in member.held_queues():
                if topic == TOPIC:
                    found.setdefault((broker_name, queue_id), set()).add(place)
        return found

    def settled() -> bool:
        now = places()
        return len(now) == queues and all(len(each) == 1 for each in now.values())

    wait_until(settled, "members hold each queue once", patience_s=120)
    time.sleep(25)  # another rebalance
    assert settled()
    return places()


@pytest.mark.long
@pytest.mark.parametrize("case", CASES)
def test_a_predicted_allocation_is_that_of_the_cluster(rerun: Rerun, case: str) -> None:
    night = recorded(Warehouse(rerun.warehouse), CLUSTER)
    with LocalEngine(scratch().folder, 1) as engine:
        found = predict(night.warehouse, engine, CLUSTER, night.judged_days()[-1], load_settings(), CASES[case])
    (lists,) = found.lists.filter(topic=TOPIC).to_dicts()
    order = {client_id: place for place, client_id in enumerate(sorted(lists["cid_all_last"]))}
    owners = found.owners.filter(topic=TOPIC).to_dicts()
    predicted = {
        (row["broker_name"], row["queue_id"]): {order[client] for client in row["after_last"]} for row in owners
    }
    assert predicted == rerun.held[case]
