"""Facts about the cluster: its name, its name servers, the settings of its brokers; from whole, good answers alone."""

from __future__ import annotations

import json

import pytest

from decode.capture.wire import BROKER, Talk, command, registration
from mqreplay.decode.capture import cluster as limits
from mqreplay.decode.capture.calls import Calls
from mqreplay.decode.capture.cluster import CapturedCluster

REGISTER, ROUTE, CLUSTERS, CONFIG = 103, 105, 106, 26
ROUTED = {"brokerDatas": [{"cluster": "blue", "brokerName": "broker-a", "brokerAddrs": {"0": BROKER}}]}
LISTED = {"brokerAddrTable": {"broker-a": {"cluster": "green", "brokerName": "broker-a"}}}


def captured(*asked: tuple[bytes, bytes | None]) -> CapturedCluster:
    talk, cluster = Talk(), CapturedCluster()
    segments = []
    for request, answer in asked:
        segments.append(talk.ask(request))
        if answer is not None:
            segments.append(talk.answer(answer))
    assert len(list(cluster.watch(Calls(segments)))) == len(asked)
    return cluster


def answered(code: int, body: object, answer_code: int = 0) -> tuple[bytes, bytes]:
    text = body if isinstance(body, bytes) else json.dumps(body).encode()
    return command(code, 1), command(answer_code, 1, flag=1, body=text)


def test_a_registration_names_the_cluster_and_its_name_server():
    cluster = captured((registration("broker-a", 0, BROKER, 1, "blue"), None))
    assert (cluster.clusters, cluster.name_servers, cluster.brokers) == (["blue"], [BROKER], {})


def test_an_old_registration_without_a_cluster_still_shows_a_name_server():
    cluster = captured((registration("broker-a", 0, BROKER, 1), None))
    assert (cluster.clusters, cluster.name_servers) == ([], [BROKER])


def test_routes_and_lists_of_brokers_name_clusters_once_in_their_order():
    first, second = answered(ROUTE, ROUTED), answered(CLUSTERS, LISTED)
    cluster = captured(first, first, (command(CLUSTERS, 2), command(0, 2, flag=1, body=json.dumps(LISTED).encode())))
    assert cluster.clusters == ["blue", "green"]
    assert captured(first).name_servers == []  # a proxy answers routes, too
    assert captured(second).name_servers == [BROKER]


@pytest.mark.parametrize(
    "body", [b"", b"\xff\xfe", b"{", b"[1]", b'{"brokerDatas":[1]}', b'{"brokerAddrTable":7}'], ids=repr
)
def test_a_damaged_list_names_no_cluster(body: bytes):
    assert captured(answered(ROUTE, body)).clusters == []


def test_an_error_or_no_answer_names_nothing():
    assert captured(answered(CLUSTERS, LISTED, answer_code=1)) == CapturedCluster()
    assert captured((command(CLUSTERS, 1), None)) == CapturedCluster()


def test_the_settings_of_a_broker_are_those_it_answered_last():
    first = (command(CONFIG, 1), command(0, 1, flag=1, body=b"brokerName=a"))
    last = (command(CONFIG, 2), command(0, 2, flag=1, body=b"brokerName=b"))
    assert captured(first, last).brokers == {BROKER: "brokerName=b"}
    assert captured(answered(CONFIG, b"", answer_code=0)).brokers == {}


def test_a_name_longer_than_rocketmq_allows_is_none_and_lists_end(monkeypatch: pytest.MonkeyPatch):
    long = registration("a", 0, BROKER, 1, "x" * (limits.LONGEST_CLUSTER + 1))
    assert captured((long, None)).clusters == []
    monkeypatch.setattr(limits, "MOST_CLUSTERS", 1)
    two = [(registration("a", 0, BROKER, n, f"cluster-{n}"), None) for n in (1, 2)]
    assert captured(*two).clusters == ["cluster-1"]
