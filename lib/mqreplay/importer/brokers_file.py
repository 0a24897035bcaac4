"""brokers.json of an imported recording, from other recordings, mqadmin, broker configurations and logs."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from mqreplay.decode.brokers import decode_brokers
from mqreplay.decode.capture.cluster import CapturedCluster
from mqreplay.decode.fastjson_text import read_fastjson
from mqreplay.decode.text import text_of_bytes
from mqreplay.importer.brokers.broker_names import BrokerNames
from mqreplay.importer.files.imported_files import MOST_TEXT, UNREADABLE, ImportedFiles, why_unreadable
from mqreplay.importer.files.layout import BROKER_CONFIG, BROKERS
from mqreplay.importer.import_report import CONFIGURATION, ImportReport
from mqreplay.importer.mqadmin.admin import BrokerFacts
from mqreplay.importer.mqadmin.lists import open_settings
from mqreplay.recorder.broker_identity import BROKER_NAME_KEY, CLUSTER, ID, Configs, Identity, address_of, identity_of
from mqreplay.words.errors import DecodeError

RATIO: Final = "accessMessageInMemoryMaxRatio"


@dataclass
class BrokersFile:
    """The known brokers. The first source of a broker's settings counts, so add the best one first."""

    names: BrokerNames
    cluster: list[str] = field(default_factory=list)
    name_servers: list[str] = field(default_factory=list)
    brokers: dict[str, dict[str, Any]] = field(default_factory=dict)
    top: dict[str, Any] = field(default_factory=dict)
    versions: set[str] = field(default_factory=set)

    def add_recorded(self, data: bytes) -> None:
        """Add the brokers.json of a recording. Raises DecodeError."""
        decoded = decode_brokers(data)
        root: Any = read_fastjson(data)
        for name in ("physical_memory_bytes", "rocketmq_version"):
            if root.get(name) is not None:
                self.top.setdefault(name, root[name])
        self._see_cluster(decoded.cluster)
        self._see_servers(decoded.name_servers)
        for broker in decoded.brokers:
            self.names.add(broker.broker_name, broker.broker_id, broker.addr)
            self.brokers.setdefault(broker.key, root["brokers"][broker.key])

    def add_config(self, data: bytes) -> Identity:
        """Add a broker's configuration file, in UTF-8, GBK or UTF-16, and return its broker."""
        text, _ = text_of_bytes(data)
        settings = open_settings(text.splitlines(), "=")
        found = identity_of(settings)
        if found.name is None:
            return found
        self._see_cluster(settings.get(CLUSTER))
        self._see_servers((settings.get("namesrvAddr") or "").split(";"))
        if found.broker_id is not None:
            addr = address_of(settings)
            self.names.add(found.name, found.broker_id, addr)
            described = {"addr": addr, "properties": settings | {ID: str(found.broker_id)}}
            self.brokers.setdefault(f"{found.name}-{found.broker_id}", described)
        elif found.is_elected:
            self.names.add_elected(found.name, str(found.why))
        else:
            self.names.add_name(found.name)
        return found

    def add_facts(self, facts: Mapping[str, BrokerFacts], name_servers: Iterable[str]) -> None:
        """Add facts from mqadmin. The answer of a running broker has priority over its configuration file."""
        self._see_servers(name_servers)
        for key, fact in facts.items():
            self._see_cluster(fact.cluster)
            if fact.version is not None:
                self.versions.add(fact.version)
            known = self.brokers.get(key)
            if fact.properties is not None and (known is None or "effective" not in "".join(known)):
                known = {**(known or {}), "properties": fact.properties}
                ratio = fact.properties.get(RATIO, "").removeprefix("-")
                if ratio.isascii() and ratio.isdigit() and len(ratio) < 10:
                    # A running broker reports the value in effect: a 5.x slave has lowered it by 10.
                    known[f"effective_{RATIO}"] = int(fact.properties[RATIO])
                self._see_servers(fact.properties.get("namesrvAddr", "").split(";"))
                self.brokers[key] = known
            if known is not None:
                known["addr"] = known.get("addr") or fact.addr
                known["rocketmq_version"] = known.get("rocketmq_version") or fact.version

    def add_found(self, found: Mapping[str, Mapping[str, str]]) -> None:
        """Add facts from logs: the clusters, and more about brokers with known settings."""
        for key, settings in found.items():
            self._see_cluster(settings.get("cluster"))
            if key in self.brokers:
                for name in ("addr", "rocketmq_version"):
                    self.brokers[key][name] = self.brokers[key].get(name) or settings.get(name)

    def add_captured(self, found: CapturedCluster) -> None:
        """Add facts from packet captures: names, and the settings that brokers answered."""
        for cluster in found.clusters:
            self._see_cluster(cluster)
        self._see_servers(found.name_servers)
        facts = {}
        for asked, text in found.brokers.items():
            properties = open_settings(text.splitlines(), "=")
            name, number = properties.get(BROKER_NAME_KEY), properties.get(ID)
            if name and number and number.isascii() and number.isdigit() and len(number) < 10:
                host, port = properties.get("brokerIP1"), properties.get("listenPort")
                addr = f"{host}:{port}" if host and port else asked
                self.names.add(name, int(number), addr)
                facts[f"{name}-{int(number)}"] = BrokerFacts(addr, properties.get(CLUSTER), None, properties, 0)
        self.add_facts(facts, [])

    def as_bytes(self) -> bytes | None:
        """Return the file; None if nothing is known. Brokers without known settings are left out."""
        if len(self.versions) == 1:
            self.top.setdefault("rocketmq_version", next(iter(self.versions)))
        if not self.brokers and not self.cluster:
            return None
        brokers = {
            key: {name: value for name, value in settings.items() if value is not None}
            for key, settings in sorted(self.brokers.items())
        }
        cluster = {"cluster": self.cluster[0]} if len(self.cluster) == 1 else {}
        whole = {**cluster, **self.top, "name_servers": self.name_servers, "brokers": brokers}
        data = json.dumps(whole, indent=1, ensure_ascii=False).encode() + b"\n"
        try:
            decode_brokers(data)
        except DecodeError as error:
            raise DecodeError(error.code, f"the brokers' settings cannot be used together: {error.detail}") from None
        return data

    def _see_cluster(self, name: str | None) -> None:
        if name and name not in self.cluster:
            self.cluster.append(name)

    def _see_servers(self, servers: Iterable[str]) -> None:
        for server in servers:
            if server.strip() and server.strip() not in self.name_servers:
                self.name_servers.append(server.strip())


def described_brokers(imported: ImportedFiles, brokers: BrokersFile, report: ImportReport) -> Configs:
    """Add the described brokers to ``brokers``. Return those of folders with one configuration of a broker."""
    for source, _ in imported.by_kind[BROKERS]:
        try:
            brokers.add_recorded(source.read())
            report.recognised.append((source.path, "brokers.json of a recording", 0))
        except UNREADABLE as error:
            imported.refuse(source, why_unreadable(error))
    found: dict[str, set[tuple[str, int | None]]] = defaultdict(set)
    for source, _ in imported.by_kind[BROKER_CONFIG]:
        try:
            broker = brokers.add_config(source.read(MOST_TEXT))
        except UNREADABLE as error:
            imported.refuse(source, why_unreadable(error))
            continue
        if broker.name is None:
            imported.refuse(source, f"{broker.why}")
            continue
        if broker.broker_id is None:
            report.notes.append(f"{source.path} is of {broker.name}, without an id: {broker.why}")
        found[source.folder].add((broker.name, broker.broker_id))
        if broker.note is not None:
            report.notes.append(f"{source.path} is of {broker.name}, {broker.note}")
        report.recognised.append((source.path, CONFIGURATION, 0))
    only = [(folder, *of.pop()) for folder, of in found.items() if len(of) == 1]
    return Configs(
        {folder: (name, broker_id) for folder, name, broker_id in only if broker_id is not None},
        {folder: name for folder, name, broker_id in only if broker_id is None},
    )
