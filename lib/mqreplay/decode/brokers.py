"""brokers.json of a recording: the cluster's brokers and their settings.

An absent setting has the default of RocketMQ's BrokerConfig or MessageStoreConfig, as in a broker.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from mqreplay.core.java import LONG_MAX, LONG_MIN
from mqreplay.core.store_settings import is_set
from mqreplay.decode.fastjson_text import Key, Value, read_fastjson
from mqreplay.decode.fields import bare_int, int_field, object_of, table_of, text_field, wrong_type
from mqreplay.decode.kind import FileKind, RecordingWays
from mqreplay.words.errors import DecodeError

LONGEST_CLUSTER = 255  # characters, as other names of RocketMQ; each row of a recording's tables carries the name


class Broker(NamedTuple):
    """One broker process. Ratios are percent of the physical memory.

    ``effective_access_message_in_memory_max_ratio`` is the recorded one (a 5.x slave lowers its own by 10),
    None if the recorder did not ask the running broker. ``properties`` are the configured texts.
    """

    key: str
    broker_name: str
    broker_id: int
    addr: str | None
    role: str
    slave_read_enable: bool
    access_message_in_memory_max_ratio: int
    effective_access_message_in_memory_max_ratio: int | None
    offset_check_in_slave: bool
    rocketmq_version: str | None
    physical_memory_bytes: int | None
    properties: dict[str, str]


class Brokers(NamedTuple):
    """The cluster of a recording: common settings of all its brokers, and a row for each."""

    cluster: str | None
    rocketmq_version: str | None
    physical_memory_bytes: int | None
    name_servers: list[str]
    brokers: list[Broker]


def decode_brokers(data: bytes) -> Brokers:
    """Return the cluster in the bytes of a brokers.json.

    A broker's own physical_memory_bytes and rocketmq_version have priority over the cluster's. Its name and id are its
    properties brokerName and brokerId, else the key, split at the last '-' (names may contain '-').

    Raises:
        DecodeError: torn, foreign (no brokers), wrong_type, bad_number, bad_key and those of fastjson_text.

    >>> broker = decode_brokers(b'{"brokers":{"rmq-north-1":{"addr":"10.0.0.1:10911"}}}').brokers[0]
    >>> broker.broker_name, broker.broker_id, broker.role, broker.access_message_in_memory_max_ratio
    ('rmq-north', 1, 'SLAVE', 40)
    """
    root_value = read_fastjson(data)
    table = table_of(root_value, "brokers")
    root = object_of(root_value, "brokers.json")
    version, memory = text_field(root, "rocketmq_version", None), _memory(root)
    servers = root.get("name_servers") or []
    if not isinstance(servers, list) or not all(isinstance(server, str) for server in servers):
        raise wrong_type("name_servers", "a list of addresses", servers)
    rows = [_broker(key, value, version, memory) for key, value in table.items()]
    return Brokers(
        cluster=_cluster(root),
        rocketmq_version=version,
        physical_memory_bytes=memory,
        name_servers=[str(server) for server in servers],
        brokers=rows,
    )


def split_broker_key(key: str) -> tuple[str, int]:
    """Return the broker name and id of "<brokerName>-<brokerId>", split at the last '-'.

    Raises:
        DecodeError: bad_key, if there is no numeric id after a '-'.

    >>> split_broker_key("rmq-north-0")
    ('rmq-north', 0)
    """
    name, _, number = key.rpartition("-")
    if not name or not (number.isascii() and number.isdigit()):
        raise DecodeError("bad_key", f"{key!r} should be <brokerName>-<brokerId>")
    return name, bare_int(number, f"the broker id in {key!r}")


def _broker(key: Key, value: Value, version: str | None, memory: int | None) -> Broker:
    if not isinstance(key, str):
        raise DecodeError("bad_key", f"{key!r} should be <brokerName>-<brokerId>")
    fields = object_of(value, key)
    raw = fields.get("properties")
    table = {} if raw is None else object_of(raw, "properties")
    properties = {str(name): _text(setting, str(name)) for name, setting in table.items()}
    name, broker_id = _identity(key, properties)
    own_memory = _memory(fields)
    return Broker(
        key=key,
        broker_name=name,
        broker_id=broker_id,
        addr=text_field(fields, "addr", None),
        role=properties.get("brokerRole", "ASYNC_MASTER" if broker_id == 0 else "SLAVE"),
        slave_read_enable=is_set(properties, "slaveReadEnable"),
        access_message_in_memory_max_ratio=_number(properties, "accessMessageInMemoryMaxRatio", 40),
        effective_access_message_in_memory_max_ratio=_effective_ratio(fields),
        offset_check_in_slave=is_set(properties, "offsetCheckInSlave"),
        rocketmq_version=text_field(fields, "rocketmq_version", version),
        physical_memory_bytes=memory if own_memory is None else own_memory,
        properties=properties,
    )


def _identity(key: str, properties: Mapping[str, str]) -> tuple[str, int]:
    name, number = properties.get("brokerName"), properties.get("brokerId")
    if number == "-1":
        number = None  # a 5.x broker whose id the controller gives
    if name is not None and number is not None:
        return name, bare_int(number, f"brokerId of {key}")
    from_key = split_broker_key(key)
    return (
        from_key[0] if name is None else name,
        from_key[1] if number is None else bare_int(number, f"brokerId of {key}"),
    )


def _cluster(root: Mapping[Key, Value]) -> str | None:
    name = text_field(root, "cluster", None)
    if name is not None and len(name) > LONGEST_CLUSTER:
        raise wrong_type("cluster", f"a name of at most {LONGEST_CLUSTER} characters", name)
    return name


def _memory(fields: Mapping[Key, Value]) -> int | None:
    if fields.get("physical_memory_bytes") is None:
        return None
    return int_field(fields, "physical_memory_bytes", 0, high=LONG_MAX)


def _effective_ratio(fields: Mapping[Key, Value]) -> int | None:
    name = "effective_accessMessageInMemoryMaxRatio"
    if fields.get(name) is None:
        return None
    # 1 configured on a 5.x slave is -9 in effect.
    return int_field(fields, name, 0, low=LONG_MIN, high=LONG_MAX)


def _text(value: Value, name: str) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return ""
    if isinstance(value, (dict, list)):
        raise wrong_type(f"the property {name}", "a plain value", value)
    return str(value)


def _number(properties: Mapping[str, str], name: str, default: int) -> int:
    text = properties.get(name)
    if text is None:
        return default
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 10):
        raise wrong_type(f"the property {name}", "a whole number", text)
    return int(text)


WITH_MEMORY: Final = "run `mqreplay record` with --physical-memory"
KIND: Final = FileKind(
    stem="brokers",
    table="silver.broker",
    label="brokers.json",
    recording=RecordingWays(
        WITH_MEMORY, "add brokers.json with physical_memory_bytes", WITH_MEMORY, by_hooks=False, importance=13
    ),
)
