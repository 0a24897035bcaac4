"""What a failure of a broker would lose, and whether it flushed its commit log in time."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from mqreplay.decisions.replication import NO_FIGURE, NO_SETTINGS, OF_DLEDGER, PAUSED, Replication, replication
from silver_moments import at
from silver_rows import rows

Row = dict[str, Any]
RUNTIME = {
    "broker_name": "b",
    "broker_id": 0,
    "broker_addr": "h0",
    "boot_ts": at(-1000),
    "broker_version_desc": "V4_9_7",
}
BROKER = {"broker_name": "b", "broker_id": 0, "broker_role": "ASYNC_MASTER", "ts": at(-1000)}
MIB = 1 << 20
NO_REPORTS = rows("silver.ha_status", {}, [])


def poll(s: float, end: int, left: str | None = None, **more: Any) -> Row:
    """A poll at a second: the log ends at a byte, and so much of it is not flushed."""
    figures = {"msgPutTotalTodayNow": str(end // 100)} | ({"remainHowManyDataToFlush": left} if left else {})
    return {"ts": at(s), "commit_log_max_offset": end, "runtime": figures} | more


def report(s: float, *confirmed: int, in_sync: bool = True) -> Row:
    """A report of the master at a second: what each connected slave has confirmed."""
    slaves = [
        {"addr": f"h:{n}", "confirmed_offset": n, "behind_bytes": 100 * int(s) - n, "in_sync": in_sync}
        for n in confirmed
    ]
    return {"ts": at(s), "slaves": slaves}


def judged(
    *polls: Row, properties: dict[str, str] | None = None, reports: tuple[Row, ...] = (), **broker: Any
) -> Replication:
    described = [{"properties": properties or {}} | broker]
    master = {"broker_name": "b", "broker_id": 0, "is_master": True}
    return replication(
        rows("silver.broker_runtime", RUNTIME, polls),
        rows("silver.broker", BROKER, described),
        rows("silver.ha_status", master, reports),
        30,
    )


def verdicts(*polls: Row, **more: Any) -> list[tuple[float, str, int | None]]:
    found = judged(*polls, **more).judged_polls
    return [
        ((row["ts"] - at(0)).total_seconds(), row["judgement"], row["allowed_bytes"]) for row in found.rows(named=True)
    ]


def test_data_that_came_since_the_last_flush_may_be_in_memory() -> None:
    # Three turns of 500 ms, and 500 ms for the disk at each: what was there 3 s before is on disk, but for 4 pages.
    assert verdicts(poll(0, 0), poll(17, 5 * MIB), poll(20, 9 * MIB, "4.0 MiB")) == [(20, "agree", 4 * MIB + 16_383)]


def test_more_than_that_differs() -> None:
    (found,) = judged(poll(0, 0), poll(17, 5 * MIB), poll(20, 9 * MIB, "5.0 MiB")).judged_polls.rows(named=True)
    assert found["judgement"] == "differ"
    # The text is rounded: at least so much.
    assert (
        found["reason"]
        == f"{-(-99 * MIB // 20) - 4 * MIB - 16_383} bytes more are in memory than the flush settings allow"
    )
    assert (found["unflushed_bytes"], found["unflushed_ms"]) == ((101 * MIB - 1) // 20, 20_000)


def test_a_few_pages_must_be_on_disk_after_the_thorough_interval() -> None:
    idle = [poll(s, 9_000) for s in range(0, 30, 2)]
    # Nothing before it says what had to be on disk.
    assert verdicts(*idle[:6], poll(12, 9_000, "8.0 KiB")) == [(12, "undetermined", None)]
    assert verdicts(*idle[:6], poll(12, 9_000, "8.0 KiB"), *idle[7:], poll(30, 9_000, "0 B")) == [(30, "agree", 0)]
    assert verdicts(*idle, poll(30, 9_000, "8.0 KiB")) == [(30, "differ", 0)]
    assert verdicts(*idle, poll(30, 9_000, "0 B")) == [(30, "agree", 0)]


def test_the_settings_of_the_broker_count() -> None:
    slow = {"flushIntervalCommitLog": "9000"}
    polls = [poll(s, s * 100_000) for s in range(0, 60, 5)]
    assert verdicts(*polls, poll(60, 6_000_000, "2.0 MiB"), properties=slow)[0][1] == "agree"
    assert verdicts(*polls, poll(60, 6_000_000, "2.0 MiB"))[0][1] == "differ"
    assert verdicts(poll(0, 0), poll(3, 900), poll(5, 900, "9 B"), properties={"flushDiskType": "SYNC_FLUSH"}) == [
        (5, "differ", 0)
    ]


def test_the_settings_at_the_time_of_the_poll_count() -> None:
    polls = [poll(s, s * 100_000, "2.0 MiB" if s in (60, 120) else None) for s in range(0, 121, 5)]
    described = [
        {"properties": {"flushIntervalCommitLog": "9000"}, "ts": at(-1000)},
        {"properties": {}, "ts": at(90)},  # the broker was restarted with the default of 500 ms
    ]
    found = replication(
        rows("silver.broker_runtime", RUNTIME, polls), rows("silver.broker", BROKER, described), NO_REPORTS, 30
    )
    judged_polls = found.judged_polls.select("ts", "judgement").rows()
    assert judged_polls == [(at(60), "agree"), (at(120), "differ")]


def test_a_restart_begins_anew() -> None:
    again = {"boot_ts": at(19)}
    assert verdicts(poll(0, 9 * MIB), poll(20, 9 * MIB, "5.0 MiB", **again)) == [(20, "undetermined", None)]


@pytest.mark.parametrize("silent_at", [10, 18])  # the pause may last until the answer
def test_a_broker_that_was_paused_is_undetermined(silent_at: int) -> None:
    silent = {"ts": at(silent_at), "error": "timeout"}
    polls = (poll(0, 9 * MIB), silent, poll(20, 9 * MIB, "5.0 MiB"), poll(25, 9 * MIB, "5.0 MiB"))
    first, second = judged(*polls).judged_polls.rows(named=True)
    assert (first["judgement"], first["reason"]) == ("undetermined", PAUSED)
    assert second["judgement"] == "differ"  # it had five seconds to flush


def test_what_is_not_known_is_undetermined() -> None:
    polls = (poll(0, 9 * MIB), poll(20, 9 * MIB, "5.0 MiB"))
    of_other = judged(*polls, broker_name="other").judged_polls.rows(named=True)
    dledger = judged(*polls, properties={"enableDLegerCommitLog": "true"}).judged_polls.rows(named=True)
    unstated = judged(poll(0, 9), poll(20, 9)).judged_polls.rows(named=True)
    assert [(row["judgement"], row["reason"]) for row in (*of_other, *dledger, *unstated)] == [
        ("undetermined", NO_SETTINGS),
        ("undetermined", OF_DLEDGER),
        ("undetermined", NO_FIGURE),
    ]


SLAVE = {"broker_id": 1, "broker_addr": "h1"}


def test_masters_and_slaves_say_what_would_be_lost() -> None:
    found = judged(
        *(poll(0, 0), poll(0, 0, **SLAVE), poll(20, 1000), poll(40, 3000, "0 B"), poll(41, 1000, "0 B", **SLAVE)),
        broker_role="SYNC_MASTER",
    )
    master, slave = found.judged_polls.rows(named=True)
    assert (master["slaves"], master["send_status"], master["behind_bytes"]) == (0, "SLAVE_NOT_AVAILABLE", None)
    assert (slave["master_end"], slave["behind_bytes"], slave["behind_messages"], slave["behind_ms"]) == (
        3000,
        2000,
        20,
        1000,
    )
    assert found.alone["ts"].to_list() == [at(40)]


def test_a_slave_behind_for_long_is_a_lag_and_a_master_without_one_is_alone() -> None:
    masters = [poll(s, 100 * s) for s in range(0, 70, 10)]
    stuck = [poll(s + 1, 200, **SLAVE) for s in range(20, 70, 10)]
    found = judged(*masters, *stuck)
    assert found.lags.select("broker_id", "ts", "behind_bytes", "behind_messages").rows() == [
        (1, at(41), 3800, 40),
        (1, at(51), 4800, 50),
        (1, at(61), 5800, 60),
    ]
    assert found.alone.is_empty(), "the master does not wait for slaves"
    silent = judged(*masters, *stuck[:2], broker_role="SYNC_MASTER")
    assert silent.lags["broker_id"].to_list() == []
    silent = judged(*masters, poll(70, 7000), poll(80, 8000), *stuck[:2], broker_role="SYNC_MASTER")
    assert silent.lags.select("ts", "behind_bytes").rows() == [(at(70), 6800), (at(80), 7800)]
    assert silent.alone["ts"].to_list() == [at(70), at(80)]


def test_a_slave_that_only_the_recorder_cannot_reach_copies() -> None:
    masters = [poll(s, 100 * s, broker_version_desc="V5_3_3") for s in range(0, 100, 10)]
    stuck = [poll(s + 1, 200, **SLAVE) for s in (20, 30)]
    connected = tuple(report(s, 100 * s - 9) for s in range(0, 100, 10))
    found = judged(*masters, *stuck, reports=connected, broker_role="SYNC_MASTER")
    assert found.lags.is_empty()
    assert found.alone.is_empty()
    assert found.judged_polls.filter(pl.col("broker_id") == 0)["slaves"].to_list() == [1]
    # Without as many connections as slaves, the one that is connected may be another one.
    others = [poll(s + 2, 100 * s, broker_id=2, broker_addr="h2") for s in range(0, 100, 10)]
    assert judged(*masters, *stuck, *others, reports=connected).lags["ts"].to_list() == [at(s) for s in (70, 80, 90)]
    # A slave that is connected, and gets nothing.
    idle = tuple(report(s, 200, in_sync=False) for s in range(0, 100, 10))
    assert judged(*masters, *stuck, reports=idle).lags["ts"].to_list() == [at(s) for s in (70, 80, 90)]


def test_a_master_whose_slaves_lost_their_connections_is_alone() -> None:
    polls = [poll(s, 100 * s, broker_version_desc="V5_3_3") for s in range(0, 100, 10)]
    answering = [poll(s + 1, 200, **SLAVE) for s in range(0, 100, 10)]
    reports = tuple(report(s, *([100 * s] if s <= 20 else [])) for s in range(0, 100, 10))
    found = judged(*polls, *answering, reports=reports, broker_role="SYNC_MASTER")
    assert found.alone["ts"].to_list() == [at(s) for s in (60, 70, 80, 90)], "for more than 30 s before"
    assert judged(*polls, *answering, broker_role="SYNC_MASTER").alone.is_empty(), "the recorder reached the slave"


def test_an_empty_day_has_no_rows() -> None:
    nothing = replication(rows("silver.broker_runtime", {}, []), rows("silver.broker", {}, []), NO_REPORTS, 30)
    assert [len(frame) for frame in nothing] == [0] * len(Replication._fields)
    assert isinstance(nothing.judged_polls, pl.DataFrame)
