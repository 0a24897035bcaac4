"""The broker of a copied file: from a recording's folders, evidence beside it, or its path."""

from __future__ import annotations

import datetime as dt
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeVar

from mqreplay.importer.brokers.broker_names import BrokerNames, LogBroker, Named
from mqreplay.importer.files.imported_files import UNREADABLE, Found
from mqreplay.importer.files.layout import Place
from mqreplay.importer.files.sources import Source
from mqreplay.importer.logs.log_identity import home_of
from mqreplay.recorder.broker_identity import Configs, own_name_of

_T = TypeVar("_T")
TOPICS: Final = "topics.json"
_TOPICS_READ: Final = 3  # files topics.json of a broker that are read to find its own topic


@dataclass
class CopyBrokers:
    """The evidence beside copies: ``configs`` by folder, ``logs`` by the home of the broker (see home_of)."""

    names: BrokerNames
    configs: Configs
    logs: dict[str, LogBroker]
    zone: dt.tzinfo
    _own: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))  # by the folder above the copies
    _topics: dict[str, Source] = field(default_factory=dict)  # by folder
    _own_of: dict[str, str | None] = field(default_factory=dict)

    def learn(self, copies: Iterable[Found]) -> None:
        """Add the names of brokers from their own topics in topics.json, and see all folders."""
        read: dict[str, int] = defaultdict(int)
        for source, place in copies:
            if not _is_recording(source):
                self.names.see(place.broker_hints)
            if place.name != TOPICS:
                continue
            self._topics[source.folder] = source
            above = source.folder.rpartition("/")[0]
            if read[above] < _TOPICS_READ:
                read[above] += 1
                if (name := self._own_name(source.folder)) is not None:
                    self.names.add_name(name)
                    self._own[above].add(name)

    def broker_of(self, source: Source, place: Place) -> Named | str:
        """Return the broker of a file, or why it is unknown."""
        if _is_recording(source):
            named = self.names.find([source.parts[-3]], in_recording=True)
            if named is not None:
                return named
        if (config := config_of(source.folder, self.configs.brokers)) is not None:
            return self._by_config(source, place, *config)
        log = self.logs.get(home_of(source.folder, self.zone), LogBroker(None, None, None))
        of_config = config_of(source.folder, self.configs.names)
        name = log.name or (of_config[1] if of_config is not None else None)
        if name is not None and log.broker_id is not None:
            return Named(name, log.broker_id, "the broker's log beside it", True)
        named = self.names.find(place.broker_hints)
        if named is not None and named.confirmed and named.how != "--broker":
            return named
        own = self._own_name(source.folder) or name
        named = self.names.find(place.broker_hints, own_name=own)
        return named if named is not None else self.names.why_unknown(place.broker_hints, own)

    def _by_config(self, source: Source, place: Place, folder: str, broker: tuple[str, int]) -> Named | str:
        """Return the broker of a configuration, unless evidence nearer to the file names another."""
        below = source.folder[len(folder) :]
        nearer = self.names.find(hint for hint in place.broker_hints if hint in below)
        others = set(self._own.get(source.folder.rpartition("/")[0], ()))
        if nearer is not None and nearer.how != "--broker":
            others.add(nearer.broker_name)
        if others and broker[0] not in others:
            return (
                f"the configuration in {folder} is of {broker[0]}, but its topics.json or folder is of "
                f"{', '.join(sorted(others))}; put each broker's configuration beside its own files"
            )
        return Named(*broker, "the broker's configuration beside it", True)

    def _own_name(self, folder: str) -> str | None:
        if folder not in self._topics:
            return None
        if folder not in self._own_of:
            try:
                self._own_of[folder] = own_name_of(self._topics[folder].read())
            except UNREADABLE:
                self._own_of[folder] = None
        return self._own_of[folder]


def config_of(folder: str, configs: Mapping[str, _T]) -> tuple[str, _T] | None:
    """Return the folder and value of the configuration in the folder, its conf/, or the nearest folder above.

    >>> config_of("night/h1/store/config", {"night/h1/conf": ("broker-a", 0)})
    ('night/h1', ('broker-a', 0))
    """
    while folder:
        for at in (folder, f"{folder}/conf"):
            if at in configs:
                return folder, configs[at]
        folder = folder.rpartition("/")[0]
    return None


def _is_recording(source: Source) -> bool:
    parts = source.parts
    return len(parts) >= 4 and parts[-4] == "snapshots"
