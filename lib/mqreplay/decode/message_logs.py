"""consume_log and produce_log: messages consumed by listeners and sent by producers.

consume_log: times are epoch ms, offsets in messages, sizes in bytes. ``topic`` is the message's own; ``queue_topic``
that of the queue it came from (%RETRY%group for a retry), on ``broker_name`` and ``queue_id``.

>>> line = (b'{"ts":1795228808695,"client_id":"c","consumer_group":"g","topic":"t","broker_name":"b",'
...         b'"queue_id":0,"queue_offset":3,"status":"CONSUME_SUCCESS","orderly":false}')
>>> CONSUME_KIND.decode(line)["status"]
'CONSUME_SUCCESS'

produce_log: ``ts`` is epoch ms, ``size`` that of the body in bytes. A failed send has an error, but neither queue nor
ids. ``properties`` are in the form of the wire: each name, byte 1, value, byte 2
(MessageDecoder#messageProperties2String).

>>> PRODUCE_KIND.decode(b'{"ts":1795228806536,"topic":"t","key":"t-0","error":"time-out"}')["error"]
'time-out'
"""

from __future__ import annotations

from typing import Final

from mqreplay.decode.columns import PlainColumns
from mqreplay.decode.kind import QUEUE_PHRASE, Kind, RecordingWays

CONSUME: Final = PlainColumns(
    """
    ts timestamp_ms not null, client_id string not null, consumer_group string not null, topic string not null,
    queue_topic string, broker_name string not null, queue_id int not null, queue_offset bigint not null,
    commitlog_offset bigint, store_size int, msg_id string, keys string, tags string, born_ts timestamp_ms,
    store_ts timestamp_ms, reconsume_times int, status string, orderly boolean, origin_topic string,
    origin_msg_id string
    """
)
PRODUCE: Final = PlainColumns(
    """
    ts timestamp_ms not null, topic string not null, broker_name string, queue_id int, queue_offset bigint,
    key string, tags string, size int, msg_id string, offset_msg_id string, send_status string, error string,
    properties string
    """
)
OF_CONSUMERS: Final = "write consume_log.jsonl in a hook of the consumers (docs/recording.md)"
OF_PRODUCERS: Final = "write produce_log.jsonl in a hook of the producers (docs/recording.md)"
CONSUME_KIND: Final = Kind(
    stem="consume_log",
    table="silver.consume",
    label="consumed messages",
    decode=CONSUME.decode,
    columns=CONSUME.types,
    required=CONSUME.required,
    plain=CONSUME,
    phrases=(
        "message {msg_id} at offset {queue_offset:,}",
        QUEUE_PHRASE,
        "{status}",
        "redelivery {reconsume_times}",
    ),
    recording=RecordingWays(OF_CONSUMERS, OF_CONSUMERS, importance=11),
)
PRODUCE_KIND: Final = Kind(
    stem="produce_log",
    table="silver.produce",
    label="sent messages",
    decode=PRODUCE.decode,
    columns=PRODUCE.types,
    required=PRODUCE.required,
    plain=PRODUCE,
    recording=RecordingWays(OF_PRODUCERS, OF_PRODUCERS, importance=12),
)
