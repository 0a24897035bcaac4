"""recorder_events: when `mqreplay record` ran, missing polls, and settings of name servers.

Times are epoch ms.

>>> KIND.decode(b'{"ts":1795228830217,"kind":"skipped","from_ts":1795228800000}')["from_ts"]
1795228800000
"""

from __future__ import annotations

from typing import Final

from mqreplay.decode.columns import PlainColumns
from mqreplay.decode.kind import Kind

_PLAIN: Final = PlainColumns(
    """
    ts timestamp_ms not null, kind string not null, detail string, broker_name string, broker_id bigint,
    request string, from_ts timestamp_ms, to_ts timestamp_ms, count bigint
    """
)
# The event with the settings of a name server, and the form of its detail.
NAME_SERVER_SETTINGS: Final = "name_server_settings"
SCAN: Final = "scanNotActiveBrokerInterval"
NAME_SERVER_4: Final = f"no {SCAN}: it is of 4.x"
NAME_SERVER_SCAN: Final = rf"^name server (?P<addr>\S+): (?:{SCAN}=(?P<ms>[0-9]{{1,15}})|{NAME_SERVER_4})$"
KIND: Final = Kind(
    stem="recorder_events",
    table="silver.recorder_event",
    label="events of the recorder",
    decode=_PLAIN.decode,
    columns=_PLAIN.types,
    required=_PLAIN.required,
    by_recorder=True,
    phrases=("{kind} {detail}",),
)
