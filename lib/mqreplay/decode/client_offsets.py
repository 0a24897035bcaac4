"""<group>.offsets.json of a broadcasting consumer: the offsets on its own disk."""

from __future__ import annotations

from typing import Final, NamedTuple

from mqreplay.decode.fastjson_text import Value, read_fastjson
from mqreplay.decode.fields import table_of, wrong_type
from mqreplay.decode.kind import FileKind
from mqreplay.decode.message_queue import MessageQueue, keyed_by_queue


class ClientOffset(NamedTuple):
    """A queue and the client's next offset (messages)."""

    topic: str
    broker_name: str
    queue_id: int
    offset: int


def decode_client_offsets(data: bytes) -> list[ClientOffset]:
    """Return the queues in the bytes of a <group>.offsets.json (or .bak) of a 4.9 or 5.x client.

    The keys are message queues as objects; an offset is written as a number or, by some versions, as
    {"value":3}. Source: LocalFileOffsetStore.persistAll, OffsetSerializeWrapper.

    Raises:
        DecodeError: torn, foreign (no offsetTable), wrong_type, bad_number and those of fastjson_text.

    >>> decode_client_offsets(b'{"offsetTable":{{"brokerName":"b","queueId":1,"topic":"t"}:175}}')
    [ClientOffset(topic='t', broker_name='b', queue_id=1, offset=175)]
    """
    return [
        ClientOffset(queue.topic, queue.broker_name, queue.queue_id, _offset(value, queue))
        for queue, value in keyed_by_queue(table_of(read_fastjson(data), "offsetTable"), "offsetTable")
    ]


def _offset(value: Value, queue: MessageQueue) -> int:
    if isinstance(value, dict):
        value = value.get("value")
    if type(value) is not int:
        raise wrong_type(f"the offset of {queue}", "a whole number", value)
    return value


KIND: Final = FileKind(
    stem="client_offsets",
    table="silver.offset_change",
    label="offsets of broadcasting clients",
    time="to_ts",
)
