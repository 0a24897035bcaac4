"""offset_lookups: GET_MAX_OFFSET (kind MAX) and SEARCH_OFFSET_BY_TIMESTAMP (kind SEARCH) of consumers.

A consumer without a stored offset asks one of them for the offset at which it starts (MQAdminImpl).
"""

from __future__ import annotations

from typing import Final

from mqreplay.decode.columns import PlainColumns, missing, one_of
from mqreplay.decode.jsonl import read_object
from mqreplay.decode.kind import ON_BROKER, QUEUE_PHRASE, Kind

_PLAIN: Final = PlainColumns(
    """
    ts timestamp_ms not null, response_ts timestamp_ms, kind string not null, client_id string not null,
    topic string not null, queue_id int not null, broker_name string not null, broker_addr string, broker_id bigint,
    searched_ts timestamp_ms, answer_offset bigint, response_code int, remark string, error string
    """
)
KINDS_OF_REQUEST: Final = ("MAX", "SEARCH")


def decode_offset_lookup(line: bytes) -> dict[str, object]:
    """Return the columns of one line of offset_lookups: times in epoch ms, offsets in messages.

    Source: GetMaxOffsetRequestHeader, SearchOffsetRequestHeader and their responses.

    Raises:
        DecodeError: missing_field (a SEARCH needs its searched_ts), unknown_kind, and those of
            `mqreplay.decode.jsonl` and `PlainColumns.take`.

    >>> line = (b'{"ts":1795228808333,"kind":"MAX","client_id":"c","topic":"t","queue_id":0,"broker_name":"b",'
    ...         b'"answer_offset":5}')
    >>> decode_offset_lookup(line)["answer_offset"]
    5
    """
    lookup = _PLAIN.take(read_object(line))
    if one_of("kind", lookup["kind"], KINDS_OF_REQUEST) == "SEARCH" and lookup["searched_ts"] is None:
        raise missing("searched_ts")
    return lookup


KIND: Final = Kind(
    stem="offset_lookups",
    table="silver.offset_lookup",
    label="requests of clients for the end of a queue, or for the offset of a time",
    decode=decode_offset_lookup,
    columns=_PLAIN.types,
    required=_PLAIN.required,
    phrases=(("{kind}: offset {answer_offset:,}", "{kind}"), QUEUE_PHRASE, ON_BROKER, "error: {error}"),
)
