"""A recorder with servers on the loopback device: its records, and that a silent server does not end it."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from bench.simulated_cluster import Answered, SimulatedCluster
from cluster.processes import free_port
from mqreplay.core.system_names import PROXY_GROUP
from mqreplay.decode.brokers import decode_brokers
from mqreplay.recorder.network import recorder as recorder_module
from mqreplay.recorder.network.options import Filter
from mqreplay.recorder.network.polls import POLLS
from mqreplay.words.errors import InputError, RecordingFull
from recorder.network.recorder_run import begun_and_ended, events, lines, offset_lines, record
from tests_shared import ROOT

Patch = pytest.MonkeyPatch


def test_everything_of_a_cluster_is_recorded(tmp_path: Path) -> None:
    cluster = SimulatedCluster(masters=2, groups=3, clients=4, slaves=1)
    messages = record(tmp_path / "r", cluster)
    assert messages[0] == "cluster simulated: 4 brokers"
    assert any("give --physical-memory" in line for line in messages)
    assert "recording 3 groups (3 with members), 4 clients, 6 topics" in messages
    assert messages[-1].startswith("next: mqreplay nightly ")
    for stem in {poll.stem for poll in POLLS.values()} - {None, "proxy_connections"}:
        assert lines(tmp_path / "r", str(stem)), stem
    brokers = decode_brokers((tmp_path / "r/brokers.json").read_bytes())
    assert brokers.cluster == "simulated"
    assert {each.key for each in brokers.brokers} == {"b-0-0", "b-0-1", "b-1-0", "b-1-1"}
    assert {each.rocketmq_version for each in brokers.brokers} == {"5.3.3"}
    assert b"(not recorded)" in (tmp_path / "r/brokers.json").read_bytes()
    for name in ("topics.json", "subscriptionGroup.json", "delayOffset.json"):
        assert len(list((tmp_path / "r").glob(f"snapshots/*/*/{name}"))) == 4
    first, *others = offset_lines(tmp_path / "r", "b-0-0")
    assert first["offsetTable"]["t-0@g-0"].keys() == {"0", "1", "2", "3"}
    assert len(others) > 8
    assert any("changed" in each for each in others)
    held = {each["client_id"] for each in lines(tmp_path / "r", "assignments")}
    assert len(held) == 4
    assert begun_and_ended(tmp_path / "r") == ["start", "stop"]


@pytest.mark.parametrize(
    ("body", "detail"),
    [
        (b"kvConfigPath=/kv\nscanNotActiveBrokerInterval=9000\n", "scanNotActiveBrokerInterval=9000"),
        (b"kvConfigPath=/kv\nlistenPort=9876\n", "no scanNotActiveBrokerInterval: it is of 4.x"),
        (b"listenPort=9876\n", None),  # no name server's settings
    ],
)
def test_the_scan_of_a_name_server_is_an_event(tmp_path: Path, body: bytes, detail: str | None) -> None:
    cluster = SimulatedCluster(masters=1, groups=1, clients=1)
    cluster.given = {319: Answered(body)}
    record(tmp_path, cluster, for_s=2.0)
    expected = [] if detail is None else [f"name server {addr}: {detail}" for addr in cluster.addrs.split(";")]
    assert sorted(each["detail"] for each in events(tmp_path, "name_server_settings")) == sorted(expected)


def test_members_behind_a_proxy_are_recorded(tmp_path: Path) -> None:
    async def script(cluster: SimulatedCluster) -> None:
        await cluster.proxy.start()
        await asyncio.sleep(2)
        await cluster.proxy.kill()

    cluster = SimulatedCluster(masters=1, groups=2, clients=1)
    cluster.proxied = {"g-1": ["vm@1@1@a", "vm@1@2@b"]}
    cluster.proxy.port = free_port()
    record(tmp_path, cluster, script, for_s=4.0, proxies=(cluster.proxy.addr,))
    found = [each for each in lines(tmp_path, "proxy_connections") if "body" in each]
    assert {(each["proxy_addr"], each["consumer_group"]) for each in found} == {(cluster.proxy.addr, "g-1")}
    clients = [each["clientId"] for each in json.loads(found[0]["body"])["connectionSet"]]
    assert clients == ["vm@1@1@a", "vm@1@2@b"]
    assert all(code == 203 for _, code, _ in cluster.proxy.requests)


def test_a_port_at_which_no_proxy_answers_is_probed_and_is_an_event(tmp_path: Path) -> None:
    addr = f"127.0.0.1:{free_port()}"
    record(tmp_path, SimulatedCluster(masters=1, groups=2, clients=1), for_s=2.0, proxies=(addr,))
    (event,) = events(tmp_path, "unreachable")
    assert event["detail"].startswith(f"proxy {addr}: ")
    assert {each["consumer_group"] for each in lines(tmp_path, "proxy_connections")} == {PROXY_GROUP}


def test_a_broker_of_4_9_is_asked_once_for_the_state_of_slaves(tmp_path: Path) -> None:
    cluster = SimulatedCluster(masters=1, groups=1, clients=1)
    cluster.given = {code: Answered(code=3, remark=f" request type {code} not supported") for code in (402, 907)}
    record(tmp_path, cluster, for_s=4.0)
    assert [cluster.brokers[0].asked[code] for code in (402, 907)] == [1, 1]
    assert lines(tmp_path, "ha_status") == []
    assert events(tmp_path, "missing") == []


def test_members_that_come_and_go_are_recorded_when_they_do(tmp_path: Path) -> None:
    async def script(cluster: SimulatedCluster) -> None:
        await asyncio.sleep(1)
        for _ in range(2):  # two processes with one id
            cluster.members["g-0"].append("new@1")
            await asyncio.sleep(1)
        cluster.members["g-0"].clear()

    cluster = SimulatedCluster(masters=1, groups=1, clients=1)
    record(tmp_path, cluster, script, for_s=4.0)
    found = lines(tmp_path, "consumer_lists")
    counts = [len(json.loads(each["body"])["consumerIdList"]) if "body" in each else 0 for each in found]
    assert counts == [1, 2, 3, 0, 0]
    assert found[3]["response_code"] == 1
    assert found[4]["previous_ts"] >= found[3]["ts"], "the last answer is written at the end"
    for before, after in pairwise(found[:4]):
        assert before["ts"] < after["previous_ts"] < after["ts"] < after["previous_ts"] + 600
    assert "new@1" in {each["client_id"] for each in lines(tmp_path, "assignments")}
    assert len(lines(tmp_path, "consumer_connections")) >= 2


def test_no_client_is_asked_more_often_than_every_20_seconds(tmp_path: Path) -> None:
    cluster = SimulatedCluster(masters=2, groups=2, clients=6)
    cluster.deaf = set(cluster.members["g-0"])
    record(tmp_path, cluster, for_s=4.0)
    asked = [fields["clientId"] for each in cluster.brokers for _, code, fields in each.requests if code == 307]
    assert len(asked) == len(set(asked)) == 6
    errors = [each for each in lines(tmp_path, "assignments") if "error" in each]
    assert {each["client_id"] for each in errors} == cluster.deaf
    assert all("body" not in each and each["response_code"] == 1 for each in errors)


@pytest.mark.long
def test_the_budget_of_a_broker_is_kept(tmp_path: Path) -> None:
    cluster = SimulatedCluster(masters=1, groups=300, clients=300)
    # One round of all groups takes 6 s. Only polls of the second round can be late by a whole interval.
    record(tmp_path, cluster, requests_per_second=50, every_s=1.0, for_s=15.0)
    asked = sum(cluster.brokers[0].asked.values())
    assert 200 < asked < 50 * 15 + 40
    skipped = events(tmp_path, "skipped")
    assert sum(each["count"] for each in skipped) > 0
    assert all(each["from_ts"] <= each["to_ts"] and each["request"] for each in skipped)


def test_a_broker_that_is_killed_and_comes_back_is_evidence(tmp_path: Path) -> None:
    async def script(cluster: SimulatedCluster) -> None:
        await asyncio.sleep(1)
        master = cluster.broker("b-0")
        await master.kill()
        await asyncio.sleep(3)  # a busy machine, too, asks the slave meanwhile
        await master.start()

    cluster = SimulatedCluster(masters=1, groups=2, clients=2, slaves=1)
    record(tmp_path, cluster, script, for_s=7.0)
    runtime = [each for each in lines(tmp_path, "broker_runtime") if each["broker_id"] == 0]
    down = [each for each in runtime if each["table"] is None]
    assert len(down) >= 4
    assert all("error" in each and "response_ts" not in each for each in down)
    assert runtime[-1]["table"] is not None
    (gone,) = events(tmp_path, "unreachable")
    (back,) = events(tmp_path, "reachable")
    assert (gone["broker_name"], gone["broker_id"]) == (back["broker_name"], back["broker_id"]) == ("b-0", 0)
    assert back["from_ts"] < gone["ts"] < back["to_ts"]
    # Meanwhile the slave is asked for the members.
    assert {each["broker_id"] for each in lines(tmp_path, "consumer_lists")} == {0, 1}


@pytest.mark.long
def test_silent_servers_do_not_end_the_recording(tmp_path: Path) -> None:
    async def script(cluster: SimulatedCluster) -> None:
        await asyncio.sleep(1)
        for each in [*cluster.brokers, *cluster.name_servers]:
            each.is_silent = True
        await asyncio.sleep(2)
        for each in [*cluster.brokers, *cluster.name_servers]:
            each.is_silent = False

    cluster = SimulatedCluster(masters=1, groups=2, clients=2, name_servers=2)
    record(tmp_path, cluster, script, for_s=6.0, timeout_s=0.3)
    assert len(events(tmp_path, "unreachable")) >= 1
    assert len(events(tmp_path, "unreachable")) == len(events(tmp_path, "reachable"))
    assert any(each["table"] is None for each in lines(tmp_path, "broker_runtime"))
    assert lines(tmp_path, "broker_runtime")[-1]["table"] is not None


def test_access_denied_later_is_evidence_and_at_the_start_one_line(tmp_path: Path) -> None:
    async def script(cluster: SimulatedCluster) -> None:
        await asyncio.sleep(1)
        cluster.brokers[0].denied = {43, 28, 38}

    cluster = SimulatedCluster(masters=1, groups=1, clients=1)
    record(tmp_path / "r", cluster, script)
    assert any("access denied" in (each.get("error") or "") for each in lines(tmp_path / "r", "broker_runtime"))
    assert any(
        "access denied" in each["detail"] or "no permission" in each["detail"]
        for each in events(tmp_path / "r", "skipped")
    )
    with pytest.raises(
        InputError, match=r"broker b-0-0 .* denies .*: no permission for reader; give the keys"
    ) as raised:
        record(tmp_path / "s", cluster)
    assert "\n" not in str(raised.value)
    assert not (tmp_path / "s").exists()


def test_only_chosen_groups_are_recorded(tmp_path: Path) -> None:
    cluster = SimulatedCluster(masters=1, groups=3, clients=3)
    record(tmp_path, cluster, chosen=Filter(("g-1",), ()))
    assert {each["consumer_group"] for each in lines(tmp_path, "consumer_lists")} == {"g-1"}
    assert {each["topic"] for each in lines(tmp_path, "topic_stats")} == {"t-1", "%RETRY%g-1"}
    assert offset_lines(tmp_path, "b-0-0")[0]["offsetTable"].keys() == {"t-1@g-1", "%RETRY%g-1@g-1"}


def test_a_recording_goes_on_and_is_not_mixed_with_another_clusters(tmp_path: Path) -> None:
    cluster = SimulatedCluster(masters=1, groups=1, clients=1)
    record(tmp_path, cluster, physical_memory_bytes=1 << 30)
    record(tmp_path, cluster)
    assert begun_and_ended(tmp_path) == ["start", "stop"] * 2
    assert json.loads((tmp_path / "brokers.json").read_bytes())["physical_memory_bytes"] == 1 << 30
    assert len(list(tmp_path.glob("snapshots/*/*/topics.json"))) == 1
    assert sum("offsetTable" in each for each in offset_lines(tmp_path, "b-0-0")) == 2
    other = SimulatedCluster(masters=1, groups=1, clients=1)
    other.name = "other"
    with pytest.raises(InputError, match="a recording of cluster 'simulated'"):
        record(tmp_path, other)


@pytest.mark.long
def test_idle_topics_are_asked_by_queue_and_moving_ones_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mqreplay.recorder.network.targets._topic_period", lambda every, topic: every)
    cluster = SimulatedCluster(masters=1, groups=2, clients=2, moving=0.5)
    record(tmp_path, cluster, every_s=1.2, for_s=8.0)
    asked = [(code, fields["topic"]) for _, code, fields in cluster.brokers[0].requests if code in (30, 31, 202)]
    assert {code for code, topic in asked if topic == "t-1"} == {30, 31}
    assert {code for code, topic in asked if topic == "t-0"} == {30, 31, 202}
    assert sum(code == 31 for code, topic in asked if topic == "t-1") == 4
    assert {code for code, topic in asked if topic == "%RETRY%g-0"} == {30, 31}


def test_a_full_disk_is_one_line_and_the_recording_goes_on_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = False
    flush = recorder_module.RecordFiles.flush

    def may_fail(self: Any) -> None:
        if full:
            raise RecordingFull(str(tmp_path), "the disk is full")
        flush(self)

    async def script(cluster: SimulatedCluster) -> None:
        nonlocal full
        await asyncio.sleep(1)
        full = True
        await asyncio.sleep(1.5)
        full = False

    monkeypatch.setattr(recorder_module.RecordFiles, "flush", may_fail)
    messages = record(tmp_path, SimulatedCluster(masters=1, groups=1, clients=1), script, for_s=4.5)
    assert sum("the disk is full" in line for line in messages) == 1
    (gap,) = [each for each in events(tmp_path, "skipped") if "request" not in each]
    assert gap["to_ts"] - gap["from_ts"] > 1000
    polls = [each["ts"] for each in offset_lines(tmp_path, "b-0-0")]
    assert polls[-1] > gap["to_ts"]
    assert not any(gap["from_ts"] + 300 < ts < gap["to_ts"] for ts in polls)


def test_the_bound_ends_the_recording(tmp_path: Path) -> None:
    with pytest.raises(RecordingFull, match="reached its bound"):
        record(tmp_path, SimulatedCluster(masters=1, groups=1, clients=1), max_bytes=64 * 1024)


def test_a_clock_that_is_set_is_an_event_and_not_followed(tmp_path: Path, monkeypatch: Patch) -> None:
    began, wall = time.monotonic(), recorder_module.wall_ms
    step = lambda: 3_600_000 if time.monotonic() - began > 1.5 else 0  # noqa: E731
    monkeypatch.setattr(recorder_module, "wall_ms", lambda: wall() + step())
    record(tmp_path, SimulatedCluster(masters=1, groups=1, clients=1))
    (event,) = events(tmp_path, "clock_step")
    assert event["count"] == pytest.approx(3_600_000, abs=50)
    assert max(each["ts"] for each in lines(tmp_path, "broker_runtime")) < wall() + 1000


def test_no_name_server_is_an_error_of_few_lines(tmp_path: Path) -> None:
    servers = "127.0.0.1:1;127.0.0.1:2"
    command = [sys.executable, "-m", "mqreplay.cli", "record", servers, "--out", str(tmp_path / "r"), "--for", "1s"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment(), check=False)
    assert (done.returncode, done.stdout) == (2, "")
    messages = done.stderr.splitlines()
    assert messages[0].endswith("no name server answers; give HOST:PORT of a running one")
    assert messages[3].endswith("waiting for the cluster; the name servers are asked every 5 s")
    assert messages[4] == "mqreplay: the cluster was not up in time"
    assert len(messages) == 8


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_ends_the_recording_in_order(tmp_path: Path, number: int, status: int) -> None:
    async def run() -> tuple[int, str]:
        cluster = SimulatedCluster(masters=1, groups=2, clients=2)
        await cluster.start()
        command = [
            sys.executable,
            "-m",
            "mqreplay.cli",
            "record",
            cluster.addrs,
            "--out",
            str(tmp_path),
            "--every",
            "1s",
        ]
        process = await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.PIPE, env=environment())
        await asyncio.sleep(4)
        process.send_signal(number)
        _, messages = await process.communicate()
        await cluster.stop()
        return process.returncode or 0, messages.decode()

    returned, messages = asyncio.run(run())
    assert returned == status
    assert "Traceback" not in messages
    assert "next: mqreplay nightly" in messages
    assert lines(tmp_path, "recorder_events")[-1]["kind"] == "stop"


def environment() -> dict[str, str]:
    return os.environ | {"PYTHONPATH": str(ROOT / "lib")}
