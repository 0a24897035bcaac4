"""server_requests: requests of brokers to clients, mainly changes of members and resets of offsets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from mqreplay.decode.body import body_of
from mqreplay.decode.columns import PlainColumns
from mqreplay.decode.fastjson_text import Key, Value
from mqreplay.decode.fields import object_of, wrong_type
from mqreplay.decode.jsonl import read_object
from mqreplay.decode.message_queue import keyed_by_queue

_TYPES: Final = {
    "ts": "timestamp_ms",
    "client_id": "string",
    "broker_name": "string",
    "broker_addr": "string",
    "broker_id": "bigint",
    "request_code": "int",
    "name": "string",
    "body": "string",
}
COLUMNS: Final = {
    **_TYPES,
    "consumer_group": "string",
    "topic": "string",
    "ext": "map<string,string>",
    "reset_offsets": "array<struct<topic:string,broker_name:string,queue_id:int,offset:bigint>>",
}
REQUIRED: Final = ("ts", "client_id", "request_code")
RESET_CONSUMER_CLIENT_OFFSET: Final = 220
_PLAIN: Final = PlainColumns(_TYPES, REQUIRED)


def decode_server_request(line: bytes) -> dict[str, object]:
    """Return the columns of one line of server_requests; ``ts`` in epoch ms, offsets in messages.

    ``ext`` are the request's header fields; group (consumerGroup or group) and topic are also separate columns.
    ``reset_offsets`` are the offsets of a RESET_CONSUMER_CLIENT_OFFSET, None for others. Source: Broker2Client,
    NotifyConsumerIdsChangedRequestHeader, ResetOffsetRequestHeader, ResetOffsetBody.

    Raises:
        DecodeError: see `mqreplay.decode.jsonl`, `body_of` and `PlainColumns.take`.

    >>> line = (b'{"ts":1795228808246,"client_id":"c","request_code":40,"name":"NOTIFY_CONSUMER_IDS_CHANGED",'
    ...         b'"ext":{"consumerGroup":"g"},"body":null}')
    >>> request = decode_server_request(line)
    >>> request["consumer_group"], request["reset_offsets"]
    ('g', None)
    """
    record = read_object(line)
    request = _PLAIN.take(record)
    ext = _ext(body_of(record, "ext") or {})
    request["ext"] = ext
    request["consumer_group"] = ext.get("consumerGroup", ext.get("group"))
    request["topic"] = ext.get("topic")
    request["reset_offsets"] = None
    if request["request_code"] == RESET_CONSUMER_CLIENT_OFFSET:
        body = body_of(record, "body")
        table = None if body is None else body.get("offsetTable")
        # For clients in C++ the table is a list; then only the body has it.
        if isinstance(table, dict):
            request["reset_offsets"] = _reset_offsets(table)
    return request


def _ext(fields: Mapping[Key, Value]) -> dict[str, str]:
    for name, value in fields.items():
        if not isinstance(name, str) or not isinstance(value, str):
            raise wrong_type(f"{name} in ext", "a string", value)
    return {str(name): str(value) for name, value in fields.items()}


def _reset_offsets(table: Mapping[Key, Value]) -> list[tuple[str, str, int, int]]:
    rows = []
    for queue, offset in keyed_by_queue(object_of(table, "offsetTable"), "offsetTable"):
        if type(offset) is not int:
            raise wrong_type(f"the offset of {queue}", "a whole number", offset)
        rows.append((*queue, offset))
    return rows
