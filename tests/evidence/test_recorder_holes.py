"""Holes of the recorder: stopped, killed, suspended or cut off; a broker that is down is not a hole."""

from __future__ import annotations

from typing import Any

import polars as pl

from mqreplay.evidence.brokers.broker_outages import broker_outages
from mqreplay.evidence.gap_rows import GAP
from mqreplay.evidence.recorder_holes import CUT_OFF, RECORDER_STOPPED, hole_gaps, recorder_holes, watched
from silver_moments import BEGAN, at
from silver_rows import rows

Row = dict[str, Any]
OUTAGE = {"broker_name": pl.String, "broker_id": pl.Int64, "from_ts": pl.Datetime("us", "UTC")}
NO_OUTAGES = pl.DataFrame(schema=OUTAGE | {"to_ts": pl.Datetime("us", "UTC")})


def event(kind: str, seconds: float, **differs: object) -> Row:
    return {"kind": kind, "ts": at(seconds)} | differs


def polls(
    broker: str, *, down: tuple[int, int] = (0, 0), boot: int = -60, after: int = -60, grows: bool = True
) -> list[Row]:
    found = []
    for s in range(0, 301, 5):
        if down[0] <= s < down[1]:
            found.append({"broker_name": broker, "broker_id": 0, "ts": at(s), "error": "no connection"})
        else:
            boot_ts = at(boot if s < down[1] else after)
            end = s if grows else 7
            found.append(
                {"broker_name": broker, "broker_id": 0, "ts": at(s), "boot_ts": boot_ts, "commit_log_max_offset": end}
            )
    return found


def name_server(down: tuple[int, int]) -> list[Row]:
    server = {"namesrv_addr": "n:1"}
    lines = [
        server | {"ts": at(0)},
        server | {"ts": at(down[0]), "error": "no connection"},
        server | {"ts": at(down[1])},
    ]
    return lines if down[1] else lines[:1]


def holes(events: list[Row], runtime: list[Row], servers: list[Row] | None = None) -> pl.DataFrame:
    frames = (("recorder_event", events), ("broker_runtime", runtime), ("cluster_info", servers or []))
    return recorder_holes(*(rows(f"silver.{name}", {}, of) for name, of in frames))


def spans(found: pl.DataFrame) -> list[tuple[float, float, str]]:
    seconds = [((pl.col(name) - BEGAN).dt.total_milliseconds() / 1000).alias(name) for name in ("from_ts", "to_ts")]
    return found.select(*seconds, "reason").rows()


def test_a_killed_recorder_watched_until_its_last_poll() -> None:
    runtime = [poll for poll in polls("b") if not at(100) < poll["ts"] < at(200)]
    assert spans(holes([event("start", 0), event("alive", 60), event("start", 200)], runtime)) == [
        (100, 200, RECORDER_STOPPED)
    ]


def test_a_recorder_that_runs_has_no_hole() -> None:
    assert holes([event("start", 0), event("alive", 60), event("stop", 300)], polls("b")).is_empty()
    assert holes([], polls("b", down=(100, 200)), name_server((100, 200))).is_empty()


def test_polls_that_were_not_made_at_all_are_a_hole_and_those_of_one_broker_are_not() -> None:
    skipped = event("skipped", 90, detail="disk full", from_ts=at(50), to_ts=at(90))
    one = event("skipped", 90, broker_name="b", broker_id=0, request="GET_X", from_ts=at(10), to_ts=at(20))
    found = holes([event("start", 0), skipped, one], [])
    assert spans(found) == [(50, 90, "the recorder made no polls: disk full")]
    gaps = hole_gaps(found, rows("silver.recorder_event", {}, [event("start", 0), skipped, one]), NO_OUTAGES)
    assert dict(gaps.schema) == GAP
    assert sorted(gaps["reason"]) == [
        "not polled: GET_X (the reason is unknown)",
        "the recorder made no polls: disk full",
    ]


def test_a_network_that_is_cut_is_a_hole_if_the_brokers_went_on() -> None:
    start = [event("start", 0)]
    cut = (100, 160)
    both = polls("a", down=cut) + polls("b", down=cut)
    assert spans(holes(start, both, name_server(cut))) == [(100, 160, CUT_OFF)]
    again = polls("a", down=cut, after=150) + polls("b", down=cut)
    still = polls("a", down=cut, grows=False) + polls("b", down=cut, grows=False)
    one = polls("a", down=cut) + polls("b")
    for runtime in (again, still, one):
        assert holes(start, runtime, name_server(cut)).is_empty()
    assert holes(start, both, name_server((0, 0))).is_empty()


def outages(runtime: pl.DataFrame) -> list[tuple[str, float, float]]:
    beats = rows("silver.heartbeat", {}, [])
    names = {"broker_name": pl.String, "broker_id": pl.Int64, "ts": pl.Datetime("us", "UTC")}
    errors = names | {"record_id": pl.String}
    failovers = {**errors, "consumer_group": pl.String}
    del failovers["broker_id"]
    frames = [pl.DataFrame(schema=schema) for schema in (names, errors, failovers)]
    found = broker_outages(runtime, beats, *frames, 10, 30, from_error=True).sort("broker_name", "from_ts")
    seconds = [((pl.col(name) - BEGAN).dt.total_milliseconds() / 1000).alias(name) for name in ("from_ts", "to_ts")]
    return found.select("broker_name", *seconds).rows()


def test_no_broker_is_down_in_a_hole_and_each_outage_ends_at_its_edge() -> None:
    cut = (100, 160)
    both = polls("a", down=cut) + polls("b", down=(60, 200))
    found = rows("silver.broker_runtime", {}, both)
    hole = holes([event("start", 0)], polls("a", down=cut) + polls("b", down=cut), name_server(cut))
    assert outages(watched(found, hole)) == [("b", 60, 100), ("b", 165, 200)]


def test_one_poll_that_fails_is_no_outage_of_the_recorders() -> None:
    runtime = rows("silver.broker_runtime", {}, polls("a", down=(100, 105)) + polls("b", down=(100, 115)))
    assert outages(runtime) == [("b", 100, 115)]


def test_a_step_of_the_clock_and_a_server_that_was_not_reached_are_gaps() -> None:
    events = [
        event("clock_step", 10, count=3_600_000),
        event("unreachable", 20, broker_name="b", broker_id=1),
        event("reachable", 80, broker_name="b", broker_id=1),
    ]
    gaps = hole_gaps(holes(events, []), rows("silver.recorder_event", {}, events), NO_OUTAGES).sort("from_ts")
    assert gaps.select("reason", "from_ts", "to_ts").rows() == [
        (
            "the clock of the recorder's host was set 3600 s ahead; times of the recording follow the old clock",
            at(10),
            at(10),
        ),
        ("the recorder did not reach broker id 1", at(20), at(80)),
    ]


def test_what_an_outage_explains_is_no_gap() -> None:
    of_b = {"broker_name": "b", "broker_id": 0}
    refused = "10.0.0.1:10911: no connection to 10.0.0.1:10911: connection refused"
    late = {"from_ts": at(200), "to_ts": at(210), "request": "GET_ALL_CONSUMER_OFFSET", "detail": refused}
    events = [
        event("unreachable", 20, **of_b),
        event("reachable", 80, **of_b),
        event("skipped", 30, **of_b, **late | {"from_ts": at(30), "to_ts": at(60)}),
        event("skipped", 210, **of_b, **late),
        event("unreachable", 30, broker_name="b", broker_id=1),
    ]
    down = pl.DataFrame([{**of_b, "from_ts": at(25), "to_ts": at(75)}], NO_OUTAGES.schema)
    gaps = hole_gaps(holes(events, []), rows("silver.recorder_event", {}, events), down).sort("from_ts")
    assert gaps.select("reason", "from_ts").rows() == [
        ("the recorder did not reach broker id 1", at(30)),
        ("not polled: consumer offsets (no connection: connection refused)", at(200)),
    ]
