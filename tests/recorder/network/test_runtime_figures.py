"""The figures of a broker's runtime table that each poll keeps, so that the replay can judge each poll."""

from __future__ import annotations

from mqreplay.evidence.brokers.commit_logs import PUTS, TEXTS
from mqreplay.recorder.network.poll_writer import RUNTIME_KEPT


def test_each_poll_keeps_what_flushes_and_lags_are_judged_by() -> None:
    assert {*TEXTS, PUTS, "commitLogMaxOffset", "bootTimestamp", "brokerVersionDesc"} <= RUNTIME_KEPT


def test_each_poll_keeps_how_full_the_disks_are() -> None:
    assert {"commitLogDiskRatio", "consumeQueueDiskRatio"} <= RUNTIME_KEPT
