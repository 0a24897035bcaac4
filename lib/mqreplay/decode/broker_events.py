"""broker_events: what happened to brokers and their topics, as logs of brokers and controllers write it.

Times are epoch ms. ``event`` is one of EVENTS. ``master_id``, ``master_addr`` and ``master_epoch`` are those of the
master since the event: the epoch of a controller, or the term of DLedger. ``is_at_start``: the process had just begun.
``starts`` counts starts in a row of which none became ready.

>>> KIND.decode(b'{"ts":1795228830217,"event":"elected","broker_name":"b","master_id":2,"master_epoch":5}')["master_id"]
2
"""

from __future__ import annotations

from typing import Final

from mqreplay.decode.columns import PlainColumns
from mqreplay.decode.kind import Kind

# The role of a broker changed; a controller elected a master, elected none, or lost a broker.
BECAME_MASTER, BECAME_SLAVE, ELECTED, NOT_ELECTED, INACTIVE = "master", "slave", "elected", "not_elected", "inactive"
# A process of a broker began, could not be initialized, and was ready.
STARTED, START_FAILED, READY = "started", "start_failed", "ready"
TOPIC_CREATED, TOPIC_DELETED = "topic_created", "topic_deleted"
EVENTS: Final = (
    *(BECAME_MASTER, BECAME_SLAVE, ELECTED, NOT_ELECTED, INACTIVE),
    *(STARTED, START_FAILED, READY, TOPIC_CREATED, TOPIC_DELETED),
)
_PLAIN: Final = PlainColumns(
    """
    ts timestamp_ms not null, event string not null, broker_name string not null, broker_id bigint,
    broker_addr string, master_id bigint, master_addr string, master_epoch bigint, is_at_start boolean, starts bigint,
    topic string, detail string, source string
    """
)
KIND: Final = Kind(
    stem="broker_events",
    table="silver.broker_event",
    label="events in logs of brokers and controllers",
    decode=_PLAIN.decode,
    columns=_PLAIN.types,
    required=_PLAIN.required,
    by_recorder=True,
    phrases=(
        ("{event} of {topic}", "{event} {detail}", "{event}, epoch {master_epoch}", "{event}"),
        ("of {broker_name} at {broker_addr}", "of {broker_name}-{broker_id}", "of {broker_name}"),
    ),
)
