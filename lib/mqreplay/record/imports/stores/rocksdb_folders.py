"""Folders of RocksDB, in which some brokers of 5.x keep their offsets and configuration.

RocksDB's files belong together and are in its own format, so no copy of them is read.
"""

from __future__ import annotations

import re
from collections import defaultdict
from typing import Final

from mqreplay.decode.consumer_offset import FILE_NAME
from mqreplay.record.imports.files.imported_files import ImportedFiles
from mqreplay.record.imports.files.layout import SNAPSHOT, TEXT
from mqreplay.record.imports.files.sources import Source

_FILE: Final = re.compile(
    r"(?:CURRENT|IDENTITY|LOCK|LOG(?:\.old\.[0-9]+)?|MANIFEST-[0-9]+|OPTIONS-[0-9]+|[0-9]{6,}\.(?:sst|blob|log))"
)
_SURE: Final = re.compile(r"CURRENT|MANIFEST-|OPTIONS-|[0-9]{6,}\.sst")
# RocksDBConsumerOffsetManager, RocksDBTopicConfigManager, RocksDBSubscriptionGroupManager, ConfigStorage.
_OF_BROKER: Final = frozenset({"consumerOffsets", "topics", "subscriptionGroups", "metadata", "rdb"})
OF_BROKER: Final = (
    "RocksDB: this broker keeps its offsets and configuration in RocksDB, whose files cannot be copied; record it over "
    "the network (`mqreplay record NAMESRV --out DIR`), or export the offsets with `mqadmin rocksDBConfigToJson` "
    "(5.3.1 and later) and import the JSON as consumerOffset.json; `mqadmin exportMetadataInRocksDB` exports only "
    "topics and groups"
)
OTHER: Final = "RocksDB: no decision uses it: an index of messages or other state of a store"


def take_out(imported: ImportedFiles) -> list[str]:
    """Refuse the files of RocksDB's folders. Return notes about files of offsets beside them."""
    by_folder: dict[str, list[Source]] = defaultdict(list)
    for source, _ in imported.by_kind[TEXT]:
        by_folder[source.folder].append(source)
    in_use: set[str] = set()
    taken: dict[str, str] = {}
    for folder, files in by_folder.items():
        if _is_database(files):
            above, _, name = folder.rpartition("/")
            is_of_broker = name in _OF_BROKER
            in_use.update([above] if is_of_broker else [])
            paths = [source.path for source in files if _FILE.fullmatch(source.parts[-1])]
            taken |= dict.fromkeys(sorted(paths), OF_BROKER if is_of_broker else OTHER)
    imported.by_kind[TEXT] = [found for found in imported.by_kind[TEXT] if found[0].path not in taken]
    imported.refused += taken.items()
    return [
        f"{source.path} is old unless it was exported: beside it are offsets in RocksDB"
        for source, place in imported.by_kind[SNAPSHOT]
        if place.name.startswith(FILE_NAME) and source.folder in in_use
    ]


def _is_database(files: list[Source]) -> bool:
    names = [source.parts[-1] for source in files if _FILE.fullmatch(source.parts[-1])]
    return len(names) > 1 and any(_SURE.match(name) for name in names)
