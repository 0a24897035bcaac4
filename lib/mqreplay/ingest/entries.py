"""A snapshot file, its entries by key, and the offsets that it changed. Runs on the workers."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mqreplay.decode.client_offsets import decode_client_offsets
from mqreplay.decode.consumer_offset import (
    LMQ_FILE_NAME,
    ConsumerOffsets,
    decode_consumer_offset,
    decode_lmq_consumer_offset,
    strange_keys,
)
from mqreplay.decode.delay_offset import decode_delay_offset
from mqreplay.decode.message_request_mode import decode_message_request_mode
from mqreplay.decode.pop_order import PopOrder, decode_pop_order
from mqreplay.decode.recording.files import POLLED
from mqreplay.decode.subscription_group import decode_subscription_group
from mqreplay.decode.topics import decode_topics

KEY_MARK = "@"  # between the parts of a key, which names of topics and groups cannot have


@dataclass(frozen=True)
class ConfigKind:
    """A kind of file with a broker's configuration or state, compared entry by entry.

    ``table`` has a row for each change of an entry. ``key`` are its columns that identify an entry, which the decoded
    rows have as ``names``; ``columns`` are the others. ``decode`` returns the rows, or a table with ``rows`` and the
    version of the data.
    """

    table: str
    key: tuple[str, ...]
    decode: Callable[[bytes], Any]
    columns: tuple[str, ...]
    names: tuple[str, ...] = ()


CONFIGS = {
    "topics": ConfigKind(
        "silver.topic_config",
        ("topic",),
        decode_topics,
        ("read_queue_nums", "write_queue_nums", "perm", "topic_sys_flag", "order", "topic_filter_type"),
        names=("topic_name",),
    ),
    "subscription_groups": ConfigKind(
        "silver.subscription_group",
        ("consumer_group",),
        decode_subscription_group,
        (
            *("consume_enable", "consume_from_min_enable", "consume_broadcast_enable", "retry_queue_nums"),
            *("retry_max_times", "group_broker_id", "which_broker_when_consume_slowly"),
            "notify_consumer_ids_changed_enable",
        ),
        names=("group_name",),
    ),
    "message_request_modes": ConfigKind(
        "silver.message_request_mode",
        ("topic", "consumer_group"),
        decode_message_request_mode,
        ("mode", "pop_share_queue_num"),
    ),
    "pop_orders": ConfigKind(
        "silver.pop_order", ("topic", "consumer_group", "queue_id"), decode_pop_order, PopOrder._fields[3:]
    ),
    "delay_offset": ConfigKind("silver.delay_offset", ("delay_level",), decode_delay_offset, ("offset",)),
}


OffsetKey = tuple[str, str, str | None, int]  # topic, consumer group, broker name (a client's), queue id


@dataclass
class Keys:
    """The queues of one source, numbered in order of appearance.

    A number belongs to the same queue for the whole reading.
    """

    keys: list[OffsetKey] = field(default_factory=list)
    numbers: dict[OffsetKey, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.keys)

    def of(self, keys: Collection[OffsetKey]) -> NDArray[np.int32]:
        """Return the number of each of ``keys``; new keys get one."""
        found = list(map(self.numbers.get, keys))
        if None in found:
            for key in keys:
                if self.numbers.setdefault(key, len(self.keys)) == len(self.keys):
                    self.keys.append(key)
            found = list(map(self.numbers.get, keys))
        return np.array(found, np.int32)


@dataclass(frozen=True)
class Moves:
    """The offsets that a file changed, as columns of equal length. ``from_ts`` and ``ts`` are epoch ms.

    ``entry`` is a queue's number in the source's `Keys`. ``came``: there was no offset before; ``gone``: there is none
    now; None: false for all.
    """

    from_ts: int | None
    ts: int
    digest: str
    entry: NDArray[np.int32]
    previous: NDArray[np.int64]
    new: NDArray[np.int64]
    came: NDArray[np.bool_] | None = None
    gone: NDArray[np.bool_] | None = None

    def __len__(self) -> int:
        return len(self.entry)


@dataclass(frozen=True)
class SnapshotFile:
    """A file to read: its full path, its path in the recording, its kind, its time (epoch ms).

    ``digest`` is the source digest for rows of a file of polled lines, whose bytes are not read at once.
    """

    full_path: str
    path: str
    kind: str
    file_name: str
    ts_ms: int
    digest: str = ""

    @property
    def recording(self) -> str:
        """Return the folder of its recording, which has it in snapshots/<source>/<epoch_ms>/."""
        return self.full_path.rsplit("/", 4)[0] or "/"

    @property
    def family(self) -> str:
        """Return the family in which entries are compared: a client has one file for each group."""
        return self.file_name.removesuffix(".bak") if self.kind == "client_offsets" else self.kind

    @property
    def is_polled(self) -> bool:
        """Return whether it has a line for each poll, instead of a copied file."""
        return self.file_name in POLLED

    @property
    def is_bak(self) -> bool:
        """Return whether it is RocketMQ's backup of the previous file."""
        return self.file_name.endswith(".bak")

    @property
    def is_lmq(self) -> bool:
        """Return whether it is the offset file of a broker with enableLmq=true, or its .bak."""
        return self.file_name.startswith(LMQ_FILE_NAME)


class Entries(NamedTuple):
    """The entries of a file. ``strange`` are invalid keys, ``counter`` is dataVersion's, ``whole`` the offsets.

    Entries that a broker keeps for broadcasting groups are ignored.
    """

    entries: dict[object, object]
    strange: list[str]
    counter: int | None
    whole: ConsumerOffsets | None = None


def decode(data: bytes, file: SnapshotFile) -> Entries:
    """Decode a file. Raises DecodeError: a file is used completely or not at all."""
    return DECODERS[file.kind](data, file)


def _consumer_offset(data: bytes, file: SnapshotFile) -> Entries:
    got = decode_lmq_consumer_offset(data) if file.is_lmq else decode_consumer_offset(data)
    keys = zip(got.topic, got.consumer_group, repeat(None), got.queue_id)
    entries: dict[object, object] = dict(zip(keys, got.offset, strict=True))
    if None in got.topic:
        entries = {key: offset for key, offset in entries.items() if key[0] is not None}  # type: ignore[index]
    return Entries(entries, strange_keys(got), got.data_version_counter, got)


def _client_offsets(data: bytes, file: SnapshotFile) -> Entries:
    group = file.file_name.removesuffix(".bak").removesuffix("offsets.json").removesuffix(".")
    entries: dict[object, object] = {
        (row.topic, group, row.broker_name, row.queue_id): row.offset for row in decode_client_offsets(data)
    }
    return Entries(entries, [], None)


def _config(data: bytes, file: SnapshotFile) -> Entries:
    kind = CONFIGS[file.kind]
    table = kind.decode(data)
    rows, counter = (table.rows, table.data_version.counter) if hasattr(table, "rows") else (table, None)
    names = kind.names or kind.key
    entries: dict[object, object] = {
        KEY_MARK.join(str(getattr(row, name)) for name in names): _payload(row, kind.columns) for row in rows
    }
    return Entries(entries, [], counter)


def _payload(row: object, columns: tuple[str, ...]) -> str:
    return payload({name: _plain(getattr(row, name.removeprefix("group_"))) for name in columns})


def _plain(value: object) -> object:
    """Return a value for JSON: named tuples in a list as dicts."""
    if not isinstance(value, list | tuple):
        return value
    return [each._asdict() if hasattr(each, "_asdict") else each for each in value]


def payload(values: Mapping[str, object]) -> str:
    """Return the non-null silver columns of a topic or group as JSON in fixed order, for comparison."""
    return json.dumps({name: value for name, value in values.items() if value is not None}, sort_keys=True)


DECODERS: dict[str, Callable[[bytes, SnapshotFile], Entries]] = {
    "consumer_offset": _consumer_offset,
    "client_offsets": _client_offsets,
    **dict.fromkeys(CONFIGS, _config),
}
