"""The tables that are dealt by queue, with the columns that name the queue."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from mqreplay.engines.passes import PassTable
from mqreplay.lake.buckets import key_of
from mqreplay.replay.day import BY_QUEUE, CHECKPOINT, LOWERED

QUEUE_BUCKET: Final = key_of(("broker_name", "topic", "queue_id"))
# A message in a retry topic belongs to the queue that it came from.
DELIVERY: Final = key_of(("broker_name", "queue_topic|topic", "queue_id"))

# Columns that no judgement of queues reads: each costs time and memory for millions of rows.
UNREAD: Final[Mapping[str, tuple[str, ...]]] = {
    "pull": (
        *("suspend_timeout_ms", "expression", "expression_type", "response_name", "first_born_ts", "source_digest"),
    ),
    "offset_commit": ("response_name",),
    "consume": ("store_size",),
}
SILVER: Final = {
    name: PassTable(f"silver.{name}", DELIVERY if name == "consume" else QUEUE_BUCKET, unread=UNREAD.get(name, ()))
    for name in BY_QUEUE
}
LOWERED_OFFSETS: Final = PassTable(f"silver.{LOWERED}", QUEUE_BUCKET)
OFFSETS_BEFORE: Final = PassTable(CHECKPOINT, QUEUE_BUCKET)
PULL_ROUTES: Final = PassTable("gold.pull_route", QUEUE_BUCKET)
SNAPSHOT_ROWS: Final = PassTable("silver.snapshot")  # few: every task has all
TOPIC_STATS: Final = PassTable("silver.topic_stats")

# A queue that is too large for one task has two: for what concerns each pull alone, and for all else.
PULL_PART, QUEUE_PART = "pulls", "queues"
TABLES_OF_PART: Final = {
    PULL_PART: frozenset({"silver.pull", "silver.consume", "silver.produce", PULL_ROUTES.name}),
    QUEUE_PART: frozenset(
        {
            *("silver.pull", "silver.offset_commit", "silver.offset_lookup", "silver.offset_change"),
            *(LOWERED_OFFSETS.name, OFFSETS_BEFORE.name),
        }
    ),
}
