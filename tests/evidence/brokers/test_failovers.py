"""The failovers of a day: when the broker stopped and answered again, its address and its settings."""

from __future__ import annotations

from typing import Any

import polars as pl

from mqreplay.evidence.brokers.broker_outages import broker_outages
from mqreplay.evidence.brokers.failovers import (
    Failover,
    FailoverSettings,
    failovers,
    name_server_scans,
    poll_intervals,
    returns_of_shard,
)
from mqreplay.evidence.brokers.listed_brokers import listed_brokers, master_changes
from silver_moments import at
from silver_rows import rows

Row = dict[str, Any]
A, B = "h:1", "h:2"
END = at(600)
BROKER = {"broker_name": "b", "broker_id": 0, "broker_addr": A, "boot_ts": at(-900)}
NOTHING = pl.DataFrame(schema={"broker_name": pl.String, "broker_id": pl.Int64, "ts": pl.Datetime("us", "UTC")})


def poll(seconds: float, **differs: object) -> Row:
    return BROKER | {"ts": at(seconds)} | differs


def found_of(polls: list[Row], answers: list[Row] | None = None, brokers: list[Row] | None = None) -> list[Failover]:
    runtime = rows("silver.broker_runtime", {}, polls)
    no_pulls = rows("silver.pull", {}, []).select(
        "broker_name", "broker_id", pl.col("request_ts").alias("ts"), "record_id"
    )
    route = rows("gold.pull_route", {}, []).select("broker_name", pl.col("request_ts").alias("ts"), "record_id")
    outages = broker_outages(runtime, rows("silver.heartbeat", {}, []), no_pulls, no_pulls, route, 10, 30)
    lists = listed_brokers(rows("silver.cluster_info", {}, answers or []), END)
    described = rows("silver.broker", {"broker_name": "b", "broker_id": 0, "ts": at(0)}, brokers or [])
    return failovers(outages, master_changes(lists, runtime), lists, runtime, described, END)


def listed(seconds: float, addrs: dict[int, str]) -> Row:
    brokers = [{"broker_name": "b", "cluster": "c", "broker_addrs": [*addrs.items()]}]
    return {"ts": at(seconds), "namesrv_addr": "n:1", "brokers": brokers, "record_id": f"l{seconds}"}


DOWN = [poll(s) for s in range(0, 100, 2)] + [poll(s, error="refused") for s in range(100, 150, 2)]


def test_a_master_that_was_started_anew() -> None:
    (found,) = found_of([*DOWN, *(poll(s, boot_ts=at(148)) for s in range(150, 200, 2))])
    assert (found.outage_ts, found.stopped_ts, found.answered_ts, found.up_ts) == (at(100), at(100), at(98), at(150))
    assert (found.broker_addr, found.restarted, found.is_master, found.until) == (A, True, True, END)


def test_a_paused_master_is_the_same_process_and_one_that_stays_down_has_no_end() -> None:
    (paused,) = found_of([*DOWN, poll(150)])
    assert (paused.up_ts, paused.restarted) == (at(150), False)
    (dead,) = found_of(DOWN)
    assert (dead.up_ts, dead.restarted) == (None, None)


def test_the_next_outage_ends_a_failover() -> None:
    again = [poll(s, error="refused") for s in range(300, 320, 2)]
    first, second = found_of([*DOWN, poll(150), poll(298), *again, poll(320)])
    assert (first.until, second.outage_ts, second.until) == (at(300), at(300), END)


def test_a_new_master_without_a_known_outage() -> None:
    polls = [
        *(poll(s) for s in (0, 90, 98)),
        poll(102, error="refused"),
        poll(104, broker_addr=B),
        poll(300, broker_id=1),
    ]
    (found,) = found_of(polls, [listed(0, {0: A, 1: B}), listed(96, {0: A, 1: B}), listed(106, {0: B})])
    assert (found.broker_addr, found.outage_ts, found.stopped_ts, found.answered_ts) == (A, at(96), at(102), at(98))
    assert found.up_ts == at(300)


def test_a_master_that_gave_its_role_away_in_order_did_not_fail() -> None:
    polls = [poll(s) for s in range(0, 200, 5)]
    assert found_of(polls, [listed(0, {0: A, 1: B}), listed(106, {0: B, 1: A})]) == []


def test_a_new_master_within_an_outage_is_one_failover() -> None:
    (found,) = found_of(DOWN, [listed(0, {0: A, 1: B}), listed(106, {0: B})])
    assert found.outage_ts == at(100)


def test_settings_of_the_broker_give_its_times() -> None:
    acts = {
        "enableSlaveActingMaster": "true",
        "brokerNotActiveTimeoutMillis": "8000",
        "registerNameServerPeriod": "20000",
    }
    (acting,) = found_of(DOWN, brokers=[{"rocketmq_version": "5.3.3", "properties": acts | {"totalReplicas": "2"}}])
    assert acting.settings == FailoverSettings(8_000, 1_000, 44_000, 10_000, 44_000, True)
    (alone,) = found_of(DOWN, brokers=[{"rocketmq_version": "5.3.3", "properties": acts}])
    assert not alone.settings.goes_online_late
    (plain,) = found_of(
        DOWN, brokers=[{"rocketmq_version": "4.9.7", "properties": acts | {"enableSlaveActingMaster": "no"}}]
    )
    assert plain.settings == FailoverSettings(sign_period=20_000, registers_within=26_000)
    (odd,) = found_of(DOWN, brokers=[{"rocketmq_version": None, "properties": {"registerNameServerPeriod": "x"}}])
    assert (odd.settings.sign_period, odd.settings.registers_within) == (30_000, 54_000), "the longest of any version"
    (unknown,) = found_of(DOWN)
    assert not unknown.settings.is_described


def test_controllers_and_registrations_have_settings_of_the_broker() -> None:
    slow = {"controllerHeartBeatTimeoutMills": "60000", "syncBrokerMetadataPeriod": "1000"}
    slow |= {"registerBrokerTimeoutMills": "2000", "disappearTimeAfterStart": "9000"}
    (found,) = found_of(DOWN, brokers=[{"rocketmq_version": "5.3.3", "properties": slow}])
    assert (found.settings.heartbeat_timeout, found.settings.elected_within) == (60_000, 68_000)
    assert found.settings.registers_within == 41_000


def test_the_intervals_of_clients_and_name_servers_are_read_where_they_are_recorded() -> None:
    client = {"consumer_group": "g", "client_id": "c1", "ts": at(0)}
    slow = client | {"properties": {"pollNameServerInterval": "60000"}}
    other = slow | {"consumer_group": "h", "properties": {"pollNameServerInterval": "30000"}}
    old = client | {"client_id": "c2", "properties": {"consumeThreadMin": "20"}}
    assert poll_intervals(rows("silver.assignment", {}, [slow, other, old])) == {"c1": 60_000}
    event = {"kind": "name_server_settings", "detail": "name server n:1: scanNotActiveBrokerInterval=5000"}
    events = [
        event | {"ts": at(0)},
        event | {"ts": at(9), "detail": "name server n:1: scanNotActiveBrokerInterval=9000"},
        event | {"ts": at(0), "detail": "name server n:4: scanNotActiveBrokerInterval=often"},
        event | {"ts": at(0), "detail": "name server n:2: no scanNotActiveBrokerInterval: it is of 4.x"},
        {"ts": at(0), "kind": "reachable", "detail": "name server n:3: it answers again"},
    ]
    assert name_server_scans(rows("silver.recorder_event", {}, events)) == {"n:1": 9_000, "n:2": 0}


def test_the_first_pull_from_the_master_after_the_slave() -> None:
    queue = {"consumer_group": "g", "topic": "t", "broker_name": "b", "queue_id": 0, "client_id": "c1"}
    pulls = [(0, 0, "master"), (10, 1, "master_gone"), (20, 1, "suggested"), (30, 0, "master"), (40, 0, "master")]
    made = [{"request_ts": at(s), "actual_broker_id": of, "cause": cause} for s, of, cause in pulls]
    other = [row | {"client_id": "c2", "cause": "suggested", "record_id": f"o{i}"} for i, row in enumerate(made)]
    found = returns_of_shard(rows("gold.pull_route", queue, [*made, *other]))
    assert found.to_dicts() == [{"broker_name": "b", "client_id": "c1", "ts": at(30), "record_id": "r3"}]
