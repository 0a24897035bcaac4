"""Copies of a store that cannot be read as they are: folders of RocksDB, and files under another name.

RocksDB's files belong together and are in its own format, so no copy of them is read. Files with the content of a
broker's file under another name are such as the output of mqadmin rocksDBConfigToJson.
"""

from __future__ import annotations

import re
from collections import defaultdict
from typing import Final

from mqreplay.decode.consumer_offset import FILE_NAME, LMQ_FILE_NAME
from mqreplay.decode.text import text_of_bytes
from mqreplay.importer.files.imported_files import UNREADABLE, Found, ImportedFiles
from mqreplay.importer.files.layout import SNAPSHOT, TEXT
from mqreplay.importer.files.sources import Source

_HEAD: Final = 64 * 1024  # bytes; a table begins near the beginning of its file
_TOOL_LINE: Final = "Use [local mode]"  # the first line of rocksDBConfigToJson (5.3.2)
_TABLES: Final = (
    (LMQ_FILE_NAME, re.compile(r'"lmqOffsetTable"\s*:')),
    (FILE_NAME, re.compile(r'"offsetTable"\s*:\s*\{\s*"[^"]*@')),
    ("topics.json", re.compile(r'"topicConfigTable"\s*:')),
    ("subscriptionGroup.json", re.compile(r'"subscriptionGroupTable"\s*:')),
)
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


def refuse_renamed(imported: ImportedFiles) -> None:
    """Refuse texts that are a broker's file under another name; the reason says how to name them."""
    others: list[Found] = []
    for source, place in imported.by_kind[TEXT]:
        why = why_renamed(_head(source))
        if why is None:
            others.append((source, place))
        else:
            imported.refuse(source, why)
    imported.by_kind[TEXT] = others


def why_renamed(head: bytes) -> str | None:
    """Return why a text with these first bytes is not used as it is; None for any other text.

    >>> print(why_renamed(b'{"offsetTable":{"t@g":{0:5}}}'))
    its content is that of consumerOffset.json: if it is a copy of one broker's file, give it this name, with its time
    """
    text, _ = text_of_bytes(head)
    text = text.lstrip()
    is_of_tool = text.startswith(_TOOL_LINE)
    if not text.startswith("{") and not is_of_tool:
        return None
    name = next((name for name, table in _TABLES if table.search(text)), None)
    if name is None:
        return None
    if is_of_tool:
        return (
            f"it is the output of mqadmin rocksDBConfigToJson with the content of {name}: remove its first line and "
            f"name it {name}, with its time, or let the tool write the file (-e)"
        )
    return f"its content is that of {name}: if it is a copy of one broker's file, give it this name, with its time"


def _head(source: Source) -> bytes:
    try:
        with source.open() as stream:
            return stream.read(_HEAD)
    except UNREADABLE:
        return b""


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
