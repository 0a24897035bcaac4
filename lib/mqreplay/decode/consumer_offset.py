"""consumerOffset.json (and its .bak) as flat columns: the consumer offsets of a broker.

The file, as ConsumerOffsetManager.encode(true) writes it through RemotingSerializable: an object whose
``offsetTable`` maps "topic@group" to {queue id: offset in messages}. 5.x puts dataVersion, groupTopicMap,
pullOffsetTable and others beside it, which are read and named, not refused. A file is accepted completely or not
at all.

Codes of the errors: those of `mqreplay.decode.fastjson_text`, and ``foreign`` (no offsetTable in it) and
``wrong_type`` (an offsetTable that is not a table).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

from mqreplay.decode.fastjson_text import Key, Value, read_key, read_value
from mqreplay.decode.fields import data_version_of
from mqreplay.decode.offset_table import Entries, read_offset_table
from mqreplay.decode.text import TAKE_BAK, expected, fail, refuse_trailing, skip_space, text_of

TOPIC_GROUP_SEPARATOR: Final = "@"
OFFSET_TABLE: Final = "offsetTable"
# BroadcastOffsetManager#broadcastGroupId (5.x): the least offset that a broadcasting group's members have pulled at.
_OF_BROADCASTING: Final = "@broadcast"

_MORE = re.compile(r"[ \t\r\n]*([,}])[ \t\r\n]*")


@dataclass(frozen=True, slots=True)
class ConsumerOffsets:
    """The offsets of one file: five columns of equal length, one row per queue, in written order.

    ``offset`` is in messages; ``topic`` and ``consumer_group`` are None if ``key`` is not exactly topic@group;
    ``data_version_timestamp`` is epoch ms; ``other_keys`` are the other keys of the file.
    """

    key: list[str] = field(default_factory=list)
    topic: list[str | None] = field(default_factory=list)
    consumer_group: list[str | None] = field(default_factory=list)
    queue_id: list[int] = field(default_factory=list)
    offset: list[int] = field(default_factory=list)
    data_version_counter: int | None = None
    data_version_timestamp: int | None = None
    other_keys: tuple[str, ...] = ()

    def __len__(self) -> int:
        """Return the number of rows, one per (topic@group, queue)."""
        return len(self.key)


def decode_consumer_offset(data: bytes) -> ConsumerOffsets:
    """Return the offsets in the bytes of a consumerOffset.json or .bak of 4.9 or 5.x.

    Source: ConsumerOffsetManager.encode. Offsets count messages (64 bit), queue ids are 0 to 2^31 - 1.

    Raises:
        DecodeError: the file is incomplete, or no broker wrote it. ``offset`` is the byte.

    >>> got = decode_consumer_offset(b'{"offsetTable":{"orders@pay":{0:56,1:57}}}')
    >>> got.topic, got.consumer_group, got.queue_id, got.offset
    (['orders', 'orders'], ['pay', 'pay'], [0, 1], [56, 57])
    >>> decode_consumer_offset(b'{"offsetTable":{"orders@pay":{0:5')
    Traceback (most recent call last):
    mqreplay.errors.DecodeError: torn: cut short where ',' or '}' should follow; take the .bak (byte 33)
    """
    text = text_of(data)
    start = skip_space(text, 0)
    if start == len(text):
        fail("empty", f"there is only white space{TAKE_BAK}", text, 0)
    if text[start] != "{":
        fail("foreign", f"it starts with {text[start]!r}, so it is not a consumerOffset.json", text, start)
    entries, others, end = _read_members(text, start)
    refuse_trailing(text, end)
    if entries is None:
        fail("foreign", f"it has no {OFFSET_TABLE!r}: another file under this name", text, start)
    return _columns(entries, others)


def split_key(key: str) -> tuple[str | None, str | None]:
    """Return the topic and group of a key of the table, or (None, None) if it is not exactly topic@group.

    Source: ConsumerOffsetManager.TOPIC_GROUP_SEPARATOR; neither a topic nor a group may hold an ``@``.

    >>> split_key("%RETRY%pay@pay"), split_key("a@b@c"), split_key("orders")
    (('%RETRY%pay', 'pay'), (None, None), (None, None))
    """
    topic, _, group = key.partition(TOPIC_GROUP_SEPARATOR)
    if not topic or not group or TOPIC_GROUP_SEPARATOR in group:
        return None, None
    return topic, group


def is_of_broadcasting(key: str) -> bool:
    """Return whether this key is a 5.x broker's own for a broadcasting group: no group commits to it.

    It moves back when a member starts anew; members have their own offsets. Source: BroadcastOffsetManager.

    >>> is_of_broadcasting("news@boards@broadcast"), is_of_broadcasting("news@broadcast"), is_of_broadcasting("a@b@c")
    (True, False, False)
    """
    return key.endswith(_OF_BROADCASTING) and split_key(key.removesuffix(_OF_BROADCASTING)) != (None, None)


def _read_members(text: str, start: int) -> tuple[Entries | None, dict[Key, Value], int]:
    entries: Entries | None = None
    others: dict[Key, Value] = {}
    at = skip_space(text, start + 1)
    if text[at : at + 1] == "}":
        return entries, others, at + 1
    while True:
        key, value_at = read_key(text, at, 0)
        if key in others or (key == OFFSET_TABLE and entries is not None):
            fail("duplicate_key", f"{key!r} is there twice: two files are mixed", text, at)
        if key == OFFSET_TABLE:
            entries, end = read_offset_table(text, value_at)
        else:
            others[key], end = read_value(text, value_at, 1)
        more = _MORE.match(text, end)
        if more is None:
            expected("',' or '}'", text, end)
        if more[1] == "}":
            return entries, others, more.end(1)
        at = more.end()


def _columns(entries: Entries, others: dict[Key, Value]) -> ConsumerOffsets:
    version = data_version_of(others)
    out = ConsumerOffsets(
        queue_id=entries.queue_ids,
        offset=entries.offsets,
        data_version_counter=version.counter,
        data_version_timestamp=version.timestamp,
        other_keys=tuple(str(key) for key in others),
    )
    for key, count in zip(entries.keys, entries.counts, strict=True):
        topic, group = split_key(key)
        out.key.extend([key] * count)
        out.topic.extend([topic] * count)
        out.consumer_group.extend([group] * count)
    return out
