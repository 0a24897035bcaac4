"""Find the broker of a file, from certain evidence only.

A name is certain if other evidence confirms it (brokers.json, mqadmin, a broker's configuration or log, or the topic of
its own name in topics.json), or if the path is that of a recording. A folder broker...-0 of a master and a pod of
rocketmq-operator are accepted too, as unconfirmed. A path alone makes no slave: broker-1 is a usual name of a master.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from typing import Final, NamedTuple

from mqreplay.core.topic_route import MASTER_ID
from mqreplay.decode.brokers import split_broker_key
from mqreplay.importer.brokers.name_readings import (
    Reading,
    id_of_last,
    is_pod,
    master_of_role,
    operator_pod,
    readings_of,
)
from mqreplay.words.errors import DecodeError, InputError

_HOST_PORT = re.compile(r"(?P<host>.+?)(?:[:_-](?P<port>[0-9]{4,5}))?")
_LIKE_A_BROKER: Final = "broker"  # how a folder begins that names a broker without other evidence
_SHOWN: Final = 3  # folders in a question
_KNOWS: Final = "its path, and other evidence knows the name"
SETTLE: Final = "add the output of `mqadmin clusterList -n NAMESRV`, or each broker's broker.conf beside its files"
NO_BROKER: Final = (
    "its broker is unknown; give --broker NAME-ID if all such files are of one broker, or put them into "
    "a folder NAME-ID, such as broker-a-0, or add the outputs of mqadmin clusterList and getBrokerConfig"
)


class LogBroker(NamedTuple):
    """The broker that logs name; None: they do not show it."""

    name: str | None
    broker_id: int | None
    addr: str | None


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
        self._elected: dict[str, str] = {}
        self._numbered: dict[str, set[tuple[int, str]]] = defaultdict(set)  # folders NAME-ID by NAME

    def see(self, hints: Iterable[str]) -> None:
        """Add the folders of a file, so that several folders NAME-ID are seen together."""
        for hint in hints:
            if (numbered := id_of_last(hint)) is not None and hint.lower().startswith(_LIKE_A_BROKER):
                self._numbered[numbered[0]].add((numbered[1], hint))

    def add_elected(self, broker_name: str, why: str) -> None:
        """Add the name of a broker whose id its configuration does not give; ``why`` says which setting."""
        self._ids[broker_name].update()
        self._elected[broker_name] = why

    def add(self, broker_name: str, broker_id: int, addr: str | None = None) -> None:
        """Add a broker."""
        self._ids[broker_name].add(broker_id)
        if addr:
            self._addresses[addr] = (broker_name, broker_id)

    def add_name(self, broker_name: str) -> None:
        """Add the name of a broker."""
        self._ids[broker_name].update()

    def add_logs(self, brokers: Iterable[LogBroker]) -> None:
        """Add the brokers that logs name."""
        for name, broker_id, addr in brokers:
            if name is not None and broker_id is not None:
                self.add(name, broker_id, addr)
            elif name is not None:
                self.add_name(name)

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
        >>> names.find(["broker-a-1"]) is None
        True
        """
        hints = list(hints)
        for hint in hints:
            if (found := self._certain(hint, in_recording, own_name)) is not None:
                return found
        if own_name is None:
            for hint in hints:
                if (alone := self._by_path_alone(hint)) is not None:
                    return Named(*alone, "its path alone", False)
        elif (only := self._only_id(own_name)) is not None:
            return Named(own_name, only, "its own topic in topics.json", True)
        is_one = len(self._numbered_like(hints)) < 2 and own_name in (None, self._option and self._option[0])
        if self._option is not None and is_one:
            return Named(*self._option, "--broker", True)
        return None

    def why_unknown(self, hints: Iterable[str], own_name: str | None = None) -> str:
        """Return why `find` names no broker: the possible readings, and what settles them.

        >>> names = BrokerNames(); names.see(["broker-1"])
        >>> print(names.why_unknown(["broker-1"])[:98])
        its broker is unknown: the folder broker-1 can be id 1 of a broker broker, or a master named brok
        """
        hints = list(hints)
        named = own_name or next((r.name for hint in hints for r in readings_of(hint) if r.name in self._elected), None)
        if named is not None:
            why = self._elected.get(named, "nothing shows its brokerId")
            return f"it is of the broker {named}, but {why}; give --broker {named}-ID (0 for a master), or {SETTLE}"
        folders = [hint for _, hint in self._numbered_like(hints)]
        if not folders:
            return NO_BROKER
        name, broker_id = id_of_last(folders[-1]) or ("", 0)
        if len(folders) == 1:
            what = f"the folder {folders[0]} can be id {broker_id} of a broker {name}, or a master named {folders[0]}"
        else:
            some = ", ".join(folders[:_SHOWN]) + (", ..." if len(folders) > _SHOWN else "")
            what = f"the folders {some} can be ids of one broker named {name}, or names of masters"
        if self._option is not None:
            what += ", and --broker names one broker"
        return (
            f"its broker is unknown: {what}; {SETTLE}, or import one folder at a time with "
            f"--broker {folders[-1]}-0 for the master {folders[-1]}, or --broker {name}-{broker_id}"
        )

    def _certain(self, hint: str, in_recording: bool, own_name: str | None) -> Named | None:
        if in_recording and (named := id_of_last(hint)) is not None and "/" not in hint:
            return Named(*named, "the folders of a recording", True)
        known = [found for reading in readings_of(hint) if (found := self._known(reading, own_name)) is not None]
        exact = [found for found in known if found.broker_id in self._ids.get(found.broker_name, ())] or known
        if exact and all(found[:2] == exact[0][:2] for found in exact):
            return exact[0]
        if (match := _HOST_PORT.fullmatch(hint)) and (at := self._at(match["host"], match["port"])) is not None:
            return Named(*at, "its host, and other evidence knows the broker there", True)
        return None

    def _known(self, reading: Reading, own_name: str | None) -> Named | None:
        """Return the broker of a reading if other evidence knows its name."""
        name, broker_id = reading.name, reading.broker_id
        if reading.is_whole:
            only = self._only_id(name)
            how = "its path, and other evidence knows one broker of that name"
            return None if only is None else Named(name, only, how, True)
        if name not in self._ids and name != own_name:
            return None
        if broker_id is None and (broker_id := self._only_slave(name)) is None:
            return None
        if name in self._elected and broker_id not in self._ids[name]:
            return None
        return Named(
            name, broker_id, _KNOWS if name in self._ids else "its path, and its own topic in topics.json", True
        )

    def _by_path_alone(self, hint: str) -> tuple[str, int] | None:
        """Return the broker that a path names without other evidence: a master, or a pod of rocketmq-operator."""
        if not hint.lower().startswith(_LIKE_A_BROKER) or hint in self._ids:
            return None
        if (pod := operator_pod(hint)) is not None:
            return pod
        if (name := master_of_role(hint)) is not None:
            return name, MASTER_ID
        named = id_of_last(hint)
        if named is not None and named[0] in self._ids:
            return None
        # "broker-0" is the first pod of a StatefulSet, and any folder beside NAME-0 makes its name doubtful.
        is_doubtful = is_pod(hint) or len(self._numbered_like([hint])) > 1
        if named is None or named[0].lower() == _LIKE_A_BROKER or is_doubtful:
            return None
        return named if named[1] == MASTER_ID else None

    def _numbered_like(self, hints: Iterable[str]) -> list[tuple[int, str]]:
        """Return id and folder of the folders NAME-ID that have the NAME of one of these, in order."""
        like = {numbered[0] for hint in hints if (numbered := id_of_last(hint)) is not None}
        return sorted(each for name in like for each in self._numbered.get(name, ()))

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
