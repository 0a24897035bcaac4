"""What one snapshot file is, and what it holds: entries by key. Runs on the workers."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from mqreplay.decode.client_offsets import decode_client_offsets
from mqreplay.decode.consumer_offset import ConsumerOffsets, decode_consumer_offset
from mqreplay.decode.subscription_group import decode_subscription_group
from mqreplay.decode.topics import decode_topics

TOPIC_COLUMNS = (
    "read_queue_nums",
    "write_queue_nums",
    "perm",
    "topic_sys_flag",
    "order",
    "topic_filter_type",
)
GROUP_COLUMNS = (
    "consume_enable",
    "consume_from_min_enable",
    "consume_broadcast_enable",
    "retry_queue_nums",
    "retry_max_times",
    "group_broker_id",
    "which_broker_when_consume_slowly",
    "notify_consumer_ids_changed_enable",
)


@dataclass(frozen=True)
class SnapshotFile:
    """One file to read: where it lies, its place inside the recording, what it is, when it was copied (epoch ms)."""

    full_path: str
    path: str
    kind: str
    file_name: str
    ts_ms: int

    @property
    def family(self) -> str:
        """What its entries are compared within: a client keeps one file for each group."""
        return self.file_name.removesuffix(".bak") if self.kind == "client_offsets" else self.kind

    @property
    def is_bak(self) -> bool:
        """Whether it is the copy that RocketMQ keeps of the file before."""
        return self.file_name.endswith(".bak")


class Entries(NamedTuple):
    """``strange``: keys that name nothing; ``counter``: dataVersion's; ``whole``: all of a consumerOffset.json."""

    entries: dict[object, object]
    strange: list[str]
    counter: int | None
    whole: ConsumerOffsets | None = None


def decode(data: bytes, file: SnapshotFile) -> Entries:
    """Raises DecodeError: a file is believed whole or not at all."""
    return DECODERS[file.kind](data, file)


def _consumer_offset(data: bytes, file: SnapshotFile) -> Entries:
    got = decode_consumer_offset(data)
    entries: dict[object, object] = {}
    strange: list[str] = []
    for key, topic, group, queue_id, offset in zip(
        got.key, got.topic, got.consumer_group, got.queue_id, got.offset, strict=True
    ):
        if topic is None or group is None:
            strange.append(key)
        else:
            entries[(topic, group, None, queue_id)] = offset
    return Entries(entries, sorted(set(strange)), got.data_version_counter, got)


def _client_offsets(data: bytes, file: SnapshotFile) -> Entries:
    group = file.file_name.removesuffix(".bak").removesuffix("offsets.json").removesuffix(".")
    entries: dict[object, object] = {
        (row.topic, group, row.broker_name, row.queue_id): row.offset for row in decode_client_offsets(data)
    }
    return Entries(entries, [], None)


def _topics(data: bytes, file: SnapshotFile) -> Entries:
    got = decode_topics(data)
    return Entries({t.topic_name: _payload(t, TOPIC_COLUMNS) for t in got.rows}, [], got.data_version.counter)


def _subscription_groups(data: bytes, file: SnapshotFile) -> Entries:
    got = decode_subscription_group(data)
    return Entries({g.group_name: _payload(g, GROUP_COLUMNS) for g in got.rows}, [], got.data_version.counter)


def _payload(config: object, columns: tuple[str, ...]) -> str:
    """The silver columns of a topic or group that are set, as JSON in a fixed order: equal texts, equal configs."""
    given = {name: getattr(config, name.removeprefix("group_")) for name in columns}
    return json.dumps({name: value for name, value in given.items() if value is not None}, sort_keys=True)


DECODERS: dict[str, Callable[[bytes, SnapshotFile], Entries]] = {
    "consumer_offset": _consumer_offset,
    "client_offsets": _client_offsets,
    "topics": _topics,
    "subscription_groups": _subscription_groups,
}
