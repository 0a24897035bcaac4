"""stale_slave_offsets against slaves that copy by core: sync_consumer_offset at each turn of their schedule."""

from __future__ import annotations

import random

import pytest

from evidence.offsets.slave_turns import MASTER, at_time, turns
from evidence.offsets.test_slave_copies import BOUND_S, CHANGE, Files
from mqreplay.core.slave_synchronize import sync_consumer_offset
from mqreplay.evidence.offsets.queue_events import queue_events
from mqreplay.evidence.offsets.slave_copies import both_files, stale_spans_of_shard
from silver_moments import at
from silver_rows import rows

LONG = 900
KEY = "T@g"


def master_history(pick: random.Random) -> dict[int, dict[int, int]]:
    """Offsets of two queues by ms: they grow, and are set back at times."""
    offsets, history = {0: 100, 1: 100}, {}
    for ms in range(0, LONG * 1000, 5000):
        offsets = {queue: max(0, offset + pick.randrange(20)) for queue, offset in offsets.items()}
        if pick.random() < 0.02:
            offsets[0] -= 60
        history[ms] = offsets
    return history


def stale_queues(seed: int, version: str, lost_after: int | None = None) -> int:
    """Copy a master's offsets by the laws, and return in how many queues the slave's copies are stale."""
    pick = random.Random(seed)
    master = master_history(pick)
    slave = {0: dict(master[0])}

    def master_addr(ms: int) -> str | None:
        return MASTER if lost_after is None or ms < lost_after * 1000 else None

    for now in turns(version, LONG, pick, master_addr=master_addr):
        slave[now] = dict(sync_consumer_offset({KEY: at_time(slave, now)}, {KEY: at_time(master, now)})[KEY])
    files = Files()
    for broker_id, history in ((0, master), (1, slave)):
        for queue in (0, 1):
            held = {s: at_time(history, s * 1000)[queue] for s in range(0, LONG, 5)}
            moved = {s: offset for s, offset in held.items() if held.get(s - 5) != offset}
            files.hold("b", broker_id, moved, queue_id=queue)
        files.copy("b", broker_id, range(0, LONG, 5))
    others = (rows(f"silver.{name}", {}, []) for name in ("offset_commit", "pull", "topic_stats"))
    changes = rows("silver.offset_change", CHANGE, files.changes)
    last = int(at(LONG - 5).timestamp() * 1_000_000)
    spans = stale_spans_of_shard(both_files(queue_events(changes, *others, set()), {"b": {1: last}}), BOUND_S * 1000)
    return spans["queue_id"].n_unique()


@pytest.mark.parametrize("version", ["4.9.7", "5.3.3"])
def test_a_slave_that_copies_is_never_stale_and_one_that_does_not_is(version: str) -> None:
    assert sum(stale_queues(seed, version) for seed in range(20)) == 0
    assert sum(stale_queues(seed, version, lost_after=300) for seed in range(20)) > 30
