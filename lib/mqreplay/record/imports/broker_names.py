"""Find the broker of a file, from certain evidence only.

A name is certain if other evidence confirms it (brokers.json, mqadmin, a broker's configuration or the topic of its own
name in topics.json), or if the path is that of a recording. A folder broker...-ID is accepted too, as unconfirmed.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from mqreplay.decode.brokers import split_broker_key
from mqreplay.decode.topics import decode_topics
from mqreplay.errors import DecodeError, InputError

_NAME_ID = re.compile(r"(?P<name>[^/]+?)[-_.@](?P<id>[0-9]{1,2})")
_LAST_ID = re.compile(r"(?P<name>[^/]+)-(?P<id>[0-9]{1,2})")
_NAME_SLASH_ID = re.compile(r"(?P<name>[^/]+)/(?P<id>[0-9]{1,2})")
_ROLE = re.compile(r"(?P<name>.+?)[-_.](?P<role>master|m|slave|s)", re.IGNORECASE)
_HOST_PORT = re.compile(r"(?P<host>.+?)(?:[:_-](?P<port>[0-9]{4,5}))?")
_INHERIT = 1  # PermName.PERM_INHERIT: on topics that a broker creates itself
_SYNC_TOPIC = "rmq_sys_SYNC_BROKER_MEMBER_"


class Named(NamedTuple):
    """The broker of a file. ``how`` says which evidence names it; ``confirmed``: not only the path."""

    broker_name: str
    broker_id: int
    how: str
    confirmed: bool

    @property
    def key(self) -> str:
        """Return the name that brokers.json and snapshots/ use."""
        return f"{self.broker_name}-{self.broker_id}"


def broker_of_option(text: str) -> tuple[str, int]:
    """Return the broker that --broker names. Raises InputError.

    >>> broker_of_option("broker-a-0")
    ('broker-a', 0)
    """
    try:
        name, broker_id = split_broker_key(text)
    except DecodeError:
        raise InputError(f"--broker {text!r} should be NAME-ID, such as broker-a-0 for a master") from None
    if "/" in name or not name.isprintable() or broker_id >= 2**31:
        raise InputError(f"--broker {text!r} cannot name a folder; give NAME-ID, such as broker-a-0")
    return name, broker_id


class BrokerNames:
    """The brokers in the evidence, found by hints."""

    def __init__(self, option: tuple[str, int] | None = None) -> None:
        """Take ``option``, the broker of files whose path names none."""
        self._option = option
        self._ids: dict[str, set[int]] = defaultdict(set)
        self._addresses: dict[str, tuple[str, int]] = {}
        self._complete = False

    def add(self, broker_name: str, broker_id: int, addr: str | None = None) -> None:
        """Add a broker."""
        self._ids[broker_name].add(broker_id)
        if addr:
            self._addresses[addr] = (broker_name, broker_id)

    def add_name(self, broker_name: str) -> None:
        """Add the name of a broker."""
        self._ids[broker_name].update()

    def complete(self) -> None:
        """Record that a name server's list was read: a name with one id has no other id."""
        self._complete = True

    @property
    def addresses(self) -> dict[str, tuple[str, int]]:
        """Return the broker of each known ``host:port``."""
        return dict(self._addresses)

    @property
    def keys(self) -> list[str]:
        """Return the known brokers, each as name-id."""
        return sorted(f"{name}-{broker_id}" for name, ids in self._ids.items() for broker_id in ids)

    def of_address(self, address: str) -> tuple[str, int] | None:
        """Return the broker at ``host:port``."""
        return self._addresses.get(address)

    def find(self, hints: Iterable[str], in_recording: bool = False, own_name: str | None = None) -> Named | None:
        """Return the broker that the first matching hint names; else that of --broker, else None.

        ``own_name``: the broker name from a topics.json beside the file. ``in_recording``: the hints are folders of
        snapshots/, which name their broker.

        >>> names = BrokerNames(); names.add("die-1", 0, "10.0.0.1:10911"); names.add("die-1", 1)
        >>> names.find(["night", "die-1-1"]).key, names.find(["10.0.0.1"]).key, names.find(["node-1"])
        ('die-1-1', 'die-1-0', None)
        >>> names.find(["broker-a-0"])
        Named(broker_name='broker-a', broker_id=0, how='its path alone', confirmed=False)
        """
        hints = list(hints)
        for by in (self._certain, self._by_path_alone):
            for hint in hints:
                if (found := by(hint, in_recording, own_name)) is not None:
                    return found
        if own_name is not None and (only := self._only_id(own_name)) is not None:
            return Named(own_name, only, "its own topic in topics.json", True)
        if self._option is not None:
            return Named(*self._option, "--broker", True)
        return None

    def _certain(self, hint: str, in_recording: bool, own_name: str | None) -> Named | None:
        for match in _NAME_SLASH_ID.fullmatch(hint), _NAME_ID.fullmatch(hint), _LAST_ID.fullmatch(hint):
            if match is None:
                continue
            name, broker_id = match["name"], int(match["id"])
            if name in self._ids:
                return Named(name, broker_id, "its path, and other evidence knows the name", True)
            if name == own_name:
                return Named(name, broker_id, "its path, and its own topic in topics.json", True)
        if in_recording and (match := _LAST_ID.fullmatch(hint)):
            return Named(match["name"], int(match["id"]), "the folders of a recording", True)
        if (match := _ROLE.fullmatch(hint)) and (match["name"] in self._ids or match["name"] == own_name):
            role_id = 0 if match["role"].lower() in ("master", "m") else self._only_slave(match["name"])
            if role_id is not None:
                return Named(match["name"], role_id, "its path, and other evidence knows the name", True)
        if (only := self._only_id(hint)) is not None:
            return Named(hint, only, "its path, and other evidence knows one broker of that name", True)
        if (match := _HOST_PORT.fullmatch(hint)) and (at := self._at(match["host"], match["port"])) is not None:
            return Named(*at, "its host, and other evidence knows the broker there", True)
        return None

    def _by_path_alone(self, hint: str, in_recording: bool, own_name: str | None) -> Named | None:
        match = _NAME_SLASH_ID.fullmatch(hint)
        if match is None or _LAST_ID.fullmatch(match["name"]):  # the name is without id: the folder below has it
            match = _LAST_ID.fullmatch(hint)
        if own_name is not None or match is None or not match["name"].lower().startswith("broker"):
            return None
        return Named(match["name"], int(match["id"]), "its path alone", False)

    def _only_id(self, name: str) -> int | None:
        ids = self._ids.get(name, set())
        return next(iter(ids)) if len(ids) == 1 and self._complete else None

    def _only_slave(self, name: str) -> int | None:
        slaves = self._ids.get(name, set()) - {0}
        return next(iter(slaves)) if len(slaves) == 1 else None

    def _at(self, host: str, port: str | None) -> tuple[str, int] | None:
        if port is not None:
            return self._addresses.get(f"{host}:{port}")
        there = {broker for address, broker in self._addresses.items() if address.rpartition(":")[0] == host}
        return there.pop() if len(there) == 1 else None


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
    sync = [row.topic_name.removeprefix(_SYNC_TOPIC) for row in rows if row.topic_name.startswith(_SYNC_TOPIC)]
    if len(sync) == 1:
        return sync[0]
    own = [
        row.topic_name
        for row in rows
        if row.perm & _INHERIT and row.read_queue_nums == row.write_queue_nums == 1 and row.topic_name != "TBW102"
    ]
    return own[0] if len(own) == 1 else None
