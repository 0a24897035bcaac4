"""All findings of some days of one cluster, out of silver and gold frames."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from mqreplay.replay import conflicts
from mqreplay.replay.client_clocks import Row, clocks_frame
from mqreplay.replay.deliveries import came_back, repeated_deliveries
from mqreplay.replay.findings import (
    brokers,
    clocks,
    members,
    messages,
    offsets,
    ownership,
    pulls,
    queues,
    shares,
    slaves,
)
from mqreplay.replay.findings.snapshots import snapshot_findings
from mqreplay.replay.ownership import disputes, due_queues, idle_members, subscribers
from mqreplay.replay.standstills import standstills

Frames = Mapping[str, DataFrame]
RESET_GAP_S = 30  # one reset reaches all its clients within seconds


@dataclass(frozen=True)
class Known:
    """What findings are made of. Silver frames by their names, by the recorder's clock; gold ones as they are."""

    cluster: str
    silver: Frames
    gold: Frames
    members: DataFrame
    broadcasting: DataFrame
    ends: DataFrame
    resets: DataFrame
    still: DataFrame
    outages: DataFrame
    skewed: list[Row]
    refused: DataFrame
    recorded_until: dt.datetime | None
    reset_reach_s: int


@dataclass(frozen=True)
class Family:
    """Findings made from the same frames: the unit in which they are computed."""

    name: str
    make: Callable[[], DataFrame]


def every_family(known: Known, limits: Any) -> list[Family]:
    """All findings, without their causes; ``limits`` has the fields of conf's [findings]."""
    made = [
        ("offsets that moved", _of_offsets),
        ("queues that stood still", _of_standstills),
        ("members that disagree", _of_members),
        ("queues without one owner", _of_owners),
        ("brokers that were gone", _of_brokers),
        ("messages that came back", _of_messages),
        ("topics and copies", _of_copies),
    ]
    return [Family(name, partial(make, known, limits)) for name, make in made]


def _of_offsets(known: Known, limits: Any) -> DataFrame:
    continuity, gap = known.gold["gold.offset_continuity"], limits.same_cause_gap_s
    resets = offsets.reset_findings(known.resets, continuity, RESET_GAP_S, known.reset_reach_s)
    moved = offsets.offset_findings(continuity, known.gold["gold.queue_owner"], gap, limits.dispute_s)
    return moved.unionByName(resets)


def _of_standstills(known: Known, limits: Any) -> DataFrame:
    pull, owners = known.silver["pull"], known.gold["gold.queue_owner"]
    still = standstills(known.still, known.cluster, pull, owners, limits.stuck_s)
    return queues.stuck_findings(still, limits.same_cause_gap_s)


def _of_owners(known: Known, limits: Any) -> DataFrame:
    silver, owners = known.silver, known.gold["gold.queue_owner"]
    subscribed = subscribers(known.members, silver["heartbeat"], silver["rebalance"], owners)
    due = due_queues(silver["rebalance"], silver["pull"], subscribed, known.broadcasting, limits.rebalance_interval_s)
    idle = idle_members(subscribed, owners, known.broadcasting)
    return ownership.ownership_findings(
        disputes(owners, due), idle, limits.dispute_s, limits.idle_s, limits.same_cause_gap_s
    )


def _of_members(known: Known, limits: Any) -> DataFrame:
    silver, owners = known.silver, known.gold["gold.queue_owner"]
    ended = members.heard_until(known.members, known.recorded_until)
    disagree = members.conflict_findings(
        conflicts.strategy_conflicts(silver["rebalance"], known.members, limits.rebalance_interval_s),
        conflicts.subscription_conflicts(silver["heartbeat"], known.members, limits.heartbeat_interval_s),
        limits.dispute_s,
    )
    lost = members.lost_findings(members.lost_consumers(known.members, owners, ended, limits.lost_s))
    uneven = shares.uneven_findings(
        known.gold["gold.allocation"], limits.uneven_queues, limits.rebalance_interval_s, limits.dispute_s
    )
    return disagree.unionByName(lost).unionByName(uneven)


def _of_brokers(known: Known, limits: Any) -> DataFrame:
    silver, route = known.silver, known.gold["gold.pull_route"]
    failovers = route.where(F.col("cause") == "master_gone")
    again = repeated_deliveries(silver["consume"], known.broadcasting)
    families = [
        brokers.outage_findings(known.outages, failovers, again, limits.failed_over_s),
        pulls.pull_findings(route, limits.same_cause_gap_s, limits.slave_pull_warn_s),
        brokers.refusing_slaves(silver["pull"], limits.same_cause_gap_s),
        slaves.stale_slave_offsets(known.gold["gold.offset_continuity"], limits.stale_slave_s),
    ]
    return reduce(DataFrame.unionByName, families)


def _of_messages(known: Known, limits: Any) -> DataFrame:
    silver, gap = known.silver, limits.same_cause_gap_s
    back = came_back(silver["consume"])
    families = [
        messages.duplicate_findings(repeated_deliveries(silver["consume"], known.broadcasting), limits.lost_s),
        messages.retry_findings(back, known.ends, known.cluster, limits.retry_warn_messages, limits.retry_gap_s),
        messages.dead_letters(back, silver["topic_config"], known.ends, known.cluster, gap),
    ]
    return reduce(DataFrame.unionByName, families)


def _of_copies(known: Known, limits: Any) -> DataFrame:
    changes, config = known.silver["offset_change"], known.silver["topic_config"]
    families = [
        snapshot_findings(known.refused),
        queues.changed_counts(config),
        queues.orphan_offset_keys(changes, config),
    ]
    if known.skewed:
        spark = known.ends.sparkSession
        skewed = clocks_frame(spark, known.skewed, known.cluster)
        families.append(clocks.clock_findings(skewed, known.silver["pull"], known.silver["offset_commit"]))
    return reduce(DataFrame.unionByName, families)
