"""What is judged of a queue's offset as a slave keeps it: SlaveSynchronize copies the master's file, now and then."""

from __future__ import annotations

import pyarrow as pa

from mqreplay.judge import missing_offsets, stale_spans
from mqreplay.judge.both_files import Copied, both_files
from mqreplay.judge.queue_events import KEY, QueueEvents

SCHEMA = (
    "consumer_group STRING, topic STRING, broker_name STRING, queue_id INT, slave_id BIGINT, "
    f"lacked ARRAY<{missing_offsets.ITEM}>, behind ARRAY<{stale_spans.ITEM}>"
)


def slave_copies(events: QueueEvents, slaves: Copied, reach_ms: int) -> pa.Table:
    """One row a queue, group and slave of which a file was copied; of SCHEMA's columns, as the two rules tell them."""
    copies = both_files(events, slaves)
    return events.table(
        copies.row[copies.first],
        KEY,
        slave_id=copies.slave[copies.first],
        lacked=missing_offsets.lacking(copies),
        behind=stale_spans.falling_behind(copies, reach_ms),
    )
