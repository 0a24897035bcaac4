"""A broker's store on this machine: its config folder and its broker."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from mqreplay.decode.brokers import split_broker_key
from mqreplay.decode.consumer_offset import (
    FILE_NAME,
    FILE_NAMES,
    LMQ_FILE_NAME,
    decode_consumer_offset,
    decode_lmq_consumer_offset,
)
from mqreplay.decode.delay_offset import decode_delay_offset
from mqreplay.decode.message_request_mode import decode_message_request_mode
from mqreplay.decode.pop_order import decode_pop_order
from mqreplay.decode.subscription_group import decode_subscription_group
from mqreplay.decode.text import text_of_bytes
from mqreplay.decode.topics import decode_topics
from mqreplay.recorder.broker_identity import identity_of, own_name_of
from mqreplay.recorder.whole_copy import signature_of
from mqreplay.words.errors import DecodeError, InputError

OFFSETS_FILE: Final = FILE_NAME
BAK: Final = ".bak"
DELAY_OFFSETS: Final = "delayOffset.json"
DECODERS: Final[Mapping[str, Callable[[bytes], object]]] = {  # of the files that a broker's folder has
    OFFSETS_FILE: decode_consumer_offset,
    LMQ_FILE_NAME: decode_lmq_consumer_offset,
    "topics.json": decode_topics,
    "subscriptionGroup.json": decode_subscription_group,
    DELAY_OFFSETS: decode_delay_offset,
    "messageRequestMode.json": decode_message_request_mode,
    "consumerOrderInfo.json": decode_pop_order,
}
FILES: Final = tuple(DECODERS)
# Folders of RocksDB with offsets, by the setting of the broker. Source: RocksDBConsumerOffsetManager, ConfigStorage.
ROCKSDB: Final = {
    "consumerOffsets": "storeType=defaultRocksDB",
    "metadata": "storeType=defaultRocksDB in one database",
    "rdb": "configManagerVersion=v2",
}
PROPERTIES: Final = "broker.properties"  # the settings of a broker that was started without -c
# TopicConfigManager#init gives each 5.x broker a topic of this name.
NO_FILE: Final = (0, 0, 0)
_PROPERTY = re.compile(r"\s*([^\s:=#!][^\s:=]*)\s*[:=\s]\s*(.*?)\s*")


class BrokerStore(NamedTuple):
    """The config folder of a broker."""

    config: Path
    broker_name: str
    broker_id: int

    @property
    def name(self) -> str:
        """Return the broker in the form of snapshot folders."""
        return f"{self.broker_name}-{self.broker_id}"


def broker_store(folder: str, broker: str | None) -> BrokerStore:
    """Return the store in ``folder``, which is storePathRootDir or the config folder in it.

    ``broker`` is NAME-ID or a broker.conf. Without it, the store's broker.properties names the broker.

    Raises:
        InputError: the store does not exist, its broker is unknown, or the broker keeps its state in RocksDB.
    """
    config = _config_folder(Path(folder)).resolve()
    if broker is not None:
        return BrokerStore(config, *_broker_of_option(broker))
    with suppress(OSError):
        return BrokerStore(config, *_from_properties(config / PROPERTIES))
    name = _name_in_topics(config / "topics.json")
    known = "the files of a store do not name its broker" if name is None else "the files of a store do not hold its id"
    raise InputError(
        f"--store {folder}: {known}; add --broker {name or 'broker-a'}-0 (brokerName and brokerId, 0 for a master), or "
        "--broker with the path of its broker.conf"
    )


def read_properties(text: str) -> dict[str, str]:
    r"""Return the settings of a broker.conf.

    >>> read_properties("# a\nbrokerName = broker-a\nbrokerId=1\n")
    {'brokerName': 'broker-a', 'brokerId': '1'}
    """
    found = (_PROPERTY.fullmatch(line) for line in text.splitlines())
    return {match[1]: match[2] for match in found if match}


def _config_folder(folder: Path) -> Path:
    if not folder.is_dir():
        raise InputError(f"--store {folder} is not a folder; give storePathRootDir of the broker's broker.conf")
    try:
        for config in (folder, folder / "config"):
            if (layout := rocksdb_layout(config)) is not None:
                raise InputError(
                    f"--store {folder}: this broker keeps its offsets in RocksDB ({layout}), not in files that can be "
                    "copied; record it over the network: mqreplay record NAMESRV --out RECORDING"
                )
            if any((config / f"{name}{suffix}").exists() for name in FILES for suffix in ("", BAK)):
                return config
    except PermissionError as error:
        raise InputError(f"--store {folder} cannot be read ({error.strerror}); run as the broker's user") from None
    raise InputError(
        f"--store {folder} holds none of {', '.join(FILES)}, nor does {folder / 'config'}; give storePathRootDir of "
        "the broker's broker.conf, once the broker has run"
    )


def rocksdb_layout(config: Path) -> str | None:
    """Return where a config folder has the offsets in RocksDB; None if they are in a JSON file.

    A RocksDB that is older than the offset file is unused. Other ones, such as store/rocksdbstore of each 5.5 broker,
    hold no offsets.
    """
    saved = max((signature_of(config / name) or NO_FILE)[2] for name in FILE_NAMES)
    for name, setting in ROCKSDB.items():
        folder = config / name
        if (folder / "CURRENT").exists() and max(path.stat().st_mtime_ns for path in folder.iterdir()) > saved:
            return f"{folder}: {setting}"
    return None


def unused_offsets_file(config: Path) -> str | None:
    """Return the name of the offset file that the broker does not write any more; None if there are not two.

    Each broker writes its own one every 5 s (flushConsumerOffsetInterval) and reads no other: with enableLmq=true it is
    lmqConsumerOffset.json, else consumerOffset.json. Source: BrokerController, LmqConsumerOffsetManager#configFilePath.
    """
    saved = {
        name: max((signature_of(config / f"{name}{suffix}") or NO_FILE)[2] for suffix in ("", BAK))
        for name in FILE_NAMES
    }
    if not all(saved.values()):
        return None
    return OFFSETS_FILE if saved[LMQ_FILE_NAME] >= saved[OFFSETS_FILE] else LMQ_FILE_NAME


def _broker_of_option(broker: str) -> tuple[str, int]:
    path = Path(broker)
    if "/" in broker or path.is_file():
        try:
            return _from_properties(path)
        except OSError as error:
            raise InputError(f"--broker {broker} cannot be read: {error.strerror}") from None
    try:
        return split_broker_key(broker)
    except DecodeError:
        raise InputError(f"--broker {broker!r} is neither NAME-ID, such as broker-a-0, nor a broker.conf") from None


def _from_properties(path: Path) -> tuple[str, int]:
    """Return the broker that a broker.conf describes. Raises OSError if it cannot be read."""
    text, _ = text_of_bytes(path.read_bytes())
    found = identity_of(read_properties(text))
    if found.name is None or found.broker_id is None:
        raise InputError(f"{path} does not identify the broker: {found.why}; give --broker NAME-ID")
    return found.name, found.broker_id


def _name_in_topics(path: Path) -> str | None:
    """Return the broker's name if topics.json shows it."""
    try:
        return own_name_of(path.read_bytes())
    except OSError:
        return None
