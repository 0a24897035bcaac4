"""Servers that answer what no RocketMQ answers: the recording goes on, and the server gets no more than its budget."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from bench.simulated_cluster import Answered, SimulatedCluster
from mqreplay.recorder.network import recorder as recorder_module
from mqreplay.recorder.network.answers import Brokers, read_brokers, read_max_offsets, read_route
from mqreplay.recorder.network.bounded import read_bounded
from mqreplay.recorder.network.offsets import OffsetReader
from mqreplay.recorder.network.options import RecordOptions
from mqreplay.recorder.network.polls import POLLS
from mqreplay.recorder.network.record_command import _record
from mqreplay.recorder.network.topology import Broker, Topology
from mqreplay.recorder.remoting.connection import Connections
from mqreplay.recorder.remoting.pace import Pace
from mqreplay.recorder.remoting.requests import ReadCode, Request
from mqreplay.words.errors import DecodeError, InputError, RecordingFull
from recorder.network.recorder_run import begun_and_ended, events, lines, offset_lines, record

ROGUE = {
    "a queue id of 5,000 digits": (43, b'{"offsetTable":{"t-0@g-0":{%s:1}}}' % (b"9" * 5000)),
    "a queue id of 64 bits": (43, b'{"offsetTable":{"t-0@g-0":{4294967296:1}}}'),
    "an offset of 80 bits": (43, b'{"offsetTable":{"t-0@g-0":{0:9999999999999999999999}}}'),
    "a route with mixed keys": (
        105,
        b'{"brokerDatas":[{"brokerAddrs":{0:"h:1","a":"b"},"brokerName":"b"}],"queueDatas":[]}',
    ),
    "half a surrogate pair in a name": (201, b'{"subscriptionGroupTable":{"g\\ud800":{}}}'),
    "half a surrogate pair in a member": (38, b'{"consumerIdList":["c\\udfff@1"]}'),
    "a number of 5,000 digits": (21, b'{"topicConfigTable":{"t-0":{"readQueueNums":%s}}}' % (b"9" * 5000)),
    "deep nesting": (203, b"[" * 100_000),
    "an endless number": (28, b'{"table":{"a":1e999}}'),
    "an object as key": (203, b'{"connectionSet":[],"subscriptionTable":{{"a":1}:{}}}'),
}


@pytest.mark.parametrize("name", ROGUE)
def test_a_rogue_answer_does_not_end_the_recording(tmp_path: Path, name: str) -> None:
    code, body = ROGUE[name]
    cluster = SimulatedCluster(masters=1, groups=1, clients=1)
    cluster.given[code] = Answered(body)
    record(tmp_path, cluster, for_s=1.5)
    assert begun_and_ended(tmp_path) == ["start", "stop"]
    assert code == 28 or lines(tmp_path, "broker_runtime")[-1]["table"] is not None
    assert code == 43 or offset_lines(tmp_path, "b-0-0")


def test_a_bad_name_in_the_cluster_list_hides_no_broker() -> None:
    listed = rb'{"brokerAddrTable":{"b":{"brokerAddrs":{"0":"h:1"},"cluster":"C"},"\ud800":{"brokerAddrs":{}}}}'
    assert read_brokers(listed).addrs["b", 0] == ("C", "h:1")
    json.dumps(sorted(read_brokers(listed).addrs), ensure_ascii=False).encode()


def test_a_fault_of_one_poll_is_counted_and_the_others_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reading = recorder_module.reading

    def may_fail(target: Any, answer: Any) -> Any:
        if target.kind == "members":
            raise TypeError("'<' not supported between instances of 'int' and 'str'")
        return reading(target, answer)

    monkeypatch.setattr(recorder_module, "reading", may_fail)
    output = record(tmp_path, SimulatedCluster(masters=1, groups=1, clients=1), for_s=2.0)
    (line,) = [each for each in output if "cannot be processed" in each]
    assert "GET_CONSUMER_LIST_BY_GROUP: the answer cannot be processed: TypeError" in line
    (counted,) = [each for each in events(tmp_path, "skipped") if "TypeError" in each["detail"]]
    assert counted["request"] == "GET_CONSUMER_LIST_BY_GROUP"
    assert counted["count"] >= 1
    assert len(lines(tmp_path, "broker_runtime")) > 5


@pytest.mark.parametrize("error", [RecordingFull("/r", "full", at_bound=True), OSError(5, "disk error")])
def test_an_error_of_our_own_disk_ends_the_recording(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def fail(*_: Any) -> None:
        raise error

    monkeypatch.setattr(recorder_module.PollWriter, "take_snapshot", fail)
    with pytest.raises(type(error)):
        record(tmp_path, SimulatedCluster(masters=1, groups=1, clients=1))


@pytest.mark.first_case
@pytest.mark.parametrize("queues", [2**31 - 1, 1024, 64])
def test_no_number_of_queues_exceeds_the_budget(tmp_path: Path, queues: int) -> None:
    cluster = SimulatedCluster(masters=1, groups=1, clients=1, moving=0.0)
    config = {"t-0": {"readQueueNums": queues, "writeQueueNums": queues}}
    cluster.given[21] = Answered(json.dumps({"topicConfigTable": config}).encode())
    record(tmp_path, cluster, requests_per_second=20, every_s=1.0, for_s=4.0)
    broker = cluster.brokers[0]
    times = sorted(when for when, _, _ in broker.requests)
    assert len(times) <= 20 * (times[-1] - times[0]) + 5
    assert (broker.asked[30] > 0) == (queues <= 64)
    assert (broker.asked[202] > 0) == (queues > 64)
    # Urgent polls wait for no others.
    assert len(lines(tmp_path, "broker_runtime")) >= 3


def test_urgent_requests_take_the_next_token() -> None:
    async def run() -> list[str]:
        pace, order = Pace(20, time.monotonic), list[str]()

        async def ask(name: str, urgent: bool) -> None:
            await pace.take(urgent)
            order.append(name)

        while pace.try_take():
            pass
        usual = [asyncio.create_task(ask(f"usual {n}", False)) for n in range(5)]
        await asyncio.sleep(0.02)
        await asyncio.gather(asyncio.create_task(ask("urgent", True)), *usual)
        return order

    order = asyncio.run(run())
    assert order.index("urgent") <= 1
    assert [each for each in order if each != "urgent"] == [f"usual {n}" for n in range(5)]


def test_the_budget_is_kept_where_requests_are_sent() -> None:
    async def run() -> float:
        cluster = SimulatedCluster(masters=1)
        await cluster.start()
        connections, began = Connections(requests_per_second=50), time.monotonic()
        addr, asked = cluster.brokers[0].addr, Request(ReadCode.GET_BROKER_RUNTIME_INFO)
        await asyncio.gather(*(connections.call(addr, asked, 5, True) for _ in range(60)))
        taken = time.monotonic() - began
        await connections.close()
        await cluster.stop()
        return taken

    assert asyncio.run(run()) >= (60 - 10) / 50


def test_bounded_values() -> None:
    assert read_bounded(b'{1:{"a":[1.5,null,true]}}') == {"1": {"a": [1.5, None, True]}}
    for body in (b'{"a":1,1:2,"1":3}', b'{"a":%s}' % (b"9" * 25), b'{{"a":1}:2}', b'{"a":NaN}', b"[" * 5000):
        with pytest.raises(DecodeError):
            read_bounded(body)
    with pytest.raises(DecodeError):
        read_max_offsets(b'{"offsetTable":{{"queueId":-1,"topic":"t"}:{"maxOffset":1}}}')
    with pytest.raises(DecodeError):
        OffsetReader().read(b'{"offsetTable":{"t@g":{0:9300000000000000000}}}')
    assert isinstance(hash(read_route(ROGUE["a route with mixed keys"][1])), int)


def test_a_replica_that_becomes_master_is_polled_under_its_new_id_at_once() -> None:
    topology = Topology("C")
    before = {("b", 0): ("C", "h:1"), ("b", 1): ("C", "h:2"), ("b", 2): ("C", "h:3")}
    topology.update("ns:1", Brokers(("C",), before), 0)
    topology.update("ns:2", Brokers(("C",), before), 0)
    elected = {("b", 0): ("C", "h:2"), ("b", 2): ("C", "h:3")}
    assert topology.update("ns:1", Brokers(("C",), elected), 1000)
    # The other name server still lists the old ids: both are polled until it agrees.
    assert {each.key for each in topology.brokers(1000)} == {("b", 0), ("b", 1), ("b", 2)}
    assert topology.update("ns:2", Brokers(("C",), elected), 2000)
    assert topology.brokers(2000) == [Broker(("b", 0), "h:2", True), Broker(("b", 2), "h:3", True)]
    # The old master comes back as a replica.
    back = elected | {("b", 3): ("C", "h:1")}
    topology.update("ns:1", Brokers(("C",), back), 3000)
    assert Broker(("b", 3), "h:1", True) in topology.brokers(3000)


def ask_name_servers_each(period_ms: int, monkeypatch: pytest.MonkeyPatch) -> None:
    poll = POLLS["cluster_info"]
    changed = dataclasses.replace(poll, plan=poll.plan._replace(period_ms=period_ms))
    monkeypatch.setattr("mqreplay.recorder.network.targets.POLLS", {**POLLS, "cluster_info": changed})


def test_an_election_is_recorded_under_the_new_id(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ask_name_servers_each(1000, monkeypatch)

    async def script(cluster: SimulatedCluster) -> None:
        await asyncio.sleep(1)
        master, replica = cluster.broker("b-0", 0), cluster.broker("b-0", 1)
        await master.kill()
        cluster.left.add(master)
        replica.broker_id = 0

    cluster = SimulatedCluster(masters=1, groups=1, clients=1, slaves=1, name_servers=1)
    replica = cluster.broker("b-0", 1)
    record(tmp_path, cluster, script, for_s=5.0, every_s=0.5)
    answered = [each for each in lines(tmp_path, "broker_runtime") if each["table"]]
    after = [each for each in answered if each["broker_id"] == 0 and each["broker_addr"] == replica.addr]
    assert after, "polled under its new id"
    assert max(each["ts"] for each in answered if each["broker_id"] == 1) <= after[0]["ts"] + 600


def test_record_waits_for_a_cluster_that_is_not_up_yet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mqreplay.recorder.network.record_command.RETRY_S", 0.3)

    async def script(cluster: SimulatedCluster) -> None:
        for each in cluster.name_servers:
            await each.kill()
        await asyncio.sleep(1)
        for each in cluster.name_servers:
            await each.start()

    output = record(tmp_path, SimulatedCluster(masters=1, groups=1, clients=1), script, for_s=4.0)
    assert output[0].startswith("no name server answers")
    assert "waiting for the cluster; the name servers are asked every 0.3 s" in output
    assert "cluster simulated: 1 broker" in output
    (waiting,) = events(tmp_path, "waiting")
    assert waiting["detail"].startswith("no name server answers")
    assert begun_and_ended(tmp_path) == ["waiting", "start", "stop"]
    assert lines(tmp_path, "broker_runtime")[-1]["table"] is not None


def test_dead_brokers_in_the_list_cost_the_living_one_nothing(tmp_path: Path) -> None:
    """Name servers may list any number of brokers: each state has a few lines, and the recording ends in time."""

    class Crowded(SimulatedCluster):
        async def start(self) -> None:
            await super().start()
            names = {f"d-{n}": f"127.1.{n // 250}.{n % 250 + 1}:1" for n in range(1500)} | {"b-0": self.brokers[0].addr}
            table = {name: {"brokerAddrs": {"0": addr}, "cluster": "simulated"} for name, addr in names.items()}
            self.given[106] = Answered(json.dumps({"brokerAddrTable": table}).encode())

    began = time.monotonic()
    output = record(tmp_path, Crowded(masters=1, groups=1, clients=1), for_s=8.0, every_s=1.0, requests_per_second=50)
    assert time.monotonic() - began < 30  # 1500 of them, one after the other, would take hours
    assert len(output) < 40
    (counted,) = [line for line in output if line.endswith("more that do not answer")]
    assert int(counted.split()[1].replace(",", "")) > 100
    living = [each for each in lines(tmp_path, "broker_runtime") if each["broker_name"] == "b-0"]
    assert len(living) >= 4
    assert max(after["ts"] - before["ts"] for before, after in pairwise(living)) < 3000
    assert offset_lines(tmp_path, "b-0-0")


def test_an_address_that_a_broker_left_is_not_named_as_silent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ask_name_servers_each(300, monkeypatch)
    monkeypatch.setattr("mqreplay.recorder.network.recorder.MINUTE_MS", 300)

    async def script(cluster: SimulatedCluster) -> None:
        await asyncio.sleep(1)
        broker = cluster.brokers[0]
        await broker.kill()
        await asyncio.sleep(1.5)
        broker.port = 0
        await broker.start()

    output = record(tmp_path, SimulatedCluster(masters=1, groups=1, clients=1), script, for_s=5.0)
    minutes = [line for line in output if "in the last minute" in line]
    assert any("no answer from 127.0.0.1:" in line for line in minutes)
    assert "no answer" not in minutes[-1]


def test_a_wrong_name_is_one_line_at_once_and_an_error_at_the_end(tmp_path: Path) -> None:
    async def run() -> None:
        cluster = SimulatedCluster(masters=1)
        await cluster.start()
        options = RecordOptions(tuple(cluster.addrs.split(";")), cluster="orders", for_s=1.0)
        try:
            await _record(options, tmp_path, None, None, output.append)
        finally:
            await cluster.stop()

    output: list[str] = []
    with pytest.raises(InputError, match="not up in time; the name servers know no cluster 'orders', but simulated"):
        asyncio.run(run())
    assert output[0] == "the name servers know no cluster 'orders', but simulated"
    (waiting,) = events(tmp_path, "waiting")
    assert waiting["detail"] == "the name servers know no cluster 'orders', but simulated"
