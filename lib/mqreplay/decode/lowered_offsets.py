"""lowered_offsets: commits that lowered the stored offset of a queue, as brokers log them."""

from __future__ import annotations

from typing import Final

from mqreplay.decode.columns import PlainColumns
from mqreplay.decode.jsonl import read_object
from mqreplay.decode.kind import Kind

COLUMNS: Final = {
    "ts": "timestamp_ms",
    "consumer_group": "string",
    "topic": "string",
    "broker_name": "string",
    "broker_id": "bigint",
    "queue_id": "int",
    "client_addr": "string",
    "stored_offset": "bigint",
    "commit_offset": "bigint",
}
REQUIRED: Final = (
    "ts",
    "consumer_group",
    "topic",
    "broker_name",
    "broker_id",
    "queue_id",
    "stored_offset",
    "commit_offset",
)
_PLAIN: Final = PlainColumns(COLUMNS, REQUIRED)


def decode_lowered_offset(line: bytes) -> dict[str, object]:
    """Return the columns of one line of lowered_offsets: time in epoch ms, offsets in messages.

    Source: ConsumerOffsetManager#commitOffset, "[NOTIFYME]update consumer offset less than store".

    Raises:
        DecodeError: see `mqreplay.decode.jsonl` and `PlainColumns.take`.

    >>> line = (b'{"ts":1795228808333,"consumer_group":"g","topic":"t","broker_name":"b","broker_id":0,'
    ...         b'"queue_id":2,"client_addr":"10.0.0.3:35702","stored_offset":9,"commit_offset":5}')
    >>> decode_lowered_offset(line)["stored_offset"]
    9
    """
    return _PLAIN.take(read_object(line))


KIND: Final = Kind(
    stem="lowered_offsets",
    table="silver.lowered_offset",
    label="commits that lowered an offset",
    decode=decode_lowered_offset,
    columns=COLUMNS,
    required=REQUIRED,
    by_recorder=True,
)
