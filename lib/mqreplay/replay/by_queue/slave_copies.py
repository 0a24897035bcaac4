"""What is judged of a queue's offset as a slave keeps it: SlaveSynchronize copies the master's file, now and then."""

from __future__ import annotations

import pyarrow as pa

from mqreplay.replay.by_queue import falling_behind, lacking
from mqreplay.replay.by_queue.both_files import Copied, both_files
from mqreplay.replay.by_queue.columns import QueueEvents
from mqreplay.replay.by_queue.events import KEY

SCHEMA = (
    "consumer_group STRING, topic STRING, broker_name STRING, queue_id INT, slave_id BIGINT, "
    f"lacked ARRAY<{lacking.ITEM}>, behind ARRAY<{falling_behind.ITEM}>"
)


def slave_copies(events: QueueEvents, slaves: Copied, reach_ms: int) -> pa.Table:
    """One row a queue, group and slave of which a file was copied; of SCHEMA's columns, as the two rules tell them."""
    copies = both_files(events, slaves)
    return events.table(
        copies.row[copies.first],
        KEY,
        slave_id=copies.slave[copies.first],
        lacked=lacking.lacking(copies),
        behind=falling_behind.falling_behind(copies, reach_ms),
    )
