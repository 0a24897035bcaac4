"""The words of lag_grows: how long, how much, and who was connected."""

from __future__ import annotations

from typing import Any

import polars as pl

from mqreplay.evidence.intervals import INSTANT
from mqreplay.findings.lag import behind_findings, lag_findings
from mqreplay.findings.shape import SCHEMA
from silver_moments import at

LAG = {"consumer_group": pl.String, "topic": pl.String, "broker_name": pl.String, "queue_id": pl.Int32}
LAG |= {"from_ts": INSTANT, "to_ts": INSTANT, "offset": pl.Int64, "waiting": pl.Int64, "arrived": pl.Int64}
LAG |= {"never": pl.Boolean, "refused_by": pl.String, "age_s": pl.Int64}
MEMBERS = {"consumer_group": pl.String, "client_id": pl.String, "from_ts": INSTANT, "to_ts": INSTANT}


def lag(began: float, ended: float, queue_id: int = 0, waiting: int = 7) -> dict[str, Any]:
    place = {"consumer_group": "g", "topic": "T", "broker_name": "b", "queue_id": queue_id}
    return place | {
        "from_ts": at(began),
        "to_ts": at(ended),
        "offset": 1,
        "waiting": waiting,
        "arrived": waiting,
        "never": False,
    }


def found(lags: list[dict[str, Any]], *members: tuple[str, float, float]) -> list[dict[str, Any]]:
    sessions = [{"consumer_group": "g", "client_id": c, "from_ts": at(f), "to_ts": at(t)} for c, f, t in members]
    frame = pl.DataFrame(lags, LAG)
    return lag_findings(frame, pl.DataFrame(sessions, MEMBERS), "c", 120).sort("from_ts").to_dicts()


def test_queues_of_a_topic_are_one_finding_and_their_messages_are_added_up() -> None:
    (row,) = found([lag(0, 100), lag(20, 95, queue_id=1, waiting=3)], ("c", 0, 200), ("d", 0, 200))
    assert row["severity"] == "warning"
    assert row["summary"] == (
        "Group g did not advance on T in b/0, b/1 for 100 s while messages arrived; 10 messages waited."
        " 2 members stayed connected."
    )


def test_the_last_member_left_or_none_was_listed() -> None:
    left, never = found([lag(0, 100)], ("c", -50, 10)), found([lag(0, 100)])
    assert left[0]["summary"].endswith(f" Its last member left at {at(10):%H:%M:%S} UTC.")
    assert never[0]["summary"].endswith(" The brokers list no member of it.")


def test_the_oldest_of_the_last_consumed_messages_is_named() -> None:
    (row,) = found([lag(0, 100) | {"age_s": 90}, lag(0, 100, queue_id=1) | {"age_s": 9000}], ("c", 0, 200))
    assert "; 14 messages waited; the last message that it consumed was 2 h 30 min old. 1 member" in row["summary"]


def test_a_long_lag_and_many_queues_stay_readable() -> None:
    (row,) = found([lag(0, 10_000_000, queue_id=n, waiting=2**62) for n in range(17)])
    assert " and 1 more queue for 115 d 17 h while" in row["summary"]
    assert f"; {17 * 2**62} messages waited" in row["summary"]


def test_spans_far_apart_are_two_findings() -> None:
    assert len(found([lag(0, 100), lag(221, 300)])) == 2
    assert len(found([lag(0, 100), lag(220, 300)])) == 1


def test_no_rows_give_no_findings() -> None:
    assert lag_findings(pl.DataFrame(schema=LAG), pl.DataFrame(schema=MEMBERS), "c", 120).schema == SCHEMA


def test_a_group_that_never_consumed_and_why() -> None:
    known, refused = lag(0, 100) | {"never": True}, lag(0, 100) | {"never": True, "refused_by": "b and c"}
    begin = "Group g never consumed T in b/0 for 100 s while messages arrived; 7 messages waited."
    begin += " 1 member stayed connected."
    assert found([known], ("c", 0, 200))[0]["summary"] == f"{begin} It has no stored offset."
    reason = "It has no stored offset: POP needs timerWheelEnable=true on b and c."
    assert found([refused], ("c", 0, 200))[0]["summary"] == f"{begin} {reason}"


def test_a_group_that_falls_behind_has_both_rates() -> None:
    schema = {name: of for name, of in LAG.items() if name not in ("offset", "never", "refused_by", "age_s")}
    schema |= {"lag_before": pl.Int64, "consumed": pl.Int64}
    rows = [lag(0, 200, queue_id=q, waiting=150) | {"arrived": 200, "consumed": 60, "lag_before": 10} for q in (0, 1)]
    spans = pl.DataFrame([{name: row[name] for name in schema} for row in rows], schema)
    members = pl.DataFrame([("g", "c", at(0), at(300))], MEMBERS, orient="row")
    (row,) = behind_findings(spans, members, "c", 120, 100).to_dicts()
    assert row["summary"] == (
        "Group g fell behind on T in b/0, b/1 for 200 s: 2.0/s arrived, 0.6/s were consumed; 300 messages waited."
        " 1 member stayed connected."
    )
    assert behind_findings(spans, members, "c", 120, 300).is_empty()
