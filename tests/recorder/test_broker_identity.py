"""The broker of a configuration file, with RocketMQ's defaults."""

from __future__ import annotations

import pytest

from mqreplay.importer.brokers.broker_names import BrokerNames
from mqreplay.importer.brokers_file import BrokersFile
from mqreplay.recorder.broker_identity import address_of, identity_of

NAMED = {"brokerName": "broker-a"}


@pytest.mark.parametrize(
    ("settings", "broker_id"),
    [
        ({}, 0),
        ({"brokerId": "0"}, 0),
        ({"brokerId": "1"}, 1),
        ({"brokerId": "2", "brokerRole": "SLAVE"}, 2),
        ({"brokerId": "1", "brokerRole": "ASYNC_MASTER"}, 0),  # BrokerStartup sets MASTER_ID
        ({"brokerRole": "SYNC_MASTER"}, 0),
    ],
)
def test_ids(settings: dict[str, str], broker_id: int) -> None:
    found = identity_of(NAMED | settings)
    assert (found.name, found.broker_id, found.why) == ("broker-a", broker_id, None)
    assert (found.note is not None) is (settings.get("brokerId") != str(broker_id))


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"enableDLegerCommitLog": "true", "dLegerSelfId": "n0"}, "enableDLegerCommitLog=true"),
        ({"enableControllerMode": "true", "brokerId": "0"}, "enableControllerMode=true"),
        ({"brokerRole": "SLAVE"}, "brokerId"),
        ({"brokerId": "zero"}, "brokerId"),
    ],
)
def test_names_without_an_id(settings: dict[str, str], why: str) -> None:
    found = identity_of(NAMED | settings)
    assert (found.name, found.broker_id) == ("broker-a", None)
    assert why in str(found.why)


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"brokerId": "0"}, "DEFAULT_BROKER"),
        ({"brokerName": "a/b"}, "'a/b'"),
        ({"listenPort": "9876"}, "not a broker configuration"),
        ({}, "not a broker configuration"),
    ],
)
def test_no_names(settings: dict[str, str], why: str) -> None:
    found = identity_of(settings)
    assert found[:2] == (None, None)
    assert why in str(found.why)


def test_placeholders_are_no_addresses() -> None:
    assert address_of({"brokerIP1": "外网ip", "listenPort": "10911"}) is None
    assert address_of({"brokerIP1": "10.0.0.1", "listenPort": "port"}) is None
    assert address_of({"brokerIP1": "10.0.0.1"}) is None
    assert address_of({"brokerIP1": "b.example", "listenPort": "10911"}) == "b.example:10911"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "gbk", "utf-16"])
def test_files_of_all_encodings(encoding: str) -> None:
    brokers = BrokersFile(BrokerNames())
    text = "# 主节点\r\nbrokerClusterName = 集群\r\nbrokerName = broker-a\r\nbrokerIP1 = 外网ip\r\n"
    assert brokers.add_config(text.encode(encoding))[:2] == ("broker-a", 0)
    assert brokers.cluster == ["集群"]
    written = brokers.as_bytes()
    assert written is not None
    assert b'"brokerId": "0"' in written
