"""offset_commits: UPDATE_CONSUMER_OFFSET (kind UPDATE) and QUERY_CONSUMER_OFFSET (kind QUERY)."""

from __future__ import annotations

from typing import Final

from mqreplay.decode.columns import PlainColumns, missing, one_of
from mqreplay.decode.jsonl import read_object
from mqreplay.decode.kind import CAPTURE, ON_BROKER, QUEUE_PHRASE, Kind, RecordingWays

_PLAIN: Final = PlainColumns(
    """
    ts timestamp_ms not null, response_ts timestamp_ms, kind string not null, mode string,
    client_id string not null, consumer_group string not null, topic string not null, queue_id int not null,
    broker_name string not null, broker_addr string, broker_id bigint, commit_offset bigint, answer_offset bigint,
    response_code int, response_name string, remark string, error string
    """
)
KINDS_OF_REQUEST: Final = ("UPDATE", "QUERY")


def decode_offset_commit(line: bytes) -> dict[str, object]:
    """Return the columns of one line of offset_commits: times in epoch ms, offsets in messages.

    Source: UpdateConsumerOffsetRequestHeader, QueryConsumerOffsetRequestHeader and its response.

    Raises:
        DecodeError: missing_field (an UPDATE needs its commit_offset), unknown_kind, and those of
            `mqreplay.decode.jsonl` and `PlainColumns.take`.

    >>> line = (b'{"ts":1795228808333,"kind":"UPDATE","client_id":"c","consumer_group":"g","topic":"t",'
    ...         b'"queue_id":0,"broker_name":"b","commit_offset":5}')
    >>> decode_offset_commit(line)["commit_offset"]
    5
    """
    commit = _PLAIN.take(read_object(line))
    if one_of("kind", commit["kind"], KINDS_OF_REQUEST) == "UPDATE" and commit["commit_offset"] is None:
        raise missing("commit_offset")
    return commit


KIND: Final = Kind(
    stem="offset_commits",
    table="silver.offset_commit",
    label="offset commits",
    decode=decode_offset_commit,
    columns=_PLAIN.types,
    required=_PLAIN.required,
    phrases=("{kind} offset {commit_offset:,}", QUEUE_PHRASE, ON_BROKER, "error: {error}"),
    recording=RecordingWays(CAPTURE, CAPTURE, importance=9),
)
