"""lock_requests: LOCK_BATCH_MQ and UNLOCK_BATCH_MQ of orderly consumers, with requested and granted queues."""

from __future__ import annotations

from typing import Final

from mqreplay.decode.body import body_of, items_of
from mqreplay.decode.columns import PlainColumns, missing, one_of
from mqreplay.decode.fields import text_field
from mqreplay.decode.jsonl import read_object
from mqreplay.decode.kind import Kind
from mqreplay.decode.message_queue import message_queues_of

_PLAIN: Final = PlainColumns(
    """
    ts timestamp_ms not null, response_ts timestamp_ms, kind string not null, client_id string, broker_name string,
    broker_addr string, broker_id bigint, mode string, response_code int, remark string, error string,
    other_client_id string
    """
)
_QUEUES: Final = "array<struct<topic:string,broker_name:string,queue_id:int>>"
COLUMNS: Final = {**_PLAIN.types, "consumer_group": "string", "mq_set": _QUEUES, "lock_ok_mq_set": _QUEUES}
REQUIRED: Final = ("ts", "kind", "client_id", "consumer_group", "mq_set")
KINDS_OF_REQUEST: Final = ("LOCK_BATCH_MQ", "UNLOCK_BATCH_MQ")


def decode_lock_request(line: bytes) -> dict[str, object]:
    """Return the columns of one line of lock_requests; times in epoch ms.

    ``mq_set`` are the requested queues, ``lock_ok_mq_set`` those that the broker granted (None without an answer, as
    for every one-way unlock). ``other_client_id`` is the client that has the lock, in lines made of lock.log. Source:
    LockBatchRequestBody, LockBatchResponseBody, UnlockBatchRequestBody.

    Raises:
        DecodeError: unknown_kind, missing_field, and those of `mqreplay.decode.jsonl`, `body_of` and
            `PlainColumns.take`.

    >>> line = (b'{"ts":1795228811802,"kind":"LOCK_BATCH_MQ","request":{"clientId":"c","consumerGroup":"g",'
    ...         b'"mqSet":[{"brokerName":"b","queueId":0,"topic":"t"}]},"response":{"lockOKMQSet":[]}}')
    >>> lock = decode_lock_request(line)
    >>> lock["client_id"], [tuple(queue) for queue in lock["mq_set"]], lock["lock_ok_mq_set"]
    ('c', [('t', 'b', 0)], [])
    """
    record = read_object(line)
    lock = _PLAIN.take(record)
    one_of("kind", lock["kind"], KINDS_OF_REQUEST)
    request = body_of(record, "request")
    if request is None:
        raise missing("request")
    lock["consumer_group"] = text_field(request, "consumerGroup", None)
    if lock["client_id"] is None:
        lock["client_id"] = text_field(request, "clientId", None)
    for name in ("client_id", "consumer_group"):
        if lock[name] is None:
            raise missing(name)
    lock["mq_set"] = message_queues_of(items_of(request, "mqSet"), "mqSet")
    response = body_of(record, "response")
    granted = None if response is None else message_queues_of(items_of(response, "lockOKMQSet"), "lockOKMQSet")
    lock["lock_ok_mq_set"] = granted
    return lock


KIND: Final = Kind(
    stem="lock_requests",
    table="silver.lock",
    label="lock requests",
    decode=decode_lock_request,
    columns=COLUMNS,
    required=REQUIRED,
)
