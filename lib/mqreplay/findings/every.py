"""All kinds of findings, and all findings of one day of one cluster."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from types import MappingProxyType

import polars as pl

from mqreplay.evidence import conflicts
from mqreplay.evidence import ownership as owned
from mqreplay.evidence.asked_resets import wide_resets
from mqreplay.evidence.broker_outages import BROKER, with_outage
from mqreplay.evidence.growing_lag import growing_lag
from mqreplay.evidence.held_standstills import held_standstills
from mqreplay.evidence.queue_ends import polled_ends
from mqreplay.findings import (
    broker_lists,
    brokers,
    clocks,
    duplicate_ids,
    duplicates,
    lag,
    members,
    messages,
    odd_offsets,
    offset_resets,
    offsets,
    ownership,
    pop_order,
    pulls,
    revival,
    shares,
    slaves,
    snapshots,
    stuck_queues,
    topics,
)
from mqreplay.findings.causes import with_causes, with_renamed_causes
from mqreplay.findings.finding_evidence import FindingEvidence
from mqreplay.findings.going_on import going_on
from mqreplay.findings.kind import FindingKind
from mqreplay.findings.limits import Limits
from mqreplay.findings.shape import HIDDEN, SCHEMA, that_reach

_KINDS = (
    offsets.OFFSET_REWIND,
    offsets.OFFSET_JUMP,
    offsets.OFFSET_BEYOND_MAX,
    odd_offsets.NEGATIVE_OFFSET,
    offset_resets.OFFSET_RESET,
    stuck_queues.STUCK_QUEUE,
    lag.LAG_GROWS,
    revival.REVIVE_LAG,
    pop_order.POP_ORDER_BLOCKED,
    ownership.ORPHAN_QUEUE,
    ownership.DOUBLE_OWNED_QUEUE,
    ownership.IDLE_CONSUMER,
    shares.UNEVEN_ALLOCATION,
    members.STRATEGY_CONFLICT,
    members.SUBSCRIPTION_CONFLICT,
    duplicate_ids.DUPLICATE_CLIENT_ID,
    members.CONSUMER_LOST,
    brokers.BROKER_DOWN,
    broker_lists.BROKER_UNLISTED,
    broker_lists.MASTER_CHANGED,
    brokers.FAILOVER_PULL,
    pulls.SLAVE_PULL,
    slaves.STALE_SLAVE_OFFSETS,
    slaves.SLAVE_CONFIG_DRIFT,
    messages.RETRY_GROWTH,
    messages.DEAD_LETTER,
    topics.QUEUE_COUNT_CHANGED,
    duplicates.DUPLICATE_DELIVERY,
    snapshots.TORN_SNAPSHOT,
    topics.ORPHAN_OFFSET_KEY,
    clocks.CLOCK_SKEW,
)
KINDS: Mapping[str, FindingKind] = MappingProxyType({kind.name: kind for kind in _KINDS})
RESET_GAP_S = 30  # one reset reaches all its clients within seconds


def all_findings(evidence: FindingEvidence, limits: Limits) -> pl.DataFrame:
    """Return the findings of all families, without their causes."""
    found = pl.concat([family(evidence, limits) for family in FAMILIES.values()])
    return pl.concat([found, _of_duplicates(evidence, limits, found)])


def finish(
    begun: pl.DataFrame, begin: dt.datetime, end: dt.datetime, before: pl.DataFrame | None, lost_s: int
) -> pl.DataFrame:
    """Return gold.finding's rows of the day from ``begin`` to ``end``, of the findings of `all_findings`.

    ``before`` has gold.finding's rows of the day before; None on the first day of the cluster.
    """
    of_day = begun.filter(pl.col("from_ts") < end)
    if before is not None:
        named = going_on(of_day.with_columns(pl.col("finding_id").alias("begun_id")), before)
        of_day = with_renamed_causes(named, "begun_id")
    found = that_reach(with_causes(of_day, KINDS.values()), begin, lost_s)
    last = ("follows_from", "evidence", "evidence_count")
    names = [name for name in SCHEMA if name not in (*HIDDEN, *last)]
    return found.select(pl.lit(begin.date()).alias("day"), *names, *last)


def _of_offsets(evidence: FindingEvidence, limits: Limits) -> pl.DataFrame:
    continuity, cluster = evidence.offset_continuity, evidence.cluster
    resets = offset_resets.reset_findings(
        evidence.resets, continuity, cluster, RESET_GAP_S, limits.reset_reach_s, evidence.asked_resets
    )
    moved = offsets.offset_findings(
        continuity,
        evidence.queue_owner,
        pl.concat([evidence.outages.select(*BROKER, "from_ts"), evidence.restarts]),
        cluster,
        limits.same_cause_gap_s,
        limits.dispute_s,
        evidence.resets,
        limits.duplicate_warn_messages,
    )
    return pl.concat([moved, resets, odd_offsets.odd_offset_findings(evidence.odd_offsets, continuity, cluster)])


def _of_standstills(evidence: FindingEvidence, limits: Limits) -> pl.DataFrame:
    held = held_standstills(evidence.standstills, evidence.refused_pulls, evidence.queue_owner, limits.stuck_s)
    gap_s, cluster = limits.same_cause_gap_s, evidence.cluster
    lags = growing_lag(
        evidence.standstills,
        held,
        evidence.advances,
        evidence.members,
        evidence.heartbeat,
        evidence.outages,
        limits.stuck_s,
    )
    return pl.concat(
        [
            stuck_queues.stuck_findings(held, cluster, gap_s),
            lag.lag_findings(lags, evidence.members, cluster, gap_s),
            revival.revive_findings(evidence.revive_lags, cluster, gap_s),
            pop_order.pop_order_findings(evidence.blocked_orders, cluster, gap_s),
        ]
    )


def _of_members(evidence: FindingEvidence, limits: Limits) -> pl.DataFrame:
    sessions, cluster = evidence.members, evidence.cluster
    disagree = members.conflict_findings(
        conflicts.strategy_conflicts(
            evidence.rebalance, sessions, limits.rebalance_interval_s, evidence.polled.strategies
        ),
        conflicts.subscription_conflicts(evidence.heartbeat, sessions, limits.heartbeat_interval_s),
        cluster,
        limits.dispute_s,
    )
    until = members.heard_until(sessions, evidence.recorded_until)
    polled = evidence.polled
    lost = members.lost_consumers(
        sessions, evidence.queue_owner, until, limits.lost_s, polled.vanished, polled.unwatched
    )
    found = [disagree, members.lost_findings(lost, cluster)]
    found.append(shares.uneven_findings(evidence.uneven_shares, cluster, limits.rebalance_interval_s, limits.dispute_s))
    if polled.duplicates is not None:
        found.append(
            duplicate_ids.duplicate_id_findings(polled.duplicates, evidence.unshared_groups, cluster, limits.dispute_s)
        )
    return pl.concat(found)


def _of_owners(evidence: FindingEvidence, limits: Limits) -> pl.DataFrame:
    rebalance, owners, unshared = evidence.rebalance, evidence.queue_owner, evidence.unshared_groups
    subscribed = owned.subscribers(evidence.members, evidence.heartbeat, rebalance, owners)
    polled = evidence.polled
    due = owned.due_queues(
        rebalance,
        evidence.pulled_queues,
        subscribed,
        owners,
        unshared,
        limits.rebalance_interval_s,
        polled.queues,
        polled.unwatched,
    )
    rebalanced = rebalance.select("consumer_group", pl.lit("silver.rebalance").alias("table_name")).unique()
    return ownership.ownership_findings(
        owned.disputes(owners, due, polled.duplicates),
        owned.idle_members(subscribed, owners, unshared, rebalance, limits.rebalance_interval_s, polled.unwatched),
        rebalanced if polled.shown is None else pl.concat([rebalanced, polled.shown]),
        evidence.cluster,
        limits.dispute_s,
        limits.idle_s,
        limits.idle_rebalances,
        limits.rebalance_interval_s,
        limits.same_cause_gap_s,
        messages.retried_topics(evidence.came_back, _returned_ends(evidence)),
    )


def _of_brokers(evidence: FindingEvidence, limits: Limits) -> pl.DataFrame:
    cluster, gap_s = evidence.cluster, limits.same_cause_gap_s
    failovers = with_outage(evidence.failovers, evidence.outages, limits.failed_over_s, gap_s)
    return pl.concat(
        [
            brokers.outage_findings(evidence.outages, failovers, cluster),
            brokers.failover_findings(failovers, cluster, gap_s),
            pulls.pull_findings(evidence.exceptional_pulls, cluster, gap_s, limits.slave_pull_warn_s),
            brokers.refusing_slaves(evidence.refusals, cluster, gap_s),
            broker_lists.unlisted_findings(evidence.unlisted, cluster),
            broker_lists.master_findings(evidence.master_changes, cluster),
            slaves.stale_slave_offsets(evidence.offset_continuity, cluster, limits.stale_slave_s),
            slaves.config_drift(evidence.config_drift, evidence.outages, cluster, gap_s),
        ]
    )


def _of_messages(evidence: FindingEvidence, limits: Limits) -> pl.DataFrame:
    back, cluster = evidence.came_back, evidence.cluster
    ends = _returned_ends(evidence)
    return pl.concat(
        [
            messages.retry_findings(
                back,
                ends,
                cluster,
                limits.retry_warn_messages,
                limits.retry_gap_s,
                evidence.groups,
                frozenset(evidence.topic_config["topic"]),
            ),
            messages.dead_letters(
                back, evidence.most_tries, evidence.topic_config, ends, cluster, limits.same_cause_gap_s
            ),
        ]
    )


def _of_duplicates(evidence: FindingEvidence, limits: Limits, found: pl.DataFrame) -> pl.DataFrame:
    return duplicates.duplicate_findings(
        evidence.repeated_deliveries,
        found,
        evidence.offset_continuity,
        pl.concat([evidence.resets, wide_resets(evidence.asked_resets).select(evidence.resets.columns)]),
        evidence.queue_owner,
        evidence.cluster,
        gap_s=limits.lost_s,
        after_s=limits.failed_over_s,
        warn_messages=limits.duplicate_warn_messages,
    )


def _returned_ends(evidence: FindingEvidence) -> pl.DataFrame:
    return pl.concat([evidence.returned_ends, polled_ends(evidence.topic_stats)])


def _of_copies(evidence: FindingEvidence, _limits: Limits) -> pl.DataFrame:
    cluster = evidence.cluster
    return pl.concat(
        [
            snapshots.snapshot_findings(evidence.refused_snapshots, cluster),
            topics.changed_counts(evidence.topic_config, cluster),
            topics.orphan_offset_keys(evidence.orphan_offsets, cluster),
            clocks.clock_findings(evidence.clocks, evidence.activity, cluster),
        ]
    )


# Findings that are made of the same frames.
FAMILIES: Mapping[str, Callable[[FindingEvidence, Limits], pl.DataFrame]] = MappingProxyType(
    {
        "offsets that moved": _of_offsets,
        "queues that stood still": _of_standstills,
        "members that disagree": _of_members,
        "queues without one owner": _of_owners,
        "brokers that were gone": _of_brokers,
        "messages that came back": _of_messages,
        "topics and copies": _of_copies,
    }
)
