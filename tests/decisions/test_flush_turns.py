"""gold.replication against brokers that flush by core: `flushes` at each turn of FlushRealTimeService."""

from __future__ import annotations

import random

import pytest

from decisions.test_replication import Row, judged, poll
from mqreplay.core.flush import LONG_FLUSH, FlushPolicy, commit_log_policy, flushes, is_thorough

FILE_SIZE = 1 << 30  # mappedFileSizeCommitLog
LONG = 120  # seconds
# Of bytes each 100 ms: idle, a little, a lot.
RATES = (0, 0, 90, 700, 9_000, 400_000)


def polled_run(policy: FlushPolicy, pick: random.Random, disk_stops_at: int | None) -> list[Row]:
    """Write at random rates, flush at each turn, and poll about each second; times in ms, positions in bytes."""
    rows, position, flushed, last_thorough, rate = [], 0, 0, 0, 0
    next_turn, next_poll = policy.interval, 0
    for now in range(0, LONG * 1000, 10):
        if now % 5000 == 0:
            rate = pick.choice(RATES)
        if now % 100 == 0:
            position += pick.randrange(rate + 1)
        if now >= next_turn:
            works = disk_stops_at is None or now < disk_stops_at * 1000
            if works and flushes(position, flushed, now, last_thorough, FILE_SIZE, policy):
                flushed = position
            last_thorough = now if is_thorough(now, last_thorough, policy) else last_thorough
            next_turn = now + policy.interval + pick.randrange(LONG_FLUSH)
        if now >= next_poll:
            left = position - flushed
            rows.append(poll(now / 1000, position, _printed(left)))
            next_poll = now + 1000 + pick.randrange(50)
    return rows


def _printed(size: int) -> str:
    """MixAll#humanReadableByteCount with si=false."""
    if size < 1024:
        return f"{size} B"
    unit = 1 if size < 1024**2 else 2
    return f"{size / 1024**unit:.1f} {' KM'[unit]}iB"


SETTINGS: tuple[dict[str, str], ...] = (
    {},
    {"flushDiskType": "SYNC_FLUSH"},
    {"flushIntervalCommitLog": "2000", "flushCommitLogLeastPages": "16"},
    {"flushCommitLogThoroughInterval": "30000", "flushCommitLogLeastPages": "8"},
)


@pytest.mark.parametrize("properties", SETTINGS)
def test_a_broker_that_flushes_at_its_turns_agrees_and_one_whose_disk_stops_differs(properties: dict[str, str]) -> None:
    policy, agreed, differing = commit_log_policy(properties), 0, 0
    for seed in range(12):
        polls = polled_run(policy, random.Random(seed), None)
        verdicts = judged(*polls, properties=properties).judged_polls["judgement"]
        assert set(verdicts) == {"agree"}
        agreed += len(verdicts)
        stopped = judged(*polled_run(policy, random.Random(seed), 60), properties=properties).judged_polls
        differing += (stopped["judgement"] == "differ").sum()
    assert agreed > 500
    assert differing > 100
