"""The failovers of a day: outages of brokers, and masters that were replaced without a known outage.

A failover has the address of its broker: lists and routes may have another broker under the same id meanwhile.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from mqreplay.core import failover_intervals as law
from mqreplay.core.route_info_manager import BROKER_CHANNEL_EXPIRED_TIME
from mqreplay.core.store_settings import int_setting, is_set
from mqreplay.decode.recorder_events import NAME_SERVER_SCAN, NAME_SERVER_SETTINGS
from mqreplay.evidence.brokers.broker_descriptions import PROPERTIES, possible_versions, properties_of

SAME_FAILOVER = dt.timedelta(seconds=60)  # a change of the master this near to an outage of it is one failover


@dataclass(frozen=True)
class FailoverSettings:
    """What a broker's settings decide, in ms.

    ``expired_time``: the time without a sign after which name servers of 5.x remove it; ``sign_period``: between its
    signs, registrations or heartbeats. ``registers_within``: the longest time from its first answer to its
    registration; ``elected_within``: from its end to the registration of the master that a controller elects.
    ``is_described``: the settings are recorded. ``goes_online_late``: see core.failover_intervals.
    """

    expired_time: int = BROKER_CHANNEL_EXPIRED_TIME
    sign_period: int = law.REGISTER_NAME_SERVER_PERIOD
    registers_within: int = law.registration(0).end
    heartbeat_timeout: int = law.CONTROLLER_HEARTBEAT_TIMEOUT
    elected_within: int = law.election(0).end
    goes_online_late: bool = False
    is_described: bool = True


@dataclass(frozen=True)
class Failover:
    """A broker that stopped answering.

    ``outage_ts`` is from_ts of its finding. ``stopped_ts`` is the first instant known to be without an answer, null
    where only clients asked the broker, ``answered_ts`` the last answer before and ``up_ts`` the first one after.
    """

    outage_ts: dt.datetime
    broker_name: str
    broker_id: int
    broker_addr: str | None
    stopped_ts: dt.datetime | None
    answered_ts: dt.datetime | None
    up_ts: dt.datetime | None
    restarted: bool | None
    until: dt.datetime  # the next failover of the broker, or the end of the recording
    settings: FailoverSettings

    @property
    def is_master(self) -> bool:
        """Return whether the broker was the master of its name."""
        return self.broker_id == 0


def failovers(
    outages: pl.DataFrame,
    master_changes: pl.DataFrame,
    lists: pl.DataFrame,
    broker_runtime: pl.DataFrame,
    broker: pl.DataFrame,
    end: dt.datetime,
) -> list[Failover]:
    """Return the failovers in order of their begin.

    ``outages`` is the frame of `broker_outages`, ``master_changes`` and ``lists`` those of listed_brokers.py; the
    others are silver tables.
    """
    begun = sorted(_begun(outages, master_changes, lists, broker_runtime), key=lambda row: row["outage_ts"])
    settings = _settings(broker)
    found: list[Failover] = []
    for i, row in enumerate(begun):
        place = row["broker_name"], row["broker_id"]
        later = [each["outage_ts"] for each in begun[i + 1 :] if (each["broker_name"], each["broker_id"]) == place]
        until = min([each for each in later if each > row["outage_ts"]], default=max(end, row["outage_ts"]))
        of_place = _polls(broker_runtime, row)
        answers = of_place.filter(pl.col("error").is_null())
        before = answers.filter(pl.col("ts") <= row["quiet_ts"])
        after = answers.filter((pl.col("ts") >= row["to_ts"]) & (pl.col("ts") > row["quiet_ts"]))
        boots = [each["boot_ts"].drop_nulls() for each in (before, after)]
        restarted = bool(boots[1][0] > boots[0][-1]) if len(boots[0]) and len(boots[1]) else None
        errors = of_place.filter(pl.col("error").is_not_null() & (pl.col("ts") >= row["quiet_ts"]))
        first_error = errors["ts"].min() if row["stopped_ts"] is None else row["stopped_ts"]
        found.append(
            Failover(
                row["outage_ts"],
                *place,
                row["broker_addr"],
                first_error if row["polled"] else None,  # type: ignore[arg-type]
                before["ts"].max(),  # type: ignore[arg-type]
                after["ts"].min(),  # type: ignore[arg-type]
                restarted,
                until,
                settings.get(place, FailoverSettings(is_described=False)),
            )
        )
    return found


def returns_of_shard(pull_route: pl.DataFrame) -> pl.DataFrame:
    """Return the first pull from a master after pulls from its slave, of clients that had lost the master.

    Columns: broker_name, client_id, ts, record_id. ``pull_route`` are all rows of gold.pull_route of some queues.
    """
    by = ("broker_name", "client_id", "consumer_group", "topic", "queue_id")
    lost = pull_route.filter(pl.col("cause") == "master_gone").select(by).unique()
    # Most shards have none: a filter by client is cheaper than the join.
    theirs = pull_route.filter(pl.col("client_id").is_in(lost["client_id"].unique().to_list()))
    reads = theirs.join(lost, by, how="semi").sort("request_ts", "record_id")
    is_slave = pl.col("actual_broker_id") > 0
    back = ~is_slave & is_slave.shift(1).over(by).fill_null(value=False)
    return reads.filter(back).select("broker_name", "client_id", pl.col("request_ts").alias("ts"), "record_id")


def poll_intervals(assignment: pl.DataFrame) -> dict[str, int]:
    """Return the pollNameServerInterval of clients, in ms, of rows of silver.assignment: 5.1 and later report it.

    The groups of a process share one timer, with the settings of the first of them (MQClientManager).
    """
    by = ("client_id", "consumer_group")
    found: dict[str, int] = {}
    for row in assignment.group_by(by).agg(pl.col("properties").drop_nulls().last().cast(PROPERTIES)).rows(named=True):
        interval = int_setting(properties_of(row), "pollNameServerInterval", 0)
        if interval > 0:
            found[row["client_id"]] = max(interval, found.get(row["client_id"], 0))
    return found


def name_server_scans(recorder_event: pl.DataFrame) -> dict[str, int]:
    """Return the scanNotActiveBrokerInterval of name servers by address, in ms; 0: of 4.x, which has none."""
    settings = recorder_event.filter(pl.col("kind") == NAME_SERVER_SETTINGS).sort("ts")
    found = settings.select(pl.col("detail").str.extract_groups(NAME_SERVER_SCAN)).unnest("detail").drop_nulls("addr")
    return {row["addr"]: int(row["ms"] or 0) for row in found.rows(named=True)}


def _begun(
    outages: pl.DataFrame, master_changes: pl.DataFrame, lists: pl.DataFrame, broker_runtime: pl.DataFrame
) -> Iterator[dict[str, Any]]:
    known = outages.select("broker_name", "broker_id", "from_ts", "to_ts", "polled").rows(named=True)
    for row in known:
        yield {
            "outage_ts": row["from_ts"],
            "broker_name": row["broker_name"],
            "broker_id": row["broker_id"],
            "broker_addr": _address(row, lists, broker_runtime),
            "stopped_ts": row["from_ts"],
            "quiet_ts": row["from_ts"],
            "to_ts": row["to_ts"],
            "polled": row["polled"],
        }
    for change in master_changes.rows(named=True):
        near = (
            each["broker_name"] == change["broker_name"]
            and each["from_ts"] <= change["to_ts"] + SAME_FAILOVER
            and each["to_ts"] >= change["from_ts"] - SAME_FAILOVER
            for each in known
            if each["broker_id"] == 0
        )
        polls = broker_runtime.filter(
            (pl.col("broker_addr") == change["old_addr"]) & (pl.col("ts") <= change["to_ts"] + SAME_FAILOVER)
        )
        failed = polls.filter(pl.col("error").is_not_null() & (pl.col("ts") >= change["from_ts"] - SAME_FAILOVER))
        # An old master that answers all the time gave its role away in order.
        if len(failed) and not any(near):
            answered = polls.filter(pl.col("error").is_null() & (pl.col("ts") <= failed["ts"].min()))
            last = answered["ts"].max()
            yield {
                "outage_ts": change["from_ts"],
                "broker_name": change["broker_name"],
                "broker_id": 0,
                "broker_addr": change["old_addr"],
                "stopped_ts": None,
                "quiet_ts": change["from_ts"] if last is None else last,
                "to_ts": change["to_ts"],
                "polled": last is not None,
            }


def _address(row: Mapping[str, Any], lists: pl.DataFrame, broker_runtime: pl.DataFrame) -> str | None:
    """Return the last address of the broker that was listed, or answered, before an outage."""
    columns = ("ts", "broker_name", "broker_id", "broker_addr")
    listed = lists.rename({"from_ts": "ts"}).select(columns)
    answered = broker_runtime.filter(pl.col("error").is_null()).select(columns)
    here = (pl.col("broker_name") == row["broker_name"]) & (pl.col("broker_id") == row["broker_id"])
    for frame in (listed, answered):
        known = frame.filter(here & (pl.col("ts") <= row["from_ts"]) & pl.col("broker_addr").is_not_null())
        if len(known):
            return str(known.sort("ts", "broker_addr")["broker_addr"][-1])
    return None


def _polls(broker_runtime: pl.DataFrame, row: Mapping[str, Any]) -> pl.DataFrame:
    """Return the polls of the broker, by its address where the polls have it: its id may change."""
    name = pl.col("broker_name") == row["broker_name"]
    same = pl.col("broker_id") == row["broker_id"]
    addr = row["broker_addr"]
    if addr is not None:
        same = pl.when(pl.col("broker_addr").is_null()).then(same).otherwise(pl.col("broker_addr") == addr)
    return broker_runtime.filter(name & same).sort("ts")


def _settings(broker: pl.DataFrame) -> dict[tuple[str, int], FailoverSettings]:
    last = broker.sort("ts").group_by("broker_name", "broker_id", maintain_order=True).last()
    described = last.select("broker_name", "broker_id", "rocketmq_version", pl.col("properties").cast(PROPERTIES))
    return {(row["broker_name"], row["broker_id"]): _of_settings(row) for row in described.rows(named=True)}


def _of_settings(described: Mapping[str, Any]) -> FailoverSettings:
    properties = properties_of(described)

    def ms(name: str, default: int) -> int:
        return int_setting(properties, name, default)

    acts = is_set(properties, "enableSlaveActingMaster")
    period = ms("registerNameServerPeriod", law.REGISTER_NAME_SERVER_PERIOD)
    timeout = ms("registerBrokerTimeoutMills", -1)
    registered = [
        law.registration(0, version, period, None if timeout < 0 else timeout, ms("disappearTimeAfterStart", -1)).end
        for version in possible_versions(described)
    ]
    heartbeat_timeout = ms("controllerHeartBeatTimeoutMills", law.CONTROLLER_HEARTBEAT_TIMEOUT)
    elected = law.election(
        0,
        heartbeat_timeout,
        ms("syncBrokerMetadataPeriod", law.SYNC_BROKER_METADATA_PERIOD),
        law.REGISTER_BROKER_TIMEOUT_OF_5 if timeout < 0 else timeout,
    )
    return FailoverSettings(
        # A broker of 5.x gives its own time only with this setting (BrokerController#registerBrokerAll).
        ms("brokerNotActiveTimeoutMillis", 10_000) if acts else BROKER_CHANNEL_EXPIRED_TIME,
        ms("brokerHeartbeatInterval", 1_000) if acts else period,
        max(registered),
        heartbeat_timeout,
        elected.end,
        law.goes_online_late(acts, ms("totalReplicas", 1), is_set(properties, "skipPreOnline")),
        bool(properties),
    )
