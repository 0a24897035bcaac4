"""lowered_offsets: commits that lowered the stored offset of a queue, as brokers log them.

Times are epoch ms, offsets in messages. Source: ConsumerOffsetManager#commitOffset, "[NOTIFYME]update consumer offset
less than store".

>>> line = (b'{"ts":1795228808333,"consumer_group":"g","topic":"t","broker_name":"b","broker_id":0,'
...         b'"queue_id":2,"client_addr":"10.0.0.3:35702","stored_offset":9,"commit_offset":5}')
>>> KIND.decode(line)["stored_offset"]
9
"""

from __future__ import annotations

from typing import Final

from mqreplay.decode.columns import PlainColumns
from mqreplay.decode.kind import Kind

_PLAIN: Final = PlainColumns(
    """
    ts timestamp_ms not null, consumer_group string not null, topic string not null, broker_name string not null,
    broker_id bigint not null, queue_id int not null, client_addr string, stored_offset bigint not null,
    commit_offset bigint not null
    """
)
KIND: Final = Kind(
    stem="lowered_offsets",
    table="silver.lowered_offset",
    label="commits that lowered an offset",
    decode=_PLAIN.decode,
    columns=_PLAIN.types,
    required=_PLAIN.required,
    by_recorder=True,
)
