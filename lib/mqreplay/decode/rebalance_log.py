"""rebalance_log: inputs and result of each client's allocate(), from a hook or from the client's log."""

from __future__ import annotations

from typing import Final

from mqreplay.core.java import INT_MAX
from mqreplay.decode.body import texts_of
from mqreplay.decode.columns import PlainColumns, source_of
from mqreplay.decode.fields import wrong_type
from mqreplay.decode.jsonl import read_object
from mqreplay.decode.kind import CLIENT_LOG, RECORD, Kind, RecordingWays
from mqreplay.words.errors import DecodeError

_PLAIN: Final = PlainColumns(
    """
    ts timestamp_ms not null, client_id string not null, consumer_group string not null, topic string not null,
    strategy string, error string, source string, mq_all_size int, cid_all_size int
    """
)
_QUEUES: Final = "array<struct<broker_name:string,queue_id:int>>"
COLUMNS: Final = {**_PLAIN.types, "cid_all": "array<string>", "mq_all": _QUEUES, "mq_divided": _QUEUES}
SOURCES: Final = ("rebalance_log", "client_log")  # the first one is the default


def decode_rebalance(line: bytes) -> dict[str, object]:
    """Return the columns of one line of rebalance_log; ``ts`` in epoch ms.

    ``mq_all`` and ``mq_divided`` are (broker_name, queue_id) pairs of ``topic``, in the order recorded; a
    list is None if it was not recorded. A client's log has only the sizes of lists.
    Source: RebalanceImpl.rebalanceByTopic.

    Raises:
        DecodeError: see `mqreplay.decode.jsonl` and `PlainColumns.take`.

    >>> line = (b'{"ts":1795228808310,"client_id":"c","consumer_group":"g","topic":"t","strategy":"AVG",'
    ...         b'"cid_all":["c"],"mq_all":[["b",0],["b",1]],"mq_divided":[["b",0]]}')
    >>> decode_rebalance(line)["mq_all"]
    [('b', 0), ('b', 1)]
    """
    record = read_object(line)
    rebalance = _PLAIN.take(record)
    rebalance["source"] = source_of(record, SOURCES)
    cids = record.get("cid_all")
    rebalance["cid_all"] = None if cids is None else texts_of(cids, "cid_all")
    for name in ("mq_all", "mq_divided"):
        queues = record.get(name)
        rebalance[name] = None if queues is None else _pairs(queues, name)
    return rebalance


def _pairs(queues: object, name: str) -> list[tuple[str, int]]:
    if not isinstance(queues, list):
        raise wrong_type(name, "a list of [broker name, queue id] pairs", queues)
    return [_pair(queue, name) for queue in queues]


def _pair(queue: object, name: str) -> tuple[str, int]:
    if not isinstance(queue, list) or len(queue) != 2:
        raise wrong_type(f"a queue in {name}", "a [broker name, queue id] pair", queue)
    broker_name, queue_id = queue
    if not isinstance(broker_name, str) or type(queue_id) is not int:
        raise wrong_type(f"a queue in {name}", "a [broker name, queue id] pair", queue)
    if not 0 <= queue_id <= INT_MAX:
        raise DecodeError("bad_number", f"a queue id in {name} should be 0 to {INT_MAX}, and is {queue_id}")
    return broker_name, queue_id


KIND: Final = Kind(
    stem="rebalance_log",
    table="silver.rebalance",
    label="rebalances",
    decode=decode_rebalance,
    columns=COLUMNS,
    required=_PLAIN.required,
    phrases=(
        "{strategy} gives {mq_divided} of {topic}",
        "from {mq_all_size} queues for {cid_all_size} clients",
        "error: {error}",
    ),
    recording=RecordingWays(CLIENT_LOG, RECORD, CLIENT_LOG, importance=3),
)
