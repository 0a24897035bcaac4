"""The last instant of events: what night_facts finds in the tables, found in the events."""

from __future__ import annotations

import numpy as np

from mqreplay.evidence.offsets.queue_events import QueueEvents


def last_instant_of_shard(events: QueueEvents) -> int | None:
    """The last commit that counts, or end of a queue, among the events (epoch ms)."""
    counts, _ = events.numbers("counts")
    at = [events.known("at", np.flatnonzero(counts)), events.ends.at]
    return max((int(some.max()) // 1000 for some in at if len(some)), default=None)
