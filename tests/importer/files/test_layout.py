"""Facts in paths: times, names, brokers. Nothing is guessed."""

from __future__ import annotations

import datetime as dt
import zoneinfo

import pytest

from mqreplay.importer.brokers.broker_names import BrokerNames, broker_of_option
from mqreplay.importer.files.layout import place_of
from mqreplay.importer.import_command import zone_of_option
from mqreplay.importer.times.name_times import DAY_MS, HOUR_MS
from mqreplay.recorder.broker_identity import own_name_of
from mqreplay.words.errors import InputError

AT = 1795230000000  # 2026-11-21T03:00:00Z
SHANGHAI = zoneinfo.ZoneInfo("Asia/Shanghai")


@pytest.mark.parametrize(
    "path",
    [
        "2026-11-21T03-00-00Z/consumerOffset.json",
        "20261121_030000/consumerOffset.json",
        "2026-11-21/03:00/consumerOffset.json",
        "2026-11-21/broker-a-0/03-00-00/consumerOffset.json",
        "2026/11/21/03/00/consumerOffset.json",
        "2026-11-21/consumerOffset-0300.json",
        "2026-11-21/consumerOffset.json.030000",
        "consumerOffset-20261121030000.json",
        "consumerOffset_2026-11-21_03.00.00.json.gz",
        "consumerOffset.json.2026-11-21T03:00:00+00:00",
        "consumerOffset.json.2026-11-21T11:00:00+0800",
        "consumerOffset.json.1795230000",
        "consumerOffset.json-1795230000000",
        "consumerOffset.json.bak.1795230000",
        "1795230000123456789/consumerOffset.json",
        "2020-01-01/1795230000000/consumerOffset.json",
        "20261121_030000_broker-a-0_consumerOffset.json",
    ],
)
def test_times(path):
    place = place_of(("night", *path.split("/")), dt.UTC)
    assert place.kind == "snapshot"
    assert place.time.ms // 1000 == AT // 1000
    assert place.is_bak == ("bak" in path)


@pytest.mark.parametrize(
    ("path", "precision"),
    [
        ("consumerOffset.json.20261121", DAY_MS),
        ("2026-11-21/broker-a-0/topics.json", DAY_MS),
        ("2026112103/topics.json", HOUR_MS),
    ],
)
def test_times_of_a_day_or_an_hour(path, precision):
    assert place_of(path.split("/"), dt.UTC).time.precision_ms == precision


@pytest.mark.parametrize(
    "path",
    [
        "broker-a-0/topics.json",
        "192.168.10.11/topics.json",
        "v4.9.7/topics.json",
        "2026-13-45/topics.json",
        "0000000000/topics.json",
    ],
)
def test_no_time(path):
    assert place_of(path.split("/"), dt.UTC).time is None


def test_a_zone():
    path = ("20261121_110000", "topics.json")
    assert place_of(path, SHANGHAI).time.ms == AT
    assert place_of(("2026-11-21T03-00-00Z", "topics.json"), SHANGHAI).time.ms == AT
    assert zone_of_option("Asia/Shanghai") == SHANGHAI
    with pytest.raises(InputError, match="Asia/Shanghai"):
        zone_of_option("../../etc/passwd")


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("topics.json.tmp", "unfinished"),
        ("broker-a-0/messageRequestMode.json.bak", "snapshot"),
        ("broker-a-0/consumerOrderInfo.json.20261121", "snapshot"),
        ("broker-a-0/lmqConsumerOffset.json.1795230000", "snapshot"),
        ("mytopics.json", "text"),
        ("store/config/consumerFilter.json", "not_used"),
        ("store/config/timercheck", "not_used"),
        ("store/config/unknown.json", "not_used"),
        ("namesrv/kvConfig.json", "not_used"),
        ("namesrv/namesrv.properties", "not_used"),
        ("conf/rmq-proxy.json", "not_used"),
        ("topicsA.json", "text"),
        ("commitlog/00000000000000000000", "not_used"),
        ("night.tar.xz", "archive"),
        ("wire.pcapng", "capture"),
        ("broker_runtime.2026112321.jsonl.gz", "records"),
        ("conf/broker-a.properties", "broker_config"),
        ("10.0.0.1@7/news/offsets.json", "client_offsets"),
        ("snapshots/client-10.0.0.1@7/1795230000000/news.offsets.json.bak", "client_offsets"),
        ("snapshots/b-0/1795230000000/consumerOffset.jsonl.gz", "offset_lines"),
    ],
)
def test_kinds(path, kind):
    assert place_of(path.split("/"), dt.UTC).kind == kind


def broker(path, names, **options):
    found = names.find(place_of(path.split("/"), dt.UTC).broker_hints, **options)
    return None if found is None else (found.broker_name, found.broker_id)


def test_brokers():
    names = BrokerNames()
    for name, number, addr in (
        ("die-1", 0, "10.0.0.1:10911"),
        ("die-1", 1, "10.0.0.2:10911"),
        ("mint", 0, "10.0.0.3:10911"),
    ):
        names.add(name, number, addr)
    names.complete()
    assert broker("die-1-1/topics.json", names) == ("die-1", 1)
    assert broker("die-1/0/topics.json", names) == ("die-1", 0)
    assert broker("die-1_slave/topics.json", names) == ("die-1", 1)
    assert broker("topics_die-1-0_20261121.json", names) == ("die-1", 0)
    assert broker("10.0.0.2/store/config/topics.json", names) == ("die-1", 1)
    assert broker("10.0.0.3_10911/topics.json", names) == ("mint", 0)
    assert broker("mint/topics.json", names) == ("mint", 0), "the name server's list has no other"
    assert broker("die-1/topics.json", names) is None, "master or slave?"
    assert broker("node-1/topics.json", names) is None
    assert broker("x/topics.json", names, own_name="mint") == ("mint", 0)
    assert broker("die-1-0/7/topics.json", names) == ("die-1", 0), "a counter below it is no id"
    assert broker("broker-a-0/7/topics.json", BrokerNames()) == ("broker-a", 0)
    assert broker("broker-a/1/topics.json", BrokerNames()) is None, "a path alone makes no slave"
    assert broker("broker-a/topics.json", BrokerNames()) is None
    assert broker("rack-7/broker-a-0/topics.json", BrokerNames(("die-1", 0))) == ("broker-a", 0), "the path goes first"


@pytest.mark.parametrize("text", ["", "broker", "-0", "a/b-0", "b-99999999999", "b-x", "a\n-0"])
def test_a_wrong_broker(text):
    with pytest.raises(InputError):
        broker_of_option(text)


def test_own_topics():
    assert own_name_of(b"{") is None
    assert own_name_of(b'{"topicConfigTable":{"a":{"perm":6,"readQueueNums":1,"writeQueueNums":1}}}') is None
    two = b'{"topicConfigTable":{%s}}' % b",".join(
        b'"%s":{"perm":7,"readQueueNums":1,"writeQueueNums":1}' % name for name in (b"a", b"b")
    )
    assert own_name_of(two) is None
    assert own_name_of(two.replace(b'"b"', b'"rmq_sys_SYNC_BROKER_MEMBER_a"')) == "a"
