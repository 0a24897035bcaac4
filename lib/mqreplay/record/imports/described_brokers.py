"""Read the files that describe brokers: brokers.json of recordings, and configurations of brokers."""

from __future__ import annotations

from collections import defaultdict

from mqreplay.record.broker_identity import Configs
from mqreplay.record.imports.brokers_file import BrokersFile
from mqreplay.record.imports.files.imported_files import MOST_TEXT, UNREADABLE, ImportedFiles, why_unreadable
from mqreplay.record.imports.files.layout import BROKER_CONFIG, BROKERS
from mqreplay.record.imports.import_report import ImportReport


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
        report.recognised.append((source.path, "configuration of a broker", 0))
    only = [(folder, *of.pop()) for folder, of in found.items() if len(of) == 1]
    return Configs(
        {folder: (name, broker_id) for folder, name, broker_id in only if broker_id is not None},
        {folder: name for folder, name, broker_id in only if broker_id is None},
    )
