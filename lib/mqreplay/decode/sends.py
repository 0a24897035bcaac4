"""sends: SEND_MESSAGE, SEND_MESSAGE_V2 and SEND_BATCH_MESSAGE requests of producers, and their answers.

Packets show every try of a send; rocketmq_client.log of a producer only the tries that failed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from mqreplay.decode.columns import PlainColumns, one_of
from mqreplay.decode.fastjson_text import Key, Value
from mqreplay.decode.fields import object_of, text_field, wrong_type
from mqreplay.decode.jsonl import read_object
from mqreplay.decode.kind import CAPTURE, Kind, RecordingWays

_PLAIN: Final = PlainColumns(
    """
    ts timestamp_ms not null, response_ts timestamp_ms, mode string, client_id string, client_addr string,
    producer_group string, topic string not null, queue_id int, broker_name string not null, broker_addr string,
    broker_id bigint, is_batch boolean, is_transaction boolean, is_delayed boolean, born_ts timestamp_ms,
    sys_flag int, reconsume_times int, msg_id string, keys string, size bigint, invoke_id string, cost_ms bigint,
    response_code int, response_name string, remark string, answer_queue_id int, queue_offset bigint,
    offset_msg_id string, error string, source string, tags string
    """
)
COLUMNS: Final = {**_PLAIN.types, "batch": "array<struct<msg_id:string,keys:string,tags:string>>"}
MODES: Final = ("sync", "oneway")
CLIENT_LOG: Final = "client_log"


def decode_send(line: bytes) -> dict[str, object]:
    """Return the columns of one line of sends: times in epoch ms, offsets in messages, sizes in bytes.

    ``msg_id`` is the message's UNIQ_KEY, which all tries of a send share; the tries in a client's log share
    ``invoke_id`` instead. ``batch`` has the messages of a batch, as (msg_id, keys, tags). Source:
    SendMessageRequestHeader, SendMessageResponseHeader, MessageBatch.

    Raises:
        DecodeError: unknown_kind (of mode), wrong_type (of batch), and those of `mqreplay.decode.jsonl` and
            `PlainColumns.take`.

    >>> line = (b'{"ts":1795228831033,"topic":"t","broker_name":"b","queue_id":1,"msg_id":"7F01","response_code":0,'
    ...         b'"answer_queue_id":1,"queue_offset":12}')
    >>> decode_send(line)["queue_offset"]
    12
    """
    record = read_object(line)
    send = _PLAIN.take(record)
    if send["mode"] is not None:
        one_of("mode", send["mode"], MODES)
    batch = record.get("batch")
    if batch is not None and not isinstance(batch, list):
        raise wrong_type("batch", "a list", batch)
    send["batch"] = None if batch is None else [_message(object_of(each, "batch")) for each in batch]
    return send


def _message(fields: Mapping[Key, Value]) -> tuple[str | None, ...]:
    return tuple(text_field(fields, name, None) for name in ("msg_id", "keys", "tags"))


KIND: Final = Kind(
    stem="sends",
    table="silver.send",
    label="sends of producers",
    decode=decode_send,
    columns=COLUMNS,
    required=_PLAIN.required,
    phrases=(
        "send to {topic}",
        ("queue {broker_name}/{queue_id}", "{broker_name}"),
        ("answer {response_code} {response_name}", "answer {response_code}"),
        "{remark}",
        "offset {queue_offset:,}",
        "error: {error}",
    ),
    recording=RecordingWays(
        CAPTURE, CAPTURE, instead="import rocketmq_client.log of each producer", by_hooks=False, importance=13
    ),
)
