"""pop_assignments: QUERY_ASSIGNMENT. A client asks a broker for its queues of a topic."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from mqreplay.decode.body import body_of, items_of
from mqreplay.decode.columns import PlainColumns, missing
from mqreplay.decode.fastjson_text import Key, Value
from mqreplay.decode.fields import object_of, text_field
from mqreplay.decode.jsonl import read_object
from mqreplay.decode.kind import Kind
from mqreplay.decode.message_queue import message_queue_of

_PLAIN: Final = PlainColumns(
    """
    ts timestamp_ms not null, response_ts timestamp_ms, broker_name string, broker_addr string, broker_id bigint,
    response_code int, remark string, error string
    """
)
COLUMNS: Final = {
    **_PLAIN.types,
    "client_id": "string",
    "consumer_group": "string",
    "topic": "string",
    "strategy": "string",
    "message_model": "string",
    "mode": "string",
    "queues": "array<struct<broker_name:string,queue_id:int>>",
}
REQUIRED: Final = ("ts", "client_id", "consumer_group", "topic")
_TEXTS: Final = {
    "client_id": "clientId",
    "consumer_group": "consumerGroup",
    "topic": "topic",
    "strategy": "strategyName",
    "message_model": "messageModel",
}


def decode_pop_assignment(line: bytes) -> dict[str, object]:
    """Return the columns of one line of pop_assignments; times in epoch ms.

    ``queues`` are those that the broker assigned, None if it assigned none and the client keeps what it has; queue id
    -1 means all of a broker. Source: QueryAssignmentRequestBody, QueryAssignmentResponseBody.

    Raises:
        DecodeError: missing_field, and those of `mqreplay.decode.jsonl`, `body_of` and `PlainColumns.take`.

    >>> line = (b'{"ts":1795228811802,"request":{"clientId":"c","consumerGroup":"g","topic":"t","strategyName":"AVG",'
    ...         b'"messageModel":"CLUSTERING"},"response_code":0,"response":{"messageQueueAssignments":[{"mode":"POP",'
    ...         b'"messageQueue":{"brokerName":"b","queueId":-1,"topic":"t"}}]}}')
    >>> assignment = decode_pop_assignment(line)
    >>> assignment["mode"], [tuple(queue) for queue in assignment["queues"]]
    ('POP', [('b', -1)])
    """
    record = read_object(line)
    assignment = _PLAIN.take(record)
    request = body_of(record, "request")
    if request is None:
        raise missing("request")
    for ours, theirs in _TEXTS.items():
        assignment[ours] = text_field(request, theirs, None)
        if assignment[ours] is None and ours in REQUIRED:
            raise missing(ours)
    body = body_of(record, "response")
    assignment["mode"], assignment["queues"] = (None, None) if body is None else _assigned(body)
    return assignment


def _assigned(body: Mapping[Key, Value]) -> tuple[str | None, list[tuple[str, int]] | None]:
    if body.get("messageQueueAssignments") is None:
        return None, None
    modes, queues = list[str | None](), list[tuple[str, int]]()
    for item in items_of(body, "messageQueueAssignments"):
        assigned = object_of(item, "messageQueueAssignments")
        queue = message_queue_of(assigned.get("messageQueue"), "messageQueueAssignments", least=-1)
        modes.append(text_field(assigned, "mode", None))
        queues.append((queue.broker_name, queue.queue_id))
    return (modes[0] if modes else None), sorted(queues)


KIND: Final = Kind(
    stem="pop_assignments",
    table="silver.pop_assignment",
    label="assignments by brokers",
    decode=decode_pop_assignment,
    columns=COLUMNS,
    required=REQUIRED,
)
