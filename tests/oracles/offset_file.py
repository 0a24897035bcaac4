"""consumerOffset.json as a broker writes it, and as it starts from it.

The broker writes the complete file every few seconds, and reads it at its start: the file, or its .bak if the file is
absent, empty or broken. fastjson 1.2 writes strings as JSON, with U+007F to U+009F, U+2028 and U+2029 escaped as well.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from mqreplay.core.consumer_offset_manager import OffsetTable
from mqreplay.core.java import string_hash
from mqreplay.core.java_maps import concurrent_hash_map_order
from mqreplay.words.errors import RocketMQError

OFFSET_TABLE_CAPACITY = 512  # of the outer ConcurrentHashMap
QUEUE_TABLE_CAPACITY = 32  # of the inner ones
_SHORT = {"\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r", '"': '\\"', "\\": "\\\\"}
_CODES = [*range(0x20), *range(0x7F, 0xA0), 0x2028, 0x2029]
_ESCAPES = str.maketrans({**{chr(code): f"\\u{code:04X}" for code in _CODES}, **_SHORT})


def json_string(s: str) -> str:
    """The string in double quotes, as SerializeWriter#writeStringWithDoubleQuote writes it.

    >>> print(json_string('a"b\\x01\\x7f/'))
    "a\\"b\\u0001\\u007F/"
    """
    return f'"{s.translate(_ESCAPES)}"'


def encode(offset_table: Mapping[str, Mapping[int, int]], pretty_format: bool = False) -> str:
    """Return the text of consumerOffset.json as 4.x writes it, with unquoted integer keys; pretty_format: as on disk.

    Keys come in the order of Java's maps, which depends on the order in which they were put: the mappings'
    own.
    Follows ConsumerOffsetManager#encode, fastjson's MapSerializer.

    >>> encode({"T@g": {1: 8, 0: 5}})
    '{"offsetTable":{"T@g":{0:5,1:8}}}'
    >>> encode({"T@g": {0: 5}}, pretty_format=True)
    '{\\n\\t"offsetTable":{\\n\\t\\t"T@g":{0:5\\n\\t\\t}\\n\\t}\\n}'
    """
    end, member, entry = ("\n", "\n\t", "\n\t\t") if pretty_format else ("", "", "")
    groups = []
    for key in concurrent_hash_map_order(offset_table, string_hash, OFFSET_TABLE_CAPACITY):
        queues = offset_table[key]
        order = concurrent_hash_map_order(queues, lambda queue_id: queue_id, QUEUE_TABLE_CAPACITY)
        body = ",".join(f"{queue_id}:{queues[queue_id]}" for queue_id in order)
        # An empty map is written as {} even in the pretty format.
        groups.append(f"{entry}{json_string(key)}:{{{body}{entry if queues else ''}}}")
    return f'{{{member}"offsetTable":{{{",".join(groups)}{member if groups else ""}}}{end}}}'


class Loaded(NamedTuple):
    """The result of ConfigManager#load, and the table. If ok is False the broker does not start."""

    ok: bool
    offset_table: OffsetTable


def load(file: str | None, bak: str | None, decode: Callable[[str], OffsetTable | None]) -> Loaded:
    """Return the table with which a broker starts, from the texts of consumerOffset.json and .bak (None: no file).

    decode returns the table of a text, None if it has no object; it raises RocketMQError for a broken one.
    Absent, empty or broken: the .bak is taken. No usable text at all: an empty table. A broken .bak: failure.
    Follows ConfigManager#load and #loadBak.

    >>> load("", None, lambda text: {"T@g": {0: 1}})
    Loaded(ok=True, offset_table={})
    """
    if file:
        try:
            return Loaded(True, decode(file) or {})
        except RocketMQError:
            pass
    try:
        return Loaded(True, (decode(bak) or {}) if bak else {})
    except RocketMQError:
        return Loaded(False, {})


def persist(offset_table: Mapping[str, Mapping[int, int]], file: str | None, bak: str | None) -> tuple[str, str | None]:
    """Return (consumerOffset.json, .bak) after writing the table over these two; None for no file.

    What was in the file, even nothing, becomes the .bak. 4.x gets there by copy, delete and rename, 5.x by
    rename and writing in place: so a reader may meet neither. Follows ConfigManager#persist,
    MixAll#string2File.

    >>> persist({}, "old", "older")[1], persist({}, None, "older")[1]
    ('old', 'older')
    """
    return encode(offset_table, True), bak if file is None else file
