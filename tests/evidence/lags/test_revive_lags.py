"""Revive queues that are behind, by the ends of the topic and the offsets of the master."""

from __future__ import annotations

import polars as pl
import pytest

from mqreplay.evidence.lags.revive_lags import revive_lags_of_shard
from mqreplay.findings.revival import revive_findings
from silver_moments import at
from silver_rows import rows

TOPIC = "rmq_sys_REVIVE_LOG_c"
COPIED_S = 600
GROWING = [(float(second), second) for second in range(0, 600, 30)]  # seconds, end


def lags(
    offsets: list[tuple[float, int | None]],
    ends: list[tuple[float, int]],
    topic: str = TOPIC,
    group: str = "CID_RMQ_SYS_REVIVE_GROUP",
    broker_id: int = 0,
    copied_s: float = COPIED_S,
) -> pl.DataFrame:
    queue = {"topic": topic, "broker_name": "b", "queue_id": 3}
    changes = [
        {"to_ts": at(second), "from_ts": at(second - 5), "new_offset": offset, "consumer_group": group} | queue
        for second, offset in offsets
    ]
    read = [
        {"ts": at(second), "offsets": [queue | {"min_offset": 0, "max_offset": end, "last_update_ts": None}]}
        for second, end in ends
    ]
    of_broker = {"broker_name": "b", "broker_id": broker_id}
    return revive_lags_of_shard(
        rows("silver.offset_change", of_broker, changes),
        rows("silver.topic_stats", of_broker | {"topic": topic}, read),
        {"b": int(at(copied_s).timestamp() * 1_000_000)},
        60,
    )


def test_a_queue_that_stands_still_while_its_end_grows_is_behind() -> None:
    (found,) = lags([(0, 10)], GROWING).rows(named=True)
    assert (found["from_ts"], found["to_ts"]) == (at(60), at(600))
    assert found["behind"] == 529  # up to the last end that was due for long


def test_a_queue_that_advances_too_slowly_is_behind_until_it_catches_up() -> None:
    slow: list[tuple[float, int | None]] = [(float(second), second // 4) for second in range(0, 400, 10)]
    found = lags([*slow, (400, 400), (430, 430), (460, 460), (490, 490), (520, 520), (550, 550)], GROWING)
    assert [row["to_ts"] for row in found.rows(named=True)] == [at(400)]


def test_healthy_revival_is_silent() -> None:
    assert lags([(second + 17, end - 1) for second, end in GROWING], GROWING).is_empty()


def test_acknowledgements_after_the_last_checkpoint_are_no_lag() -> None:
    """The offset stays at the last checkpoint; then nothing arrives for long, and more traffic follows."""
    ends = [(0.0, 10), (30.0, 20), (60.0, 25), *((second, 25) for second in (90.0, 300.0, 480.0)), (500.0, 35)]
    assert lags([(0, 9), (45, 19), (70, 20), (517, 30)], ends, copied_s=700).is_empty()


def test_a_quiet_queue_is_not_behind() -> None:
    assert lags([(0, 10)], [(second, 20) for second, _ in GROWING]).is_empty()


@pytest.mark.parametrize(
    "differs",
    [{"topic": "orders"}, {"group": "pay"}, {"broker_id": 1}, {"copied_s": 100}],
)
def test_others_do_not_count(differs: dict[str, object]) -> None:
    assert lags([(0, 10)], GROWING, **differs).is_empty()  # type: ignore[arg-type]


def test_nothing_is_known_without_ends_or_offsets() -> None:
    assert lags([(0, 10)], []).is_empty()
    assert lags([], GROWING).is_empty()
    assert lags([(0, None)], GROWING).is_empty()


def test_a_broker_has_one_finding() -> None:
    one = lags([(0, 10)], GROWING)
    both = pl.concat([one, one.with_columns(queue_id=pl.lit(4, pl.Int32))])
    (found,) = revive_findings(both, "c", 60).rows(named=True)
    assert found["summary"] == (
        "Broker b did not work off 2 revive queues for 540 s: 1058 checkpoints and acknowledgements waited."
        " Messages that were not acknowledged come back late."
    )
