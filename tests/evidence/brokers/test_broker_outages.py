"""When brokers did not answer: each just below its bound and above."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqreplay.evidence.brokers.broker_outages import (
    ERRORS_KEPT,
    answers_of_shard,
    broker_outages,
    errors_of_shard,
    failovers_of_shard,
)
from silver_moments import at
from silver_rows import rows

BROKER = {"broker_name": "b", "broker_id": 0}
QUEUE = {"consumer_group": "g", "topic": "T", "broker_name": "b", "queue_id": 0}
BEAT = BROKER | {"client_id": "c", "kind": "HEART_BEAT", "broker_addr": "b:1"}
PULL = BROKER | QUEUE | {"client_id": "c", "queue_offset": 0}
ROUTED = QUEUE | {"client_id": "c", "judgement": "agree", "reason": "r", "pull_from_which_node": 0}
DOWN_S, UNSEEN_DOWN_S = 10, 30
Rows = Sequence[Mapping[str, object]]


def judge(
    polls: Rows = (), beats: Rows = (), pulls: Rows = (), failovers: Rows = (), size: int | None = None
) -> pl.DataFrame:
    """The outages; pulls come in shards of so many rows, or in one."""
    pull = rows("silver.pull", PULL, pulls)
    route = rows("gold.pull_route", ROUTED | {"cause": "master_gone"}, failovers)
    shards = list(pull.iter_slices(size)) if size and len(pull) else [pull]
    return broker_outages(
        rows("silver.broker_runtime", BROKER, polls),
        rows("silver.heartbeat", BEAT, beats),
        pl.concat(answers_of_shard(shard) for shard in shards),
        pl.concat(errors_of_shard(shard) for shard in shards),
        failovers_of_shard(route),
        DOWN_S,
        UNSEEN_DOWN_S,
    )


def spans(found: pl.DataFrame) -> list[tuple[float, float]]:
    return [
        ((row["from_ts"] - at(0)).total_seconds(), (row["to_ts"] - at(0)).total_seconds())
        for row in found.sort("from_ts").to_dicts()
    ]


def poll(seconds: float, error: str | None = None) -> dict[str, object]:
    return {"ts": at(seconds), "error": error}


def beat(seconds: float) -> dict[str, object]:
    return {"ts": at(seconds), "response_ts": at(seconds), "response_code": 0}


def pulled(sent: float, answered: float) -> dict[str, object]:
    return {"request_ts": at(sent), "response_ts": at(answered), "response_code": 0}


def failed(seconds: float) -> dict[str, object]:
    return {"request_ts": at(seconds), "error": "timeout"}


def test_a_polled_broker_is_down_from_its_first_error_to_its_next_answer() -> None:
    polls = [poll(s, "refused" if 10 <= s < 25 else None) for s in range(40)]
    assert spans(judge(polls)) == [(10.0, 25.0)]


def test_a_pause_is_no_outage() -> None:
    assert spans(judge([poll(s, "slow" if 10 <= s < 16 else None) for s in range(40)])) == []


def test_a_silence_of_a_polled_broker_counts_from_its_bound_on() -> None:
    for lasted, expected in ((9.999, []), (10, [(5.0, 10.0)])):
        assert spans(judge([poll(0), poll(5, "refused"), poll(lasted)])) == expected


def test_a_silence_in_which_nobody_got_an_error_is_none() -> None:
    assert spans(judge(beats=[beat(s) for s in (0, 30, 90, 120)])) == []


def test_clients_errors_show_an_outage_where_nobody_polled() -> None:
    beats = [beat(s) for s in (0, 10, 20, 80, 90)]
    beats += [{"ts": at(s), "error": "timeout"} for s in (30, 50)]
    assert spans(judge(beats=beats)) == [(20.0, 80.0)]


def test_a_silence_that_only_clients_saw_counts_from_its_bound_on() -> None:
    for lasted, expected in ((29.999, []), (30, [(0.0, 30.0)])):
        assert spans(judge(beats=[beat(0), {"ts": at(5), "error": "timeout"}, beat(lasted)])) == expected


def test_without_a_later_answer_an_outage_ends_with_its_last_error() -> None:
    assert spans(judge([poll(0), poll(3, "refused"), poll(14, "refused")])) == [(3.0, 14.0)]


def test_a_broker_that_never_answered_has_no_outage() -> None:
    assert spans(judge([poll(s, "refused") for s in range(40)])) == []


def test_a_route_without_the_master_does_not_prove_that_it_is_down() -> None:
    gone = [{"request_ts": at(s)} for s in (10, 30, 70)]
    assert spans(judge(beats=[beat(s) for s in (0, 60, 120)], failovers=gone)) == []
    found = judge(beats=[beat(0), {"ts": at(40), "error": "timeout"}, beat(60)], failovers=gone[:2])
    assert found["errors"].to_list() == [1]  # failovers are counted as such
    assert [key["table_name"] for key in found["keys"].item()] == ["silver.heartbeat"]


def test_pulls_that_were_no_failover_are_no_errors() -> None:
    beats = [beat(0), {"ts": at(40), "error": "timeout"}, beat(60)]
    found = judge(beats=beats, failovers=[{"request_ts": at(10), "cause": "suggested"}])
    assert found["errors"].to_list() == [1]


def test_a_slave_is_down_for_itself() -> None:
    polls = [poll(s) for s in range(40)]
    polls += [poll(s, "refused" if 10 <= s < 25 else None) | {"broker_id": 1} for s in range(40)]
    assert judge(polls).select("broker_id").rows() == [(1,)]


@pytest.mark.parametrize(("sent", "outages"), [(-34, 1), (-35, 0), (39, 1), (40, 0)])
def test_a_pull_that_failed_may_have_waited_at_the_broker_before_the_silence(sent: float, outages: int) -> None:
    found = judge(beats=[beat(0), beat(40)], pulls=[failed(sent)])
    assert spans(found) == [(0.0, 40.0)] * outages


def test_an_answer_to_a_pull_counts_when_it_came_by_the_second() -> None:
    pulls = [pulled(0, 4.7), failed(20), pulled(30, 45.2)]
    assert spans(judge(pulls=pulls)) == [(4.0, 45.0)]


def test_a_pull_may_fail_in_several_silences() -> None:
    polls = [poll(0), poll(5, "x"), poll(12), poll(15, "x"), poll(24), poll(30, "x"), poll(36)]
    found = judge(polls, pulls=[failed(2)]).sort("from_ts")
    assert spans(found) == [(2.0, 12.0), (15.0, 24.0), (30.0, 36.0)]
    assert found["errors"].to_list() == [2, 2, 2]
    assert [len(keys) for keys in found["keys"]] == [2, 2, 2]


def test_the_first_errors_are_kept_as_evidence() -> None:
    polls = [poll(s, "refused" if 10 <= s < 60 else None) | {"record_id": f"r{99 - s}"} for s in range(70)]
    (row,) = judge(polls).to_dicts()
    assert row["errors"] == 50
    kept = [{"table_name": "silver.broker_runtime", "record_id": f"r{99 - s}"} for s in range(10, 10 + ERRORS_KEPT)]
    assert row["keys"] == kept
    assert row["polled"]


def test_a_night_without_rows_has_no_outage_but_the_columns() -> None:
    found = judge()
    assert found.is_empty()
    assert found.columns == ["broker_name", "broker_id", "from_ts", "to_ts", "errors", "polled", "keys"]
    assert found.schema["keys"] == pl.List(pl.Struct({"table_name": pl.String, "record_id": pl.String}))


SECONDS = st.integers(0, 150)


@given(
    polls=st.lists(st.tuples(SECONDS, st.booleans()), max_size=6),
    beats=st.lists(SECONDS, max_size=6),
    pulls=st.lists(st.tuples(SECONDS, st.booleans()), max_size=12),
    failovers=st.lists(SECONDS, max_size=3),
    size=st.integers(1, 4),
)
def test_outages_are_those_of_the_definition_in_any_split(polls, beats, pulls, failovers, size) -> None:
    frames = (
        [poll(s, "refused" if bad else None) for s, bad in polls],
        [beat(s) for s in beats],
        [failed(s) if bad else pulled(s, s) for s, bad in pulls],
        [{"request_ts": at(s)} for s in failovers],
    )
    expected = defined(polls, beats, pulls, failovers)
    for split in (None, size):
        found = judge(*frames, size=split).sort("from_ts")
        assert [(*span, n) for span, n in zip(spans(found), found["errors"], strict=True)] == expected


def defined(polls, beats, pulls, failovers) -> list[tuple[float, float, int]]:
    """The outages by the definition, one silence after the other."""
    answers = sorted({s for s, bad in (*polls, *pulls) if not bad} | set(beats))
    errors = [(s, s, "poll") for s, bad in polls if bad] + [(s, s + 35, "pull") for s, bad in pulls if bad]
    errors += [(s, s, "route") for s in failovers]
    outages = []
    for place, since in enumerate(answers):
        until = answers[place + 1] if place + 1 < len(answers) else None
        met = [e for e in errors if e[1] > since and (until is None or e[0] < until)]
        if not met or (until is not None and until - since < DOWN_S):
            continue
        end = until if until is not None else max(e[0] for e in met)
        is_polled = any(kind == "poll" for _, _, kind in met)
        first = min((e[0] for e in met if e[0] > since), default=since)
        long_enough = end - since >= (DOWN_S if is_polled else UNSEEN_DOWN_S)
        direct = sum(kind != "route" for _, _, kind in met)
        if long_enough and direct:
            outages.append((float(first if is_polled and first < end else since), float(end), direct))
    return sorted(outages)


def test_answers_of_one_second_are_one() -> None:
    pull = rows("silver.pull", PULL, [pulled(1.1, 1.2), pulled(1.3, 1.9), pulled(1.3, 2.0)])
    assert answers_of_shard(pull).sort("ts")["ts"].to_list() == [at(1), at(2)]
    assert at(1).tzinfo is dt.UTC
