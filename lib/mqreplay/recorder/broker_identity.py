"""The broker that a configuration file or topics.json describes, with the defaults of RocketMQ's own classes. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from mqreplay.core.topic_route import MASTER_ID
from mqreplay.decode.topics import decode_topics
from mqreplay.words.errors import DecodeError

BROKER_NAME_KEY: Final = "brokerName"
ID: Final = "brokerId"
CLUSTER: Final = "brokerClusterName"
ROLE: Final = "brokerRole"
# Settings of BrokerConfig and MessageStoreConfig that show a broker's configuration.
_OF_BROKERS: Final = frozenset(
    {
        BROKER_NAME_KEY,
        ID,
        CLUSTER,
        ROLE,
        "storePathRootDir",
        "storePathCommitLog",
        "flushDiskType",
        "deleteWhen",
        "haListenPort",
    }
)
_ELECTED: Final = {
    "enableDLegerCommitLog": "DLedger elects its brokerId (enableDLegerCommitLog=true)",
    "enableControllerMode": "a controller gives its brokerId (enableControllerMode=true)",
}
INHERIT: Final = 1  # PermName.PERM_INHERIT: on topics that a broker creates itself
SYNC_TOPIC: Final = "rmq_sys_SYNC_BROKER_MEMBER_"
_HOST: Final = re.compile(r"[\w.:%\[\]-]+", re.ASCII)
NO_CONFIGURATION: Final = "it is not a broker configuration: it has none of brokerName, brokerId and brokerClusterName"
NO_NAME: Final = (
    "it has no brokerName, so its broker takes the name of its host (DEFAULT_BROKER in 5.x if it has none); add "
    "its brokerName"
)


class Identity(NamedTuple):
    """The broker of a configuration: its name, and its id if that is certain.

    ``why`` says why name or id are unknown; ``note`` says how the id was found if not from brokerId.
    """

    name: str | None
    broker_id: int | None
    why: str | None = None
    note: str | None = None
    is_elected: bool = False


class Configs(NamedTuple):
    """Brokers by the folder of their configuration, and the names of those without an id there."""

    brokers: dict[str, tuple[str, int]]
    names: dict[str, str]


def identity_of(settings: Mapping[str, str]) -> Identity:
    """Return the broker of a configuration file.

    brokerId is 0 by default (BrokerIdentity, BrokerConfig), and for every master, whatever is written
    (BrokerStartup). With DLedger and with a controller, the file does not show it.

    >>> identity_of({"brokerName": "broker-b"})[:2], identity_of({"brokerName": "b", "brokerId": "1"})[:2]
    (('broker-b', 0), ('b', 1))
    >>> identity_of({"brokerName": "b", "brokerId": "0", "enableDLegerCommitLog": "true"}).why
    'DLedger elects its brokerId (enableDLegerCommitLog=true)'
    """
    name = settings.get(BROKER_NAME_KEY)
    if not _OF_BROKERS & settings.keys():
        return Identity(None, None, NO_CONFIGURATION)
    if not name:
        return Identity(None, None, NO_NAME)
    if "/" in name or not name.isprintable():
        return Identity(None, None, f"its brokerName {name!r} cannot name a folder")
    for setting, why in _ELECTED.items():
        if settings.get(setting, "").lower() == "true":
            return Identity(name, None, why, is_elected=True)
    return _with_id(name, settings.get(ID), settings.get(ROLE, "").upper())


def _with_id(name: str, written: str | None, role: str) -> Identity:
    if written and not (written.isascii() and written.isdigit() and len(written) < 10):
        return Identity(name, None, f"its brokerId is {written[:40]}; a brokerId is 0 for a master, else above 0")
    number = int(written) if written else None
    if role == "SLAVE" and not number:
        return Identity(name, None, "it is of a slave (brokerRole=SLAVE) and has no brokerId above 0; add its brokerId")
    if role.endswith("_MASTER") and number:
        return Identity(
            name, MASTER_ID, note=f"brokerId={number} with brokerRole={role}: such a broker is a master, id 0"
        )
    if number is None:
        return Identity(name, MASTER_ID, note="without brokerId: 0, which is the default of BrokerConfig")
    return Identity(name, number)


def address_of(settings: Mapping[str, str]) -> str | None:
    """Return brokerIP1 and listenPort; None if one is missing, or is a placeholder instead of an address.

    >>> address_of({"brokerIP1": "10.0.0.9", "listenPort": "10911"})
    '10.0.0.9:10911'
    >>> address_of({"brokerIP1": "外网ip", "listenPort": "10911"}) is None
    True
    """
    host, port = settings.get("brokerIP1", ""), settings.get("listenPort", "")
    is_port = port.isascii() and port.isdigit() and 0 < int(port) < 65536
    return f"{host}:{port}" if is_port and _HOST.fullmatch(host) else None


def own_name_of(topics: bytes) -> str | None:
    """Return the brokerName from a topics.json: brokers create a topic of their own name. None: not certain.

    Source: TopicConfigManager's constructor. The topic of the broker's name has one queue, and may be inherited.

    >>> own_name_of(b'{"topicConfigTable":{"die-1":{"perm":7,"readQueueNums":1,"writeQueueNums":1}}}')
    'die-1'
    """
    try:
        rows = decode_topics(topics).rows
    except DecodeError:
        return None
    sync = [row.topic_name.removeprefix(SYNC_TOPIC) for row in rows if row.topic_name.startswith(SYNC_TOPIC)]
    if len(sync) == 1:
        return sync[0]
    own = [
        row.topic_name
        for row in rows
        if row.perm & INHERIT and row.read_queue_nums == row.write_queue_nums == 1 and row.topic_name != "TBW102"
    ]
    return own[0] if len(own) == 1 else None
