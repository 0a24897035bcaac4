"""client_errors: exceptions that logs of clients and applications have, with what the lines name.

``request`` is what failed: listener, pull, send (after all its tries) or send_back. Most lines name only a part of
client, group, topic and queue: a pull of a 4.x client names none. ``error`` is the exception and what it says;
``response_code`` and ``remark`` are the broker's answer in it.

>>> line = b'{"ts":1584606782017,"request":"pull","response_code":24,"remark":"the group does not exist"}'
>>> decode_client_error(line)["response_code"]
24
"""

from __future__ import annotations

from typing import Final

from mqreplay.decode.columns import PlainColumns, one_of
from mqreplay.decode.jsonl import read_object
from mqreplay.decode.kind import QUEUE_PHRASE, Kind

LISTENER_CALL, PULL_REQUEST, SEND_REQUEST, SEND_BACK_REQUEST = "listener", "pull", "send", "send_back"
REQUESTS: Final = (LISTENER_CALL, PULL_REQUEST, SEND_REQUEST, SEND_BACK_REQUEST)
_PLAIN: Final = PlainColumns(
    """
    ts timestamp_ms not null, request string not null, client_id string, consumer_group string, topic string,
    broker_name string, broker_addr string, queue_id int, queue_offset bigint, msg_id string, reconsume_times int,
    is_orderly boolean, response_code int, remark string, error string, source string
    """
)


def decode_client_error(line: bytes) -> dict[str, object]:
    """Return the columns of one line of client_errors: time in epoch ms, offsets in messages.

    Raises:
        DecodeError: unknown_kind (of request), and those of `mqreplay.decode.jsonl` and `PlainColumns.take`.
    """
    failed = _PLAIN.take(read_object(line))
    one_of("request", failed["request"], REQUESTS)
    return failed


KIND: Final = Kind(
    stem="client_errors",
    table="silver.client_error",
    label="errors that clients logged",
    decode=decode_client_error,
    columns=_PLAIN.types,
    required=_PLAIN.required,
    phrases=(
        "{request} failed",
        (QUEUE_PHRASE, "{broker_name}"),
        "offset {queue_offset:,}",
        ("answer {response_code}: {remark}", "error: {error}"),
    ),
)
