"""Slaves as their master reports them, against haMaxGapNotInSync."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import polars as pl

from mqreplay.core.replication import is_slave_ok
from mqreplay.decisions.slave_sync import (
    AS_RULED,
    CONFIRMED_MEANWHILE,
    NO_REPORT,
    NO_SETTINGS,
    NOT_AS_RULED,
    OF_CONTROLLER,
    in_sync_by_gap,
    slave_sync,
)
from mqreplay.decode.kinds import KINDS
from silver_moments import at
from silver_rows import rows

Row = dict[str, Any]
DATA = Path(__file__).parents[1] / "decode" / "data" / "ha_status.jsonl"
BROKER = {"broker_name": "b", "broker_id": 0, "broker_role": "ASYNC_MASTER", "ts": at(-1000), "properties": {}}
STATUS = {"broker_name": "b", "broker_id": 0, "ts": at(0), "is_master": True, "master_end": 10_000, "in_sync_slaves": 1}
POLL = {"broker_name": "b", "broker_id": 0, "broker_version_desc": "V5_3_3", "commit_log_max_offset": 9}
NO_POLLS = rows("silver.broker_runtime", {}, [])


def slave(confirmed: int, *, in_sync: bool) -> Row:
    return {
        "addr": "h:1",
        "confirmed_offset": confirmed,
        "behind_bytes": 10_000 - confirmed,
        "in_sync": in_sync,
        "bytes_per_second": 0,
        "transfer_offset": confirmed,
    }


def verdicts(*slaves: Row, **properties: str) -> list[tuple[str, str]]:
    status = rows("silver.ha_status", STATUS, [{"slaves": list(slaves)}])
    found = slave_sync(status, rows("silver.broker", BROKER, [{"properties": properties}]), NO_POLLS)
    assert found["connection"].to_list() == list(range(1, len(slaves) + 1))
    return found.select("judgement", "reason").rows()


def test_a_slave_is_in_sync_if_it_lacks_less_than_the_gap() -> None:
    gap = {"haMaxGapNotInSync": "3000"}
    agrees = ("agree", AS_RULED)
    assert verdicts(slave(7001, in_sync=True), slave(7000, in_sync=False), **gap) == [agrees, agrees]
    assert verdicts(slave(7001, in_sync=False), **gap) == [("differ", NOT_AS_RULED)]
    # The master reads the slave's offset twice.
    assert verdicts(slave(7000, in_sync=True), **gap) == [("undetermined", CONFIRMED_MEANWHILE)]
    assert verdicts(slave(0, in_sync=True)) == [agrees], "256 MiB by default"


def test_what_is_not_known_is_undetermined() -> None:
    assert verdicts(slave(0, in_sync=False), enableControllerMode="true") == [("undetermined", OF_CONTROLLER)]
    status = rows("silver.ha_status", STATUS, [{"slaves": [slave(0, in_sync=False)]}])
    undescribed = slave_sync(status, rows("silver.broker", BROKER, [{"broker_name": "other"}]), NO_POLLS)
    assert undescribed.select("judgement", "reason").rows() == [("undetermined", NO_SETTINGS)]


def test_a_master_of_5_with_slaves_and_without_a_report_is_one_row() -> None:
    none, broker = rows("silver.ha_status", {}, []), rows("silver.broker", BROKER, [{}])
    polls = [{"ts": at(0)}, {"ts": at(9)}, {"ts": at(5), "broker_id": 1}]
    found = slave_sync(none, broker, rows("silver.broker_runtime", POLL, polls))
    assert found.select("ts", "connection", "judgement", "reason").rows() == [(at(9), 0, "undetermined", NO_REPORT)]
    assert slave_sync(none, broker, rows("silver.broker_runtime", POLL, polls[:2])).is_empty(), "it has no slave"
    of_4 = rows("silver.broker_runtime", POLL | {"broker_version_desc": "V4_9_7"}, polls)
    assert slave_sync(none, broker, of_4).is_empty(), "4.x has no such report"


def test_the_settings_at_the_time_of_the_poll_count() -> None:
    status = rows("silver.ha_status", STATUS | {"slaves": [slave(5000, in_sync=False)]}, [{}, {"ts": at(200)}])
    described = [{"properties": {"haMaxGapNotInSync": "3000"}}, {"ts": at(100)}]
    found = slave_sync(status, rows("silver.broker", BROKER, described), NO_POLLS)
    assert found.select("max_gap_bytes", "judgement").rows() == [(3000, "agree"), (1 << 28, "differ")]


def test_answers_of_a_real_master_whose_slave_was_paused() -> None:
    known = [KINDS["ha_status"].decode(line) for line in DATA.read_bytes().splitlines()]
    fields = ("addr", "confirmed_offset", "behind_bytes", "in_sync", "bytes_per_second", "transfer_offset")
    polls = [
        {
            "ts": at(i),
            "broker_name": each["broker_name"],
            "broker_id": each["broker_id"],
            "is_master": each["is_master"],
            "master_end": each["master_end"],
            "slaves": None if each["slaves"] is None else [dict(zip(fields, s, strict=True)) for s in each["slaves"]],  # type: ignore[attr-defined]
        }
        for i, each in enumerate(known)
    ]
    broker = rows("silver.broker", BROKER | {"broker_name": "pier-a"}, [{"properties": {"haMaxGapNotInSync": "3000"}}])
    found = slave_sync(rows("silver.ha_status", {}, polls), broker, NO_POLLS)
    assert found.select("behind_bytes", "in_sync", "judgement").rows() == [
        (471, True, "agree"),
        (29_000, False, "agree"),
    ]


def test_whole_columns_are_judged_as_is_slave_ok_judges_each() -> None:
    pick = random.Random(36)
    cases = [
        (end := pick.randrange(50), pick.randrange(-1, end + 1), pick.choice((1, 7, 20, 256))) for _ in range(3000)
    ]
    frame = pl.DataFrame(cases, ["end", "confirmed", "gap"], orient="row")
    judged = frame.select(in_sync_by_gap(pl.col("end"), pl.col("confirmed"), pl.col("gap"))).to_series()
    assert judged.to_list() == [is_slave_ok(end, confirmed, 1, gap) for end, confirmed, gap in cases]
    assert 0 < judged.sum() < len(cases)
