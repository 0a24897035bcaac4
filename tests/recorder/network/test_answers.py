"""What a recorder reads from answers: offset tables, connections, routes, settings of clients and brokers."""

from __future__ import annotations

import itertools
import json
import random

import pytest

from mqreplay.decode.consumer_offset import decode_consumer_offset
from mqreplay.recorder.network.answers import (
    read_caches,
    read_connected,
    read_properties,
    read_route,
    running_signature,
    table_signature,
)
from mqreplay.recorder.network.brokers_json import BrokersJson, earlier_brokers
from mqreplay.recorder.network.offsets import OffsetReader
from mqreplay.words.errors import DecodeError, InputError
from recorder.network.connection_answers import connected


def test_the_table_is_read_as_the_broker_itself_would() -> None:
    chance, reader = random.Random(7), OffsetReader()
    tables: list[dict] = [{}]
    for _ in range(200):
        table = {k: dict(v) for k, v in tables[-1].items()}
        for _ in range(chance.randrange(4)):
            key = chance.choice(["t@g", "%RETRY%g@g", "a-b_c@d", "日本@g"])
            table.setdefault(key, {})[chance.randrange(4)] = chance.randrange(-1, 10**12)
        if chance.random() < 0.1 and table:
            table.pop(chance.choice(list(table)))
        tables.append(table)
        bare = ",".join(
            f'"{key}":{{{",".join(f"{q}:{o}" for q, o in queues.items())}}}' for key, queues in table.items()
        )
        quoted = json.dumps(table, ensure_ascii=False, separators=(",", ":"))
        for text in (f'{{"offsetTable":{{{bare}}}}}', f'{{"dataVersion":{{"counter":1}},"offsetTable":{quoted}}}'):
            found, changed = reader.read(text.encode())
            assert found == table
        decoded = decode_consumer_offset(f'{{"offsetTable":{{{bare}}}}}'.encode())
        assert set(zip(decoded.key, decoded.queue_id, decoded.offset, strict=True)) == {
            (key, queue, offset) for key, queues in table.items() for queue, offset in queues.items()
        }
        assert changed <= table.keys() | tables[-2].keys()


TORN = ("", "{", '{"offsetTable":', '{"offsetTable":{"a@b":{0:5', '{"x":{}}', "[]", "\xff")


ODD = ("5", '{"x":5}', '{0:"5"}', "{0:5.5}", "[1]", "null")


@pytest.mark.parametrize("text", [*TORN, *(f'{{"offsetTable":{{"a@b":{each}}}}}' for each in ODD)])
def test_what_is_no_table_is_refused(text: str) -> None:
    with pytest.raises(DecodeError):
        OffsetReader().read(text.encode("latin-1"))


def test_a_key_that_left_is_a_change() -> None:
    reader = OffsetReader()
    reader.read(b'{"offsetTable":{"t@g":{0:1},"u@g":{0:1}}}')
    assert reader.read(b'{"offsetTable":{"u@g":{0:1}}}') == ({"u@g": {0: 1}}, {"t@g"})
    # Read thoroughly: white space is not as brokers write it.
    assert reader.read(b'{"offsetTable": {"u@g" : {0: 1}}}')[0] == {"u@g": {0: 1}}


def test_connections_in_another_order_are_no_change_and_another_filter_is_one() -> None:
    first = read_connected(connected(["a", "b"])).signature
    assert read_connected(connected(["b", "a"], version=2)).signature == first
    assert read_connected(connected(["a"])).signature != first
    assert read_connected(connected(["a", "b", "b"])).signature != first
    assert read_connected(connected(["a", "b"], sub="TagA")).signature != first


def test_routes_in_another_order_are_no_change() -> None:
    datas = [{"brokerName": name, "brokerAddrs": {"0": name}} for name in "ab"]
    one, two = (json.dumps({"brokerDatas": each, "queueDatas": []}).encode() for each in (datas, datas[::-1]))
    assert read_route(one) == read_route(two)
    for other in (datas[:1], [*datas, datas[0]]):
        assert read_route(one) != read_route(json.dumps({"brokerDatas": other, "queueDatas": []}).encode())


RUNNING = (
    '{"mqTable":{{"brokerName":"b","queueId":0,"topic":"t"}:{"cachedMsgCount":3,"cachedMsgMaxOffset":9,"commitOffset":7,'
    '"droped":false,"lastPullTimestamp":5,"locked":true,"tryUnlockTimes":0}},"properties":{"consumeThreadMax":"4"},'
    '"statusTable":{"t":{"consumeRT":0.5,"pullTPS":2.04},"u":{"pullTPS":0.0}},"subscriptionSet":[{"subString":"*",'
    '"subVersion":17}]}'
)


@pytest.mark.parametrize(
    ("old", "new", "is_change"),
    [
        ('"commitOffset":7', '"commitOffset":-1', False),
        ('"lastPullTimestamp":5', '"lastPullTimestamp":6', False),
        ('"pullTPS":2.04', '"pullTPS":1.5E-4', False),
        ('"subVersion":17', '"subVersion":18', False),
        ('"droped":false', '"droped":true', True),
        ('"locked":true', '"locked":false', True),
        ('"queueId":0', '"queueId":1', True),
        ('"subString":"*"', '"subString":"A"', True),
        ('"consumeThreadMax":"4"', '"consumeThreadMax":"5"', True),
    ],
)
def test_what_changes_a_clients_answer(old: str, new: str, is_change: bool) -> None:
    assert old in RUNNING
    before, after = running_signature(RUNNING.encode()), running_signature(RUNNING.replace(old, new).encode())
    assert (before != after) == is_change


@pytest.mark.parametrize(
    ("state", "properties", "heads", "is_large"),
    [
        ('"cachedMsgCount":0,"cachedMsgMinOffset":0', "", set(), False),
        ('"cachedMsgCount":500,"cachedMsgMaxOffset":506,"cachedMsgMinOffset":7', "", {7}, False),
        ('"cachedMsgCount":501,"cachedMsgMaxOffset":507,"cachedMsgMinOffset":7', "", {7}, True),
        ('"cachedMsgCount":21,"cachedMsgMinOffset":7', '"pullThresholdForQueue":"40"', {7}, True),
        ('"cachedMsgCount":1,"cachedMsgMinOffset":7,"cachedMsgSizeInMiB":51', "", {7}, True),
        ('"cachedMsgCount":2,"cachedMsgMaxOffset":1008,"cachedMsgMinOffset":7', "", {7}, True),
        ('"cachedMsgCount":0,"transactionMsgCount":1,"transactionMsgMinOffset":3', "", {3}, False),
    ],
)
def test_the_caches_of_a_client(state: str, properties: str, heads: set[int], is_large: bool) -> None:
    queue = '{"brokerName":"b","queueId":0,"topic":"t"}'
    caches = read_caches(f'{{"mqTable":{{{queue}:{{{state}}}}},"properties":{{{properties}}}}}'.encode())
    assert caches == ({(0, head) for head in heads}, is_large)


def test_a_data_version_alone_is_no_change() -> None:
    one, two = (
        b'{"dataVersion":{"counter":1,"timestamp":2},"t":{"a":1}}',
        b'{"dataVersion":{"counter":2,"timestamp":9},"t":{"a":1}}',
    )
    assert table_signature(one) == table_signature(two) != table_signature(one.replace(b"a", b"b"))


def test_secrets_are_not_recorded() -> None:
    secrets = "aclSecretKey=s3cret\ninnerClientAuthenticationCredentials={x}\npassword=\ninitAuthenticationUser={y}"
    text = f"brokerName=b\n{secrets}"
    properties = read_properties(text.encode())
    assert properties["brokerName"] == "b"
    assert not {"s3cret", "{x}", "{y}"} & set(properties.values())


def test_brokers_that_left_stay_in_brokers_json(tmp_path) -> None:
    brokers = BrokersJson("C", ("ns:1",), 5, {})
    for (name, version), number in itertools.product((("a", "V5_3_3"), ("b", "V4_9_7")), (0, 1)):
        brokers.seen((name, number), f"{name}:{number}")
        brokers.running((name, number), version)
    brokers.configured(("a", 1), {"accessMessageInMemoryMaxRatio": "30"})
    content = brokers.changed()
    assert content is not None
    assert brokers.changed() is None
    assert content["physical_memory_bytes"] == 5
    assert "rocketmq_version" not in content
    assert content["brokers"]["a-1"]["effective_accessMessageInMemoryMaxRatio"] == 30
    (tmp_path / "brokers.json").write_text(json.dumps(content))
    again = BrokersJson("C", ("ns:2",), None, earlier_brokers(tmp_path, "C"))
    again.seen(("c", 0), "c:0")
    assert again.content() == content | {
        "name_servers": ["ns:2"],
        "brokers": content["brokers"] | {"c-0": {"addr": "c:0"}},
    }
    with pytest.raises(InputError, match="recording of cluster 'C'"):
        earlier_brokers(tmp_path, "D")
    (tmp_path / "brokers.json").write_text("{")
    with pytest.raises(InputError, match="cannot be read"):
        earlier_brokers(tmp_path, "C")
