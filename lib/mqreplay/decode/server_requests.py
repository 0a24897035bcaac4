"""server_requests: changes of members and resets of offsets that brokers send, and requests to brokers to reset."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from mqreplay.decode.body import body_of
from mqreplay.decode.columns import PlainColumns, missing
from mqreplay.decode.fastjson_text import Key, Value
from mqreplay.decode.fields import object_of, wrong_type
from mqreplay.decode.jsonl import read_object
from mqreplay.decode.kind import CAPTURE, Kind, RecordingWays
from mqreplay.decode.message_queue import keyed_by_queue

_PLAIN: Final = PlainColumns(
    """
    ts timestamp_ms not null, client_id string, client_addr string, broker_name string, broker_addr string,
    broker_id bigint, request_code int not null, name string, body string, error string
    """
)
COLUMNS: Final = {
    **_PLAIN.types,
    "consumer_group": "string",
    "topic": "string",
    "ext": "map<string,string>",
    "reset_offsets": "array<struct<topic:string,broker_name:string,queue_id:int,offset:bigint>>",
}
RESET_CONSUMER_CLIENT_OFFSET: Final = 220
INVOKE_BROKER_TO_RESET_OFFSET: Final = 222
_RESETS: Final = (RESET_CONSUMER_CLIENT_OFFSET, INVOKE_BROKER_TO_RESET_OFFSET)


def decode_server_request(line: bytes) -> dict[str, object]:
    """Return the columns of one line of server_requests; ``ts`` in epoch ms, offsets in messages.

    ``ext`` are the request's header fields; group (consumerGroup or group) and topic are also separate columns.
    ``reset_offsets`` are the offsets of a reset, None for others. An INVOKE_BROKER_TO_RESET_OFFSET is what a tool
    asked of the broker: it has ``client_addr`` instead of ``client_id``, and ``error`` if the broker refused it.
    Source: Broker2Client, AdminBrokerProcessor#resetOffset, NotifyConsumerIdsChangedRequestHeader,
    ResetOffsetRequestHeader, ResetOffsetBody.

    Raises:
        DecodeError: missing_field (a request without a sender or receiver), and those of `mqreplay.decode.jsonl`,
            `body_of` and `PlainColumns.take`.

    >>> line = (b'{"ts":1795228808246,"client_id":"c","request_code":40,"name":"NOTIFY_CONSUMER_IDS_CHANGED",'
    ...         b'"ext":{"consumerGroup":"g"},"body":null}')
    >>> request = decode_server_request(line)
    >>> request["consumer_group"], request["reset_offsets"]
    ('g', None)
    """
    record = read_object(line)
    request = _PLAIN.take(record)
    if request["client_id"] is None and request["request_code"] != INVOKE_BROKER_TO_RESET_OFFSET:
        raise missing("client_id")
    ext = _ext(body_of(record, "ext") or {})
    request["ext"] = ext
    request["consumer_group"] = ext.get("consumerGroup", ext.get("group"))
    request["topic"] = ext.get("topic")
    request["reset_offsets"] = None
    if request["request_code"] in _RESETS:
        request["reset_offsets"] = reset_offsets_of(body_of(record, "body"))
    return request


def reset_offsets_of(body: Mapping[Key, Value] | None) -> list[tuple[str, str, int, int]] | None:
    """Return topic, broker name, queue id and offset of each queue of a ResetOffsetBody; None if it has no table.

    For clients in C++ the table is a list; then only the body has it.

    Raises:
        DecodeError: wrong_type, and those of `keyed_by_queue`.
    """
    table = None if body is None else body.get("offsetTable")
    return _reset_offsets(table) if isinstance(table, dict) else None


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


KIND: Final = Kind(
    stem="server_requests",
    table="silver.server_request",
    label="resets that brokers push to clients",
    decode=decode_server_request,
    columns=COLUMNS,
    required=_PLAIN.required,
    phrases=(
        ("{name} from {client_addr} to {broker_name}-{broker_id}", "{name} from {broker_name}-{broker_id}"),
        ("{reset_offsets}", "{topic}"),
        "refused: {error}",
    ),
    recording=RecordingWays(CAPTURE, CAPTURE, importance=10),
)
