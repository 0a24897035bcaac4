"""topics.json of a broker: its topics, their queues and permissions."""

from __future__ import annotations

from typing import Final, NamedTuple

from mqreplay.decode.fastjson_text import read_fastjson
from mqreplay.decode.fields import DataVersion, bool_field, data_version_of, int_field, object_of, table_of, text_field
from mqreplay.decode.kind import AGAIN, RECORD, FileKind, RecordingWays
from mqreplay.words.errors import DecodeError


class TopicConfig(NamedTuple):
    """A topic on one broker. ``perm`` is 4 (read) + 2 (write) + 1 (inherit), as PermName has it."""

    topic_name: str
    read_queue_nums: int
    write_queue_nums: int
    perm: int
    topic_sys_flag: int
    order: bool
    topic_filter_type: str | None


class Topics(NamedTuple):
    """The rows of one topics.json, in the order written, and the version of the table."""

    rows: list[TopicConfig]
    data_version: DataVersion


def decode_topics(data: bytes) -> Topics:
    """Return the topics in the bytes of a topics.json of 4.9 or 5.x.

    An absent field has the default of RocketMQ's TopicConfig. Source: TopicConfigManager, TopicConfig.

    Raises:
        DecodeError: torn, foreign (no topicConfigTable), wrong_type, bad_number and those of fastjson_text.

    >>> row = decode_topics(b'{"topicConfigTable":{"orders":{"perm":4,"readQueueNums":4}}}').rows[0]
    >>> row.topic_name, row.read_queue_nums, row.write_queue_nums, row.perm, row.topic_filter_type
    ('orders', 4, 16, 4, 'SINGLE_TAG')
    """
    root = read_fastjson(data)
    table = table_of(root, "topicConfigTable")
    rows = []
    for name, value in table.items():
        if not isinstance(name, str):
            raise DecodeError("bad_key", f"a quoted topic name is expected instead of {name!r}")
        config = object_of(value, name)
        rows.append(
            TopicConfig(
                topic_name=name,
                read_queue_nums=int_field(config, "readQueueNums", 16),
                write_queue_nums=int_field(config, "writeQueueNums", 16),
                perm=int_field(config, "perm", 6),
                topic_sys_flag=int_field(config, "topicSysFlag", 0),
                order=bool_field(config, "order", False),
                topic_filter_type=text_field(config, "topicFilterType", "SINGLE_TAG"),
            )
        )
    return Topics(rows, data_version_of(object_of(root, "topics.json")))


KIND: Final = FileKind(
    stem="topics",
    table="silver.topic_config",
    label="topics.json",
    by_recorder=True,
    phrases=("topic {topic}: {read_queue_nums} read and {write_queue_nums} write queues", "{change}"),
    recording=RecordingWays(AGAIN, RECORD, "copy it with the snapshots", by_hooks=False, importance=15),
)
