"""pull_log: a PULL_MESSAGE request of a client and its answer, one line each.

Times are epoch ms, offsets in messages, commit log offsets in bytes. ``broker_name`` is the queue's; ``broker_addr``
and ``broker_id`` are those of the asked broker. Source: PullMessageRequestHeader, PullMessageResponseHeader.

>>> line = (b'{"request_ts":1795228808477,"client_id":"c","consumer_group":"g","topic":"t","queue_id":0,'
...         b'"broker_name":"b","queue_offset":7,"response_code":0,"next_begin_offset":8}')
>>> pull = KIND.decode(line)
>>> pull["queue_offset"], pull["next_begin_offset"], pull["suggest_which_broker_id"]
(7, 8, None)
"""

from __future__ import annotations

from typing import Final

from mqreplay.decode.columns import PlainColumns
from mqreplay.decode.kind import CAPTURE, ON_BROKER, QUEUE_PHRASE, Kind, RecordingWays

PULL_COLUMNS: Final = PlainColumns(
    """
    request_ts timestamp_ms not null, response_ts timestamp_ms, client_id string not null,
    consumer_group string not null, topic string not null, queue_id int not null, broker_name string not null,
    broker_addr string, broker_id bigint, opaque int, queue_offset bigint not null, commit_offset bigint,
    sys_flag int, max_msg_nums int, suspend_timeout_ms bigint, sub_version bigint, expression string,
    expression_type string, response_code int, response_name string, remark string, next_begin_offset bigint,
    min_offset bigint, max_offset bigint, suggest_which_broker_id bigint, body_bytes bigint, msg_count int,
    first_queue_offset bigint, last_queue_offset bigint, first_commitlog_offset bigint,
    last_commitlog_offset bigint, last_store_size int, first_born_ts timestamp_ms, error string
    """
)
KIND: Final = Kind(
    stem="pull_log",
    table="silver.pull",
    label="pulls",
    decode=PULL_COLUMNS.decode,
    columns=PULL_COLUMNS.types,
    required=PULL_COLUMNS.required,
    time="request_ts",
    plain=PULL_COLUMNS,
    phrases=("pull at offset {queue_offset:,}", QUEUE_PHRASE, ON_BROKER, "answer {response_name}", "error: {error}"),
    recording=RecordingWays(CAPTURE, CAPTURE, importance=2),
)
