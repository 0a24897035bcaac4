"""Slaves that stay behind, synchronous masters without a slave, and disks that are too slow."""

from __future__ import annotations

from typing import Any

import polars as pl

from evidence_keys import keys_of
from mqreplay.decisions.replication import Replication, replication
from mqreplay.evidence.intervals import INSTANT
from mqreplay.findings.replication import masters_alone, reported_behind, slaves_behind, unflushed
from mqreplay.findings.shape import SCHEMA
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
BROKER = {"broker_name": "b", "broker_id": 0, "ts": at(-1000), "properties": {}}
SLAVE = {"broker_id": 1, "broker_addr": "h1"}
OUTAGES = {"broker_name": pl.String, "broker_id": pl.Int64, "from_ts": INSTANT, "to_ts": INSTANT}
NO_OUTAGE = pl.DataFrame(schema=OUTAGES)


def poll(s: float, end: int, left: str | None = None, **more: Any) -> Row:
    figures = {"msgPutTotalTodayNow": str(end // 100)} | ({"remainHowManyDataToFlush": left} if left else {})
    return {"ts": at(s), "commit_log_max_offset": end, "runtime": figures} | more


def judged(polls: list[Row], role: str = "ASYNC_MASTER") -> Replication:
    described = rows("silver.broker", BROKER, [{"broker_role": role}])
    return replication(rows("silver.broker_runtime", RUNTIME, polls), described, rows("silver.ha_status", {}, []), 30)


MASTER = [poll(s, 100 * s) for s in range(0, 101, 10)]


def test_a_slave_that_does_not_copy() -> None:
    stuck = [poll(s + 1, 200, **SLAVE) for s in range(0, 101, 10)]
    (found,) = slaves_behind(judged(MASTER + stuck).lags, NO_OUTAGE, "c", 120).rows(named=True)
    assert (found["severity"], found["broker_id"], found["from_ts"], found["to_ts"]) == ("warning", 1, at(10), at(101))
    assert found["summary"] == (
        "Slave 1 of b did not have the newest data of its master for 91 s: it lacked 9800 bytes of the commit log, at"
        " most 100 messages. No other slave has a copy: a loss of the master would have lost them."
    )
    assert found["evidence_count"] == 7
    assert keys_of(found["evidence"])[0].startswith("record_id=r")


def test_a_stopped_slave() -> None:
    (found,) = slaves_behind(judged([*MASTER, poll(1, 0, **SLAVE)]).lags, NO_OUTAGE, "c", 120).rows(named=True)
    assert found["summary"].startswith(
        "Slave 1 of b did not answer, and did not have the newest data of its master for "
    )


def test_it_is_critical_if_the_master_goes_down_meanwhile() -> None:
    down = pl.DataFrame([("b", 0, at(50), at(60))], OUTAGES, orient="row")
    stuck = [poll(s + 1, 200, **SLAVE) for s in range(0, 101, 10)]
    (found,) = slaves_behind(judged(MASTER + stuck).lags, down, "c", 120).rows(named=True)
    assert found["severity"] == "critical"
    assert found["summary"].endswith(" The master went down meanwhile, at 02:00:50 UTC.")


def test_a_slave_that_has_just_started_is_no_finding() -> None:
    started = [poll(s + 1, 100 * s, **SLAVE) for s in range(50, 101, 10)]
    assert len(slaves_behind(judged([*MASTER, poll(41, 200, **SLAVE), *started]).lags, NO_OUTAGE, "c", 120)) == 0


def test_a_synchronous_master_without_a_slave() -> None:
    alone = judged([poll(s, 100 * s) for s in range(0, 101, 10)], "SYNC_MASTER").alone
    (found,) = masters_alone(alone, "c", 120, 30).rows(named=True)
    assert (found["broker_id"], found["from_ts"], found["to_ts"]) == (0, at(10), at(100))
    assert found["summary"] == (
        "The master of b is a SYNC_MASTER, and no slave of it answered for 90 s. It stored at least 6000 bytes"
        " meanwhile, which only it has. Producers get SLAVE_NOT_AVAILABLE."
    )
    version_5 = judged([row | {"broker_version_desc": "V5_3_3"} for row in MASTER], "SYNC_MASTER").alone
    (found,) = masters_alone(version_5, "c", 120, 30).rows(named=True)
    assert found["summary"].endswith(" Producers get no error: by its settings it does not wait for a slave.")
    assert len(masters_alone(judged(MASTER).alone, "c", 120, 30)) == 0, "an asynchronous one needs no slave"


def test_a_disk_that_does_not_keep_up() -> None:
    polls = [poll(s, s << 20, f"{s}.0 MiB") for s in range(10, 40, 5)]
    (found,) = unflushed(judged([poll(0, 0), *polls]).judged_polls, "c", 120).rows(named=True)
    assert (found["severity"], found["broker_id"], found["to_ts"]) == ("warning", 0, at(35))
    assert "in memory that were not flushed" in found["summary"]
    assert found["summary"].endswith(" messages, the oldest written at most 35 s before.")
    assert found["evidence"][0]["table_name"] == "gold.replication"


def test_some_kilobytes_that_a_busy_machine_flushes_late_are_no_finding() -> None:
    polls = judged([poll(0, 0), *[poll(s, s << 20, f"{s}.0 MiB") for s in range(10, 40, 5)]]).judged_polls
    few = polls.with_columns(unflushed_bytes=pl.col("allowed_bytes") + 948)
    assert few["judgement"].to_list().count("differ") > 2
    assert len(unflushed(few, "c", 120, 65_536)) == 0
    assert len(unflushed(polls, "c", 120, 65_536)) == 1


def test_one_slow_flush_is_no_finding() -> None:
    once = judged([poll(0, 0), poll(20, 20 << 20), poll(30, 30 << 20, "20.0 MiB")]).judged_polls
    assert once["judgement"].to_list() == ["differ"]
    found = unflushed(once, "c", 120)
    assert (len(found), dict(found.schema)) == (0, SCHEMA)


def reports(seconds: list[float], acked: list[int], in_sync: bool = False, port: int = 1) -> list[Row]:
    slave = {"confirmed_offset": 0, "bytes_per_second": 0, "transfer_offset": 0, "in_sync": in_sync}
    return [
        {
            "ts": at(s),
            "broker_name": "b",
            "broker_id": 0,
            "is_master": True,
            "master_end": 1000,
            "slaves": [slave | {"addr": f"h1:{port}", "confirmed_offset": end, "behind_bytes": 1000 - end}],
        }
        for s, end in zip(seconds, acked, strict=True)
    ]


def fallen(ha_status: list[Row], polls: list[Row] = ()) -> list[str]:
    described = rows("silver.broker", BROKER, [{}])
    found = replication(
        rows("silver.broker_runtime", RUNTIME, [*polls]), described, rows("silver.ha_status", {}, ha_status), 30
    )
    return reported_behind(found.fallen_behind, "c")["summary"].to_list()


def test_a_slave_that_only_its_master_reports_as_fallen_behind() -> None:
    """It counts with two reports; another connection of its host is the same slave; a report in sync ends it."""
    [text] = fallen(reports([0], [100]) + reports([300], [100], port=2))
    assert text.startswith(
        "The slave at h1 of b has fallen behind, as its master reported for 300 s: it stood at offset"
    )
    assert fallen(reports([0], [100])) == []
    assert fallen(reports([0], [100]) + reports([100], [1000], in_sync=True) + reports([120], [900])) == []
    assert fallen(reports([0, 300], [100, 100]), [poll(0, 1000), poll(0, 1000, **SLAVE)]) == []
