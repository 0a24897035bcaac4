"""assignments: the queues of a client at an instant, from a hook, a poll or its log."""

from __future__ import annotations

from typing import Any, Final

from mqreplay.decode.body import answer_of
from mqreplay.decode.columns import PlainColumns, missing, source_of
from mqreplay.decode.fields import wrong_type
from mqreplay.decode.jsonl import read_object
from mqreplay.decode.kind import AGAIN, CLIENT_LOG, RECORD, Kind, RecordingWays
from mqreplay.decode.running_info import running_info_of
from mqreplay.decode.subscriptions import SUBSCRIPTIONS

_PLAIN: Final = PlainColumns(
    """
    ts timestamp_ms not null, response_ts timestamp_ms, previous_ts timestamp_ms, changed boolean,
    client_id string not null, consumer_group string not null, broker_name string, broker_id bigint,
    response_code int, remark string, error string, source string, process string
    """
)
_QUEUE: Final = PlainColumns(
    """
    topic string not null, broker_name string not null, queue_id int not null, dropped boolean, locked boolean,
    pull_from_broker_id bigint, memory_offset bigint, cached_msgs bigint, cached_first bigint, cached_last bigint,
    last_pull_ts maybe_ms
    """
)
_QUEUE_TYPES: Final = _QUEUE.types | {"last_pull_ts": "bigint"}
_OF_CLIENT: Final = {
    "queues": f"array<struct<{','.join(f'{name}:{kind}' for name, kind in _QUEUE_TYPES.items())}>>",
    "listeners": (
        "array<struct<topic:string,broker_name:string,queue_id:int,cached_mib:bigint,taken_msgs:bigint,"
        "taken_first:bigint,last_consume_ts:bigint>>"
    ),
    "pop_queues": (
        "array<struct<topic:string,broker_name:string,queue_id:int,dropped:boolean,wait_ack_msgs:bigint,"
        "last_pop_ts:bigint>>"
    ),
    "strategy": "string",
    "message_model": "string",
    "consume_type": "string",
    "consume_from_where": "string",
    "subscriptions": SUBSCRIPTIONS,
    "properties": "map<string,string>",
    "listener_frames": "array<string>",
}
COLUMNS: Final = {name: kind for name, kind in _PLAIN.types.items() if name != "remark"} | _OF_CLIENT
SOURCES: Final = ("assignment", "running_info", "client_log")  # the first one is the default


def decode_assignment(line: bytes) -> dict[str, object]:
    """Return the columns of one line of assignments; times and last_pull_ts in epoch ms, offsets in messages.

    ``queues``, ``listeners`` and ``pop_queues`` have a tuple a queue, its fields as `COLUMNS` names them. Of source
    running_info they come from the client's answer (`running_info_of`), and are None where ``error`` says why there is
    none. Source: RebalanceImpl.processQueueTable, ProcessQueue, PullAPIWrapper.pullFromWhichNodeTable, OffsetStore.

    Raises:
        DecodeError: see `mqreplay.decode.jsonl`, `body_of`, `running_info_of` and `PlainColumns.take`.

    >>> line = (b'{"ts":1795228809085,"changed":true,"client_id":"c","consumer_group":"g","queues":'
    ...         b'[{"topic":"t","broker_name":"b","queue_id":1,"dropped":false,"memory_offset":9}]}')
    >>> decode_assignment(line)["queues"]
    [('t', 'b', 1, False, None, None, 9, None, None, None, None)]
    >>> line = (b'{"ts":1795228809085,"client_id":"c","consumer_group":"g","source":"running_info","response_code":1,'
    ...         b'"remark":"The Consumer <g> <c> not online"}')
    >>> decode_assignment(line)["error"]
    'The Consumer <g> <c> not online'
    """
    record = read_object(line)
    assignment = dict.fromkeys(_OF_CLIENT) | _PLAIN.take(record)
    source, remark = source_of(record, SOURCES), assignment.pop("remark")
    assignment["source"] = source
    if source != "running_info":
        queues = record.get("queues")
        if queues is None:
            raise missing("queues")
        if not isinstance(queues, list):
            raise wrong_type("queues", "a list", queues)
        assignment["queues"] = [_queue(queue) for queue in queues]
        return assignment
    body = answer_of(record)
    if body is not None:
        return assignment | running_info_of(body)._asdict()
    if assignment["error"] is None:
        code = assignment["response_code"]
        assignment["error"] = remark or ("no answer" if code in (None, 0) else f"response code {code}")
    return assignment


def _queue(queue: Any) -> tuple[object, ...]:
    if not isinstance(queue, dict):
        raise wrong_type("an entry of queues", "an object", queue)
    columns = _QUEUE.take(queue)
    return tuple(columns[name] for name in _QUEUE_TYPES)


KIND: Final = Kind(
    stem="assignments",
    table="silver.assignment",
    label="queues that clients hold",
    decode=decode_assignment,
    columns=COLUMNS,
    required=_PLAIN.required,
    phrases=("holds {queues}", "error: {error}"),
    recording=RecordingWays(AGAIN, RECORD, CLIENT_LOG, importance=4),
)
