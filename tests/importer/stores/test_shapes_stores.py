"""Copies of the stores and configurations of brokers and clients in the shapes that operators reported."""

from __future__ import annotations

import io
import json
import shutil
from contextlib import redirect_stderr, redirect_stdout

import pytest

from import_shapes import SHAPES, Imported, ms, shape
from mqreplay.cli.command_line import main
from mqreplay.decode.client_offsets import decode_client_offsets
from mqreplay.decode.consumer_offset import decode_consumer_offset
from mqreplay.decode.delay_offset import decode_delay_offset
from mqreplay.decode.subscription_group import decode_subscription_group
from mqreplay.decode.topics import decode_topics

OFFSETS = "consumerOffset.json"
MIN_LONG, MAX_LONG = -7955368551255983524, 2**63 - 1


def offsets(imported: Imported, name: str = OFFSETS) -> dict[str, list[dict[tuple[str, int], int]]]:
    """The offsets by (topic@group, queue) in each copy of each broker, the earliest first."""
    found: dict[str, list[dict[tuple[str, int], int]]] = {}
    for (source, _), data in sorted(imported.copies(name).items()):
        got = decode_consumer_offset(data)
        table = {(key, queue): offset for key, queue, offset in zip(got.key, got.queue_id, got.offset, strict=True)}
        found.setdefault(source, []).append(table)
    return found


def command(*argv: str) -> tuple[int, str]:
    """Run a command in this process, and return its exit status and its output."""
    output = io.StringIO()
    with redirect_stdout(output), redirect_stderr(output):
        status = main(list(argv))
    return status, output.getvalue()


@shape("16-3x-config-dir")
def test_a_config_folder_of_3x(imported):
    """A folder store/config of 3.x from which only the .bak of consumerOffset.json is left."""
    assert imported.status == 0
    assert set(imported.report["copies"]) == {"broker-g1-0"}
    at = ("broker-g1-0", ms("2016-01-21T08:20:00Z"))
    [found] = offsets(imported, OFFSETS + ".bak")["broker-g1-0"]
    assert len(found) == 10
    assert found["%RETRY%MATCH_CG@MATCH_CG", 0] == 480
    assert len(decode_delay_offset(imported.copies("delayOffset.json")[at]).rows) == 16
    topics = decode_topics(imported.copies("topics.json")[at])
    assert len(topics.rows) == 6
    assert topics.data_version == (117, ms("2016-01-18T10:54:51.043Z")), "3.x writes timestatmp"
    groups = decode_subscription_group(imported.copies("subscriptionGroup.json")[at])
    assert [group.group_name for group in groups.rows] == ["MATCH_CG"]


@shape("17-odd-offset-keys")
def test_keys_and_offsets_of_all_kinds(imported):
    """alibaba/rocketmq#387, apache/rocketmq#1675, #6979: copied as they are; nightly tells of them."""
    assert imported.status == 0
    folder = SHAPES / "17-odd-offset-keys/broker-a-0"
    for (source, at), data in imported.copies(OFFSETS).items():
        assert source == "broker-a-0"
        assert data == (folder / str(at) / OFFSETS).read_bytes()
    assert len(imported.copies(OFFSETS)) == 2


@shape("b10-offset-odd-keys")
def test_eight_queues_of_odd_keys(imported):
    assert imported.status == 0
    [found] = offsets(imported)["broker-a-0"]
    assert len(found) == 8
    assert found["t_max@g_max", 0] == MAX_LONG
    assert found["t+plus@g+plus", 0] == -3
    assert found["MQ_INST_1234_BX%orders@MQ_INST_1234_BX%GID_orders", 2] == 119
    assert found["%LMQ%dev/1/up@%LMQ%dev/1/up", 0] == 33


@shape("18-foreign-consumer-offset")
def test_a_file_of_a_look_alike(imported):
    """baoyh/mymq: consumedOffset in place of offsetTable."""
    assert imported.status == 2
    [(path, why)] = imported.refused
    assert path.endswith(OFFSETS)
    assert "name" in why
    assert "offsetTable" in why or "consumedOffset" in why


@shape("25-docker-compose-volumes")
def test_volumes_of_two_brokers(imported):
    """apache/rocketmq-docker#27, #7: ./data and ./data1, and both brokers at one address."""
    assert imported.status == 0
    assert imported.refused == []
    assert set(imported.report["copies"]) == {"broker-a-0", "broker-b-0"}
    assert imported.brokers()["cluster"] == "DefaultCluster"
    assert {len(table) for tables in offsets(imported).values() for table in tables} == {4}
    for source, other in (("broker-a", "broker-b"), ("broker-b", "broker-a")):
        [topics] = [data for (of, _), data in imported.copies("topics.json").items() if of == f"{source}-0"]
        assert f'"{source}"'.encode() in topics
        assert f'"{other}"'.encode() not in topics
    logs = [one["broker_name"] for one in imported.records("broker_runtime") if one["source"] == "broker_log"]
    assert (logs.count("broker-a"), logs.count("broker-b")) == (2, 2)


@shape("b12-docker-compose-two-brokers")
def test_offsets_of_two_volumes_stay_apart(imported):
    assert imported.status == 0
    assert offsets(imported) == {"broker-a-0": [{("t1@g1", 0): 5}], "broker-b-0": [{("t1@g1", 0): 6}]}
    assert imported.brokers()["cluster"] == "DefaultCluster"


@shape("26-conf-without-broker-id")
def test_a_configuration_without_broker_id(imported):
    """foxiswho/docker-rocketmq#25: BrokerConfig's brokerId is 0, and configurations leave it out."""
    if imported.status == 0:
        assert set(imported.report["copies"]) == {"broker-b-0"}
        assert imported.brokers()["cluster"] == "DefaultCluster"
        [found] = offsets(imported)["broker-b-0"]
        assert len(found) == 4
    else:
        assert "brokerId" in imported.words
        assert "--broker" in imported.words


@shape("33-broadcast-offsets")
def test_offsets_of_broadcasting_clients(imported):
    """sohutv/mqcloud, apache/rocketmq#7740, alibaba/rocketmq#83: offsets past the end; a file of zero bytes."""
    assert imported.status == 0
    assert set(imported.report["copies"]) == {"client-10.1.0.5@DEFAULT", "client-10.1.0.6@DEFAULT"}
    at = ms("2026-01-01T00:00:00Z")
    found = decode_client_offsets(imported.copies("bc-cg.offsets.json")["client-10.1.0.5@DEFAULT", at])
    assert sorted((one.topic, one.broker_name, one.queue_id, one.offset) for one in found) == [
        ("bc", "broker-a", 6, 999999999),
        ("bc", "broker-a", 7, 999999999),
    ]
    assert ("client-10.1.0.6@DEFAULT", at) in imported.copies("bc-cg.offsets.json.bak")


@shape("b14-broadcast-garbled-windows")
def test_a_zip_of_windows(imported):
    """alibaba/rocketmq#83, rocketmq-spring#217: backslashes in the names of a zip; the .bak is whole."""
    assert imported.status == 0
    assert set(imported.report["copies"]) == {"client-10.0.3.203@gogo"}
    [whole] = imported.copies("g_kw.offsets.json.bak").values()
    assert sorted((one.topic, one.queue_id, one.offset) for one in decode_client_offsets(whole)) == [
        ("t_kw", 0, 9),
        ("t_kw", 1, 3),
    ]


@shape("38-statefulset-pods")
def test_pods_of_a_statefulset(imported):
    """apache/rocketmq-operator: broker-1 is the name of a master, and is no slave of "broker"."""
    copies = set(imported.report["copies"])
    assert not copies & {"broker-0", "broker-1", "broker-2"}, "'broker-1' is not slave 1 of 'broker'"
    if imported.status == 0:
        assert copies <= {f"broker-{number}-0" for number in range(3)}
        assert "only by" in imported.words or "--broker" in imported.words
    else:
        assert len(imported.refused) == 12
        assert all("--broker" in why for _, why in imported.refused)


@shape("47-rocksdb-config")
def test_a_config_folder_of_rocksdb(imported):
    """5.2 and later with RocksDB: its files cannot be copied while the broker runs."""
    assert imported.status == 2
    assert len(imported.refused) == 21
    assert all("RocksDB" in why for _, why in imported.refused)
    assert any(way in imported.words for way in ("exportMetadataInRocksDB", "rocksDBConfigToJson"))
    assert "has a message that import uses" not in imported.words


@shape("44-negative-diff")
def test_offsets_that_no_queue_has(imported):
    """apache/rocketmq#2743, alibaba/rocketmq#512, #387: mqadmin shows a Diff below zero."""
    assert imported.status == 0
    first, second = offsets(imported)["broker-a-0"]
    for found in (first, second):
        assert found["binlog@canal-cg", 0] == 647260583
        assert found["neg@g", 0] == MIN_LONG
        assert found["max@g", 0] == MAX_LONG
    [row] = imported.rows("consume_stats")
    assert [of[3:5] for of in row["offsets"]] == [(100, 647260583), (100, 97)]
    assert {row["topic"] for row in imported.rows("topic_stats")} == {"binlog", "neg", "max"}


@shape("b17-powershell-utf16")
def test_what_powershell_made_of_copies(imported):
    """UTF-16 and UTF-8 with a BOM: read, or named before nightly refuses it."""
    assert imported.status == 0
    refused = dict(imported.refused)
    assert "b/clusterList.txt" in imported.recognised
    assert "a/clusterList.txt" in imported.recognised or "UTF-16" in refused["a/clusterList.txt"]
    for minute, name, offset in ((0, "UTF-16", 5), (1, "BOM", 6)):
        path = f"broker-a-0/2024-06-28_10-0{minute}-00/{OFFSETS}"
        if not any(path in line and name in line for line in imported.words.splitlines()):
            got = decode_consumer_offset(imported.copies(OFFSETS)["broker-a-0", ms(f"2024-06-28T10:0{minute}:00Z")])
            assert got.offset == [offset]


@shape("b23-bom-offset-broker-accepts")
def test_a_bom_that_notepad_put_before_the_offsets(imported):
    """fastjson 1.2 skips a BOM: such a file is not torn."""
    assert imported.status == 0
    if imported.refused:
        [(path, why)] = imported.refused
        assert path.endswith(f"10-02-00/{OFFSETS}")
        assert "BOM" in why or "byte order mark" in why
        status, output = command("doctor", str(SHAPES / "b23-bom-offset-broker-accepts" / path))
        assert status != 0
        assert "refuse" in output
        assert offsets(imported)["broker-a-0"] == [{("t1@g1", 0): offset} for offset in (5, 6, 8)]
    else:
        assert offsets(imported)["broker-a-0"] == [{("t1@g1", 0): offset} for offset in (5, 6, 7, 8)]


@shape("b20-lmq-only")
def test_offsets_of_a_broker_with_lmq(imported):
    """With enableLmq, LmqConsumerOffsetManager keeps ordinary groups in lmqConsumerOffset.json too."""
    refused = dict(imported.refused)
    name = "lmqConsumerOffset.json"
    if f"broker-a-0/config/{name}" in refused:
        assert "enableLmq" in refused[f"broker-a-0/config/{name}"]
        return
    assert imported.status == 0
    assert imported.report["copies"]["broker-a-0"]["files"][name] == 1
    [data] = imported.copies(name).values()
    assert data == (SHAPES / "b20-lmq-only/broker-a-0/config" / name).read_bytes()


def test_doctor_knows_the_offsets_of_lmq(tmp_path):
    path = tmp_path / "lmqConsumerOffset.json"
    shutil.copy(SHAPES / "b20-lmq-only/broker-a-0/config" / path.name, path)
    _, output = command("doctor", str(path))
    assert "lmq" in output.replace(str(path), "").casefold()
    status, output = command("doctor", str(path), "--json")
    [reported] = json.loads(output)["files"]
    assert status != 0 or reported["kind"] != "consumer_offset" or reported["entries"] == 3, (
        "the offset of the LMQ counts"
    )


@pytest.mark.parametrize("beside", [False, True], ids=["alone", "beside an old consumerOffset.json"])
def test_record_copies_the_offsets_of_lmq(tmp_path, beside):
    """Either they are recorded, or the command says that it cannot."""
    config = tmp_path / "store" / "config"
    shutil.copytree(SHAPES / "b20-lmq-only/broker-a-0/config", config)
    if beside:
        (config / OFFSETS).write_text('{"offsetTable":{"t1@g1":{0:1}}}')
    out = tmp_path / "recording"
    status, output = command(
        *("record", "--store", str(config.parent), "--broker", "broker-a-0", "--out", str(out)),
        *("--for", "300ms", "--every", "100ms"),
    )
    copied = sorted((out / "snapshots" / "broker-a-0").glob("*/lmqConsumerOffset.json"))
    assert copied or "lmq" in output.casefold()
    if copied:
        assert status == 0
        assert copied[0].read_bytes() == (config / "lmqConsumerOffset.json").read_bytes()
    else:
        assert status == 2 or "lmqConsumerOffset.json" in output
