"""recorder_events: when `mqreplay record` ran, missing polls, and settings of name servers."""

from __future__ import annotations

from typing import Final

from mqreplay.decode.columns import PlainColumns
from mqreplay.decode.jsonl import read_object
from mqreplay.decode.kind import Kind

COLUMNS: Final = {
    "ts": "timestamp_ms",
    "kind": "string",
    "detail": "string",
    "broker_name": "string",
    "broker_id": "bigint",
    "request": "string",
    "from_ts": "timestamp_ms",
    "to_ts": "timestamp_ms",
    "count": "bigint",
}
REQUIRED: Final = ("ts", "kind")
# The event with the settings of a name server, and the form of its detail.
NAME_SERVER_SETTINGS: Final = "name_server_settings"
SCAN: Final = "scanNotActiveBrokerInterval"
NAME_SERVER_4: Final = f"no {SCAN}: it is of 4.x"
NAME_SERVER_SCAN: Final = rf"^name server (?P<addr>\S+): (?:{SCAN}=(?P<ms>[0-9]{{1,15}})|{NAME_SERVER_4})$"
_PLAIN: Final = PlainColumns(COLUMNS, REQUIRED)


def decode_recorder_event(line: bytes) -> dict[str, object]:
    """Return the columns of one line of recorder_events; times in epoch ms.

    Raises:
        DecodeError: see `mqreplay.decode.jsonl` and `PlainColumns.take`.

    >>> decode_recorder_event(b'{"ts":1795228830217,"kind":"skipped","from_ts":1795228800000}')["from_ts"]
    1795228800000
    """
    return _PLAIN.take(read_object(line))


KIND: Final = Kind(
    stem="recorder_events",
    table="silver.recorder_event",
    label="events of the recorder",
    decode=decode_recorder_event,
    columns=COLUMNS,
    required=REQUIRED,
    by_recorder=True,
    phrases=("{kind} {detail}",),
)
