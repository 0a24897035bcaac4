"""Files with the content of a broker's file under another name, such as the output of mqadmin rocksDBConfigToJson."""

from __future__ import annotations

import re
from typing import Final

from mqreplay.decode.consumer_offset import FILE_NAME, LMQ_FILE_NAME
from mqreplay.decode.encodings import text_of_bytes
from mqreplay.record.imports.files.imported_files import UNREADABLE, Found, ImportedFiles
from mqreplay.record.imports.files.layout import TEXT
from mqreplay.record.imports.files.sources import Source

_HEAD: Final = 64 * 1024  # bytes; a table begins near the beginning of its file
_TOOL_LINE: Final = "Use [local mode]"  # the first line of rocksDBConfigToJson (5.3.2)
_TABLES: Final = (
    (LMQ_FILE_NAME, re.compile(r'"lmqOffsetTable"\s*:')),
    (FILE_NAME, re.compile(r'"offsetTable"\s*:\s*\{\s*"[^"]*@')),
    ("topics.json", re.compile(r'"topicConfigTable"\s*:')),
    ("subscriptionGroup.json", re.compile(r'"subscriptionGroupTable"\s*:')),
)


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
