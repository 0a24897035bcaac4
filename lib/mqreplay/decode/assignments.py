"""assignments: the queues a client held at an instant, on change and every 15 seconds."""

from __future__ import annotations

from typing import Any, Final

from mqreplay.decode.columns import PlainColumns, missing
from mqreplay.decode.fields import wrong_type
from mqreplay.decode.jsonl import read_object

_TYPES: Final = {
    "ts": "timestamp_ms",
    "changed": "boolean",
    "client_id": "string",
    "consumer_group": "string",
}
_QUEUE_TYPES: Final = {
    "topic": "string",
    "broker_name": "string",
    "queue_id": "int",
    "dropped": "boolean",
    "locked": "boolean",
    "pull_from_broker_id": "bigint",
    "memory_offset": "bigint",
    "cached_msgs": "bigint",
    "cached_first": "bigint",
    "cached_last": "bigint",
    "last_pull_ts": "bigint",
}
COLUMNS: Final = {
    **_TYPES,
    "queues": f"array<struct<{','.join(f'{name}:{kind}' for name, kind in _QUEUE_TYPES.items())}>>",
}
REQUIRED: Final = ("ts", "client_id", "consumer_group", "queues")
_PLAIN: Final = PlainColumns(_TYPES, ("ts", "client_id", "consumer_group"))
_QUEUE: Final = PlainColumns(_QUEUE_TYPES | {"last_pull_ts": "maybe_ms"}, ("topic", "broker_name", "queue_id"))


def decode_assignment(line: bytes) -> dict[str, object]:
    """The columns of one line of assignments; ``ts`` and last_pull_ts in epoch ms, offsets in messages.

    ``queues`` has a tuple a queue, its fields as `COLUMNS` names them. Source:
    RebalanceImpl.processQueueTable, ProcessQueue, PullAPIWrapper.pullFromWhichNodeTable, OffsetStore.

    Raises:
        DecodeError: see `mqreplay.decode.jsonl` and `PlainColumns.take`.

    >>> line = (b'{"ts":1795228809085,"changed":true,"client_id":"c","consumer_group":"g","queues":'
    ...         b'[{"topic":"t","broker_name":"b","queue_id":1,"dropped":false,"memory_offset":9}]}')
    >>> decode_assignment(line)["queues"]
    [('t', 'b', 1, False, None, None, 9, None, None, None, None)]
    """
    record = read_object(line)
    assignment = _PLAIN.take(record)
    queues = record.get("queues")
    if queues is None:
        raise missing("queues")
    if not isinstance(queues, list):
        raise wrong_type("queues", "a list", queues)
    assignment["queues"] = [_queue(queue) for queue in queues]
    return assignment


def _queue(queue: Any) -> tuple[object, ...]:
    if not isinstance(queue, dict):
        raise wrong_type("an entry of queues", "an object", queue)
    columns = _QUEUE.take(queue)
    return tuple(columns[name] for name in _QUEUE_TYPES)
