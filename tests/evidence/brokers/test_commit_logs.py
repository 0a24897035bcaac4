"""The commit logs of masters and slaves at polls, and how far slaves are behind."""

from __future__ import annotations

from typing import Any

import polars as pl

from mqreplay.evidence.brokers.commit_logs import log_polls, silent_slaves, slaves_of, with_behind, with_slaves
from silver_moments import at
from silver_rows import rows

Row = dict[str, Any]
BOOT = {"broker_name": "b", "boot_ts": at(-1000), "broker_version_desc": "V4_9_7"}


def poll(broker_id: int, s: float, end: int, **figures: str) -> Row:
    """A poll of a broker at a second, its log ending at a byte."""
    row = {"broker_id": broker_id, "broker_addr": f"h{broker_id}", "ts": at(s), "commit_log_max_offset": end}
    return row | {"runtime": {"commitLogMaxOffset": str(end)} | figures}


def polls(*listed: Row) -> pl.DataFrame:
    return log_polls(rows("silver.broker_runtime", BOOT, listed))


def behind(*listed: Row) -> list[tuple[int | None, ...]]:
    found = polls(*listed)
    columns = ("behind_bytes", "behind_messages", "behind_ms")
    return [tuple(row[name] for name in columns) for row in with_behind(slaves_of(found), found).rows(named=True)]


def test_figures_are_read_from_the_table() -> None:
    sizes = {"remainHowManyDataToFlush": "3.3 KiB", "remainHowManyDataToCommit": "5 B", "msgPutTotalTodayNow": "7"}
    (row,) = polls(poll(0, 1, 90, **sizes)).rows(named=True)
    assert (row["flush_min"], row["flush_max"], row["commit_max"], row["puts"]) == (3328, 3430, 5, 7)
    assert (row["log_end"], row["since_5"], row["member"]) == (90, False, "h0")


def test_figures_that_are_absent_or_unreadable_are_unknown() -> None:
    found = polls(poll(0, 1, 90), poll(0, 2, 90, remainHowManyDataToFlush="?"))
    assert found["flush_max"].to_list() == [None, None]
    assert len(polls(poll(0, 1, 90) | {"error": "down", "commit_log_max_offset": None})) == 0


def test_a_slave_that_has_all_of_the_last_poll_is_not_behind() -> None:
    assert behind(poll(0, 1, 90), poll(1, 2, 90)) == [(0, 0, 0)]
    # Ahead of the last poll of the master: that grew meanwhile.
    assert behind(poll(0, 1, 90), poll(1, 2, 95)) == [(0, 0, 0)]


def test_a_slave_is_behind_since_the_first_poll_with_more() -> None:
    def puts(number: int) -> dict[str, str]:
        return {"msgPutTotalTodayNow": str(number)}

    masters = [poll(0, 0, 50, **puts(5)), poll(0, 5, 70, **puts(7)), poll(0, 10, 90, **puts(9))]
    assert behind(*masters, poll(1, 12, 60)) == [(30, 4, 7_000)]
    # The count of messages began anew at midnight.
    assert behind(*masters[:2], poll(0, 10, 90, **puts(1)), poll(1, 12, 60)) == [(30, None, 7_000)]


def test_without_a_master_nothing_is_known() -> None:
    assert behind(poll(1, 2, 90)) == [(None, None, None)]


def test_a_replica_that_became_the_master_is_no_slave() -> None:
    found = polls(poll(0, 1, 9) | {"broker_addr": "h1"}, poll(1, 2, 9), poll(2, 2, 9))
    assert slaves_of(found)["broker_id"].to_list() == [2]


def test_a_silent_slave_is_seen_at_the_polls_of_its_master() -> None:
    found = polls(poll(0, 0, 50), poll(1, 1, 50), poll(0, 20, 60), poll(0, 40, 70))
    silent = silent_slaves(found, 30)
    assert silent.select("broker_id", "ts", "log_end", "answered_ts").rows() == [(1, at(40), 50, at(1))]
    (row,) = with_behind(silent, found).rows(named=True)
    assert (row["behind_bytes"], row["behind_ms"]) == (20, 20_000)
    # It answers under another id.
    assert (
        len(
            silent_slaves(
                polls(poll(0, 0, 5), poll(1, 1, 5), poll(2, 39, 5) | {"broker_addr": "h1"}, poll(0, 40, 7)), 30
            )
        )
        == 0
    )


def test_the_slaves_of_a_master_that_answer() -> None:
    found = polls(poll(0, 0, 50), poll(1, 1, 50), poll(2, 30, 20), poll(0, 31, 50), poll(0, 70, 50))
    masters = found.filter(pl.col("broker_id") == 0).with_columns(pl.lit(30).alias("fall_behind_max"))
    counted = with_slaves(masters, found, 30).sort("ts").select("slaves", "near_slaves").rows()
    assert counted == [(None, None), (2, 1), (0, 0)]
