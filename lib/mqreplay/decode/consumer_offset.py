"""consumerOffset.json (and its .bak) as flat columns: the consumer offsets of a broker.

The file, as ConsumerOffsetManager.encode(true) writes it through RemotingSerializable: an object whose
``offsetTable`` maps "topic@group" to {queue id: offset in messages}. 5.x puts dataVersion, groupTopicMap,
pullOffsetTable and others beside it, which are read and named, not refused. A file is accepted completely or not
at all.

A broker with enableLmq=true reads and writes lmqConsumerOffset.json instead, and only this file: the offsets of all
groups in ``offsetTable``, and those of light message queues in ``lmqOffsetTable`` (LmqConsumerOffsetManager).

Codes of the errors: those of `mqreplay.decode.fastjson_text`, and ``foreign`` (no offsetTable in it) and
``wrong_type`` (an offsetTable that is not a table).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from mqreplay.core.java import LONG_MAX, LONG_MIN
from mqreplay.decode.fastjson_text import Key, Value
from mqreplay.decode.fields import data_version_of, int_field, object_of
from mqreplay.decode.kind import AGAIN, OFFSET_PHRASES, QUEUE_PHRASE, RECORD, FileKind, RecordingWays
from mqreplay.decode.offset_table import Entries, read_members
from mqreplay.decode.text import TAKE_BAK, fail, refuse_trailing, skip_space, text_of
from mqreplay.words.errors import DecodeError

TOPIC_GROUP_SEPARATOR: Final = "@"
OFFSET_TABLE: Final = "offsetTable"
FILE_NAME: Final = "consumerOffset.json"
LMQ_FILE_NAME: Final = "lmqConsumerOffset.json"
FILE_NAMES: Final = (FILE_NAME, LMQ_FILE_NAME)
LMQ_OFFSET_TABLE: Final = "lmqOffsetTable"
LMQ_QUEUE_ID: Final = 0  # MixAll.LMQ_QUEUE_ID
# A queue cannot be longer: ConsumeQueue computes offset * CQ_STORE_UNIT_SIZE (20 bytes) as a long.
LARGEST_OFFSET: Final = LONG_MAX // 20
# BroadcastOffsetManager#broadcastGroupId (5.x): the least offset that a broadcasting group's members have pulled at.
_OF_BROADCASTING: Final = "@broadcast"

_SHOWN: Final = 40  # characters of a name in an error


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
    mqreplay.words.errors.DecodeError: torn: cut short where ',' or '}' should follow; take the .bak (byte 33)
    """
    entries, others, start = _read_file(data)
    if entries is None:
        raise DecodeError("foreign", f"it has no {OFFSET_TABLE!r}{_found(others)}: another file under this name", start)
    return _columns(entries, others)


def _found(others: dict[Key, Value]) -> str:
    """Return the names that a file has instead."""
    names = [str(key)[:_SHOWN] for key in others]
    return "" if not names else f" but {', '.join(map(repr, names[:3]))}{', ...' if len(names) > 3 else ''}"


def _read_file(data: bytes) -> tuple[Entries | None, dict[Key, Value], int]:
    """Return the table if there is one, the other members, and the place of the object (bytes)."""
    text = text_of(data)
    start = skip_space(text, 0)
    if start == len(text):
        fail("empty", f"there is only white space{TAKE_BAK}", text, 0)
    if text[start] != "{":
        fail("foreign", f"it starts with {text[start]!r}, so it is not a consumerOffset.json", text, start)
    tables, others, end = read_members(text, start, (OFFSET_TABLE,), "{!r} is there twice: two files are mixed")
    refuse_trailing(text, end)
    return tables.get(OFFSET_TABLE), others, len(text[:start].encode())


def decode_lmq_consumer_offset(data: bytes) -> ConsumerOffsets:
    """Return the offsets in the bytes of an lmqConsumerOffset.json or .bak; those of LMQ groups have the queue 0.

    Source: LmqConsumerOffsetManager, whose lmqOffsetTable maps "topic@group" to the offset.

    Raises:
        DecodeError: as `decode_consumer_offset`.

    >>> got = decode_lmq_consumer_offset(b'{"lmqOffsetTable":{"%LMQ%a@%LMQ%a":42},"offsetTable":{"t@g":{0:9}}}')
    >>> got.topic, got.consumer_group, got.queue_id, got.offset
    (['t', '%LMQ%a'], ['g', '%LMQ%a'], [0, 0], [9, 42])
    """
    entries, others, start = _read_file(data)
    if entries is None and LMQ_OFFSET_TABLE not in others:
        text = f"it has neither {OFFSET_TABLE!r} nor {LMQ_OFFSET_TABLE!r}: another file under this name"
        raise DecodeError("foreign", text, start)
    table = object_of(others.pop(LMQ_OFFSET_TABLE, {}), LMQ_OFFSET_TABLE)
    entries = Entries() if entries is None else _without(entries, table)
    for key in table:
        if not isinstance(key, str):
            raise DecodeError("bad_key", f"a quoted key topic@group is expected in {LMQ_OFFSET_TABLE}, not {key!r}")
        entries.keys.append(key)
        entries.counts.append(1)
        entries.queue_ids.append(LMQ_QUEUE_ID)
        entries.offsets.append(int_field(table, key, -1, LONG_MIN, LONG_MAX))
    return _columns(entries, others)


def _without(entries: Entries, keys: Mapping[Key, Value]) -> Entries:
    """Return the entries of other keys: a broker answers for an LMQ group from lmqOffsetTable alone (#queryOffset)."""
    if not keys or keys.keys().isdisjoint(entries.keys):
        return entries
    kept, at = Entries(), 0
    for key, count in zip(entries.keys, entries.counts, strict=True):
        if key not in keys:
            kept.keys.append(key)
            kept.counts.append(count)
            kept.queue_ids += entries.queue_ids[at : at + count]
            kept.offsets += entries.offsets[at : at + count]
        at += count
    return kept


def impossible_offsets(got: ConsumerOffsets) -> list[tuple[str, int, int]]:
    """Return key, queue id and offset of the offsets that no queue can have: negative, or beyond LARGEST_OFFSET.

    A broker stores what a client commits, whatever it is (ConsumerOffsetManager#commitOffset).

    >>> impossible_offsets(decode_consumer_offset(b'{"offsetTable":{"t@g":{0:-1,1:0,2:9223372036854775807}}}'))
    [('t@g', 0, -1), ('t@g', 2, 9223372036854775807)]
    """
    if not got.offset or (min(got.offset) >= 0 and max(got.offset) <= LARGEST_OFFSET):
        return []
    rows = zip(got.key, got.queue_id, got.offset, strict=True)
    return [row for row in rows if not 0 <= row[2] <= LARGEST_OFFSET]


def strange_keys(got: ConsumerOffsets) -> list[str]:
    """Return the keys, sorted, that are not topic@group, so that no group can use them.

    A 5.x broker's own keys for broadcasting groups (see `is_of_broadcasting`) are not among them.

    >>> strange_keys(decode_consumer_offset(b'{"offsetTable":{"t@g":{0:1},"t@g@broadcast":{0:1},"a@b@c":{0:1}}}'))
    ['a@b@c']
    """
    unnamed = {key for key, topic in zip(got.key, got.topic, strict=True) if topic is None}
    return sorted(key for key in unnamed if not is_of_broadcasting(key))


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


KIND: Final = FileKind(
    stem="consumer_offset",
    table="silver.offset_change",
    label="copies of consumerOffset.json",
    time="to_ts",
    by_recorder=True,
    phrases=(OFFSET_PHRASES, QUEUE_PHRASE, ("in the file of {source_name}",)),
    recording=RecordingWays(
        AGAIN, RECORD, "run `mqreplay record --store` on each broker", by_hooks=False, importance=1
    ),
)
