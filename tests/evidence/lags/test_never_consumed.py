"""Groups that never stored an offset, while messages arrive for their members."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from mqreplay.evidence.intervals import INSTANT
from mqreplay.evidence.lags.never_consumed import never_consumed, pop_refusals
from silver_moments import at
from silver_rows import rows

MEMBERS = {"consumer_group": pl.String, "client_id": pl.String, "from_ts": INSTANT, "to_ts": INSTANT}
GROUP_TOPIC = {"consumer_group": pl.String, "topic": pl.String}


def found(
    rate: float = 1,
    model: str = "CLUSTERING",
    kind: str = "CONSUME_PASSIVELY",
    offsets: tuple[tuple[str, str], ...] = (),
    until: float = 300,
    copied: float = 300,
    group: str = "g",
) -> list[dict[str, Any]]:
    data = {"group_name": group, "message_model": model, "consume_type": kind, "subscriptions": [{"topic": "T"}]}
    beats = rows(
        "silver.heartbeat", {"kind": "HEART_BEAT", "client_id": "c"}, [{"ts": at(10), "consumer_data_set": [data]}]
    )
    polls = [
        {
            "ts": at(ts),
            "offsets": [{"topic": "T", "broker_name": "b", "queue_id": 0, "max_offset": int(50 + rate * ts)}],
        }
        for ts in range(0, 300, 30)
    ]
    stats = rows("silver.topic_stats", {"broker_name": "b", "broker_id": 0}, polls)
    members = pl.DataFrame([(group, "c", at(10), at(until))], MEMBERS, orient="row")
    known = pl.DataFrame(offsets, GROUP_TOPIC, orient="row")
    last = {"b": int(at(copied).timestamp() * 1_000_000)}
    return never_consumed(known, beats, members, stats, last, 60).to_dicts()


def test_messages_that_arrive_for_a_group_without_an_offset_wait() -> None:
    (row,) = found()
    assert (row["consumer_group"], row["topic"], row["broker_name"], row["queue_id"]) == ("g", "T", "b", 0)
    assert (row["from_ts"], row["to_ts"], row["waiting"]) == (at(60), at(300), 240)


@pytest.mark.parametrize(
    "differs",
    [
        {"offsets": (("g", "T"),)},
        {"rate": 0},  # nothing arrives
        {"until": 100},  # its members left
        {"copied": 100},  # later offsets are not known
        {"model": "BROADCASTING"},
        {"kind": "CONSUME_ACTIVELY"},
        {"group": "CID_RMQ_SYS_TRANS"},
    ],
)
def test_a_group_without_messages_members_or_evidence_is_not_reported(differs: dict[str, Any]) -> None:
    assert found(**differs) == []


def test_brokers_without_timer_wheel_refuse_pop() -> None:
    off = {"timerWheelEnable": "false"}
    brokers = rows(
        "silver.broker",
        {"broker_id": 0, "ts": at(0), "properties": off},
        [
            {"broker_name": "a", "rocketmq_version": "5.3.3"},
            {"broker_name": "b", "rocketmq_version": "5.1.0"},
            {"broker_name": "c", "rocketmq_version": "5.5.0", "properties": {"timerWheelEnable": "true"}},
            {"broker_name": "d", "rocketmq_version": None},
        ],
    )
    assert pop_refusals(brokers) == ["a"]
