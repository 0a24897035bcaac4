"""What the kernels find in made-up recordings, as rows that compare with those of core's laws."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc

from mqreplay.decisions.failover_exposure import MINUTES, lacking
from mqreplay.evidence.offsets import standstills
from mqreplay.evidence.offsets.queue_events import QueueEvents
from mqreplay.evidence.offsets.slave_copies import SPAN, Copied, both_files, falling_behind
from mqreplay.words.keys import GROUP_QUEUE
from queue_recordings import SECOND, STEP_S, STUCK_S, Row, copies_of, slaves_of

SLAVES = (
    "consumer_group STRING, topic STRING, broker_name STRING, queue_id INT, slave_id BIGINT, "
    f"lacked ARRAY<{MINUTES}>, behind ARRAY<{SPAN}>"
)
STALE_MS = 3 * STEP_S * 1000


def plain(found: pa.Table) -> list[Row]:
    """The rows in one order, instants in microseconds."""
    columns = [c.cast(pa.int64()) if pa.types.is_timestamp(c.type) else c for c in found.columns]
    return in_order(zip(*(column.to_pylist() for column in columns), strict=True))


def in_order(rows: Iterable[Row]) -> list[Row]:
    return sorted(rows, key=repr)  # null has no order of its own


def standing_spans(whole: QueueEvents, seed: int) -> list[Row]:
    """One row a span."""
    found = standstills.standstill_spans(whole, STUCK_S, copies_of(seed))
    held = found["spans"].combine_chunks()
    own = found.select(list(GROUP_QUEUE)).take(pc.list_parent_indices(held))
    columns = [*own.columns, *held.flatten().flatten()]
    return plain(pa.table(columns, names=[str(number) for number in range(len(columns))]))


def slave_copies(events: QueueEvents, slaves: Copied, reach_ms: int) -> pa.Table:
    """One row a queue, group and slave of which a file was copied, of SLAVES' columns."""
    copies = both_files(events, slaves)
    return copies.table(lacked=lacking(copies), behind=falling_behind(copies, reach_ms))


def slaves(events: QueueEvents, seed: int) -> pa.Table:
    return slave_copies(events, slaves_of(seed), STALE_MS)


def of_slaves(events: QueueEvents, seed: int) -> dict[Row, tuple[list[Row], list[Row]]]:
    """By queue, group and slave."""
    found = {}
    for *key, lacked, behind in plain(slaves(events, seed)):
        minutes = [(int(m["minute"].timestamp()) * SECOND, *list(m.values())[1:]) for m in lacked]
        found[tuple(key)] = minutes, [tuple(span.values()) for span in behind]
    return found
