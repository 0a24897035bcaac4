"""The result of a day: rows of gold tables, and the evidence for findings."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, fields

import polars as pl

from mqreplay.evidence.brokers.full_disks import full_disks
from mqreplay.evidence.brokers.slave_configs import slave_config_drift
from mqreplay.evidence.client_clocks import client_clocks
from mqreplay.evidence.lags.falling_behind import falling_behind
from mqreplay.evidence.lags.growing_lag import with_stopped
from mqreplay.evidence.lags.never_consumed import never_consumed, with_refusals
from mqreplay.evidence.members.observed_clients import answers
from mqreplay.evidence.messages.pop_orders import blocked_orders
from mqreplay.evidence.night_facts import NightFacts
from mqreplay.evidence.offsets.odd_offsets import odd_offsets_of_answers
from mqreplay.evidence.offsets.queue_events import last_copies
from mqreplay.evidence.offsets.standstills import held_standstills
from mqreplay.evidence.recorded_versions import RecordedVersions
from mqreplay.findings.finding_evidence import FindingEvidence, Polled
from mqreplay.findings.locks import blocked_locks
from mqreplay.findings.snapshots import refused_snapshots
from mqreplay.replay.break_evidence import BreakEvidence
from mqreplay.replay.broker_evidence import BrokerEvidence
from mqreplay.replay.context import ReplayContext
from mqreplay.replay.day import DayRows
from mqreplay.replay.driver_decisions import DriverDecisions
from mqreplay.replay.group_pass import GroupResult
from mqreplay.replay.member_evidence import MemberEvidence
from mqreplay.replay.message_pass import DeliveryResult
from mqreplay.replay.queue_pass import QueueResult
from mqreplay.replay.recorded import Recorded
from mqreplay.replay.send_pass import SendResult


@dataclass(frozen=True)
class DayTables:
    """The rows of the gold tables that the driver makes; each field has a table's name."""

    group_status: pl.DataFrame
    failover_exposure: pl.DataFrame
    replication: pl.DataFrame
    queue_owner: pl.DataFrame
    member: pl.DataFrame
    offset_continuity: pl.DataFrame
    delivery_audit: pl.DataFrame
    failover_step: pl.DataFrame
    flow_control: pl.DataFrame
    committed_offset: pl.DataFrame
    queue_lock: pl.DataFrame
    retried_message: pl.DataFrame
    rebalance_round: pl.DataFrame
    slave_copy: pl.DataFrame
    slave_sync: pl.DataFrame
    delay_progress: pl.DataFrame
    listed_route: pl.DataFrame
    judgement: pl.DataFrame
    replay_gap: pl.DataFrame

    def by_name(self) -> dict[str, pl.DataFrame]:
        """Return the rows by the full name of their table."""
        return {f"gold.{each.name}": getattr(self, each.name) for each in fields(self)}


@dataclass(frozen=True)
class DayResult:
    """The evidence for findings, rows of gold tables, and the versions of brokers and clients."""

    evidence: FindingEvidence
    tables: DayTables
    versions: RecordedVersions


def finding_evidence(
    day: DayRows,
    context: ReplayContext,
    recorded: Recorded,
    facts: NightFacts,
    queues: QueueResult,
    groups: GroupResult,
    clients: MemberEvidence,
    brokers: BrokerEvidence,
    breaks: BreakEvidence,
    deliveries: DeliveryResult,
    by_driver: DriverDecisions,
    sends: SendResult,
    offset_continuity: pl.DataFrame,
    unwatched: pl.DataFrame,
    stopped: Collection[tuple[str, str]],
) -> FindingEvidence:
    """Return the evidence for findings: what the passes and the steps between them found.

    ``offset_continuity`` and ``by_driver`` have rows of the day and of the lookback; ``stopped``: groups and topics
    that advanced before the window, and have not advanced since.
    """
    small, raw, limits, polled = context.small, context.raw, context.settings.findings, clients.polled
    begin, end, since = context.day.begin, context.day.end, context.day.since
    of_answers = odd_offsets_of_answers(small["consume_stats"], small["topic_stats"])
    of_day = of_answers.filter((pl.col("from_ts") >= begin) & (pl.col("from_ts") < end))
    refused = refused_snapshots(day.quarantine())
    runtime, snapshots = raw["broker_runtime"], raw["snapshot"]
    standstills = queues.offsets.standstills
    return FindingEvidence(
        cluster=context.day.cluster,
        recorded_until=recorded.recorded_until,
        heartbeat=polled.heartbeat,
        rebalance=small["rebalance"],
        topic_config=small["topic_config"],
        topic_stats=small["topic_stats"],
        offset_continuity=offset_continuity,
        queue_owner=clients.owners,
        possible_owners=clients.possible_owners,
        members=clients.members,
        unshared_groups=clients.unshared_groups,
        resets=breaks.resets,
        asked_resets=breaks.asked_resets,
        standstills=standstills,
        held_standstills=held_standstills(standstills, queues.refused_pulls, clients.owners, limits.stuck_s),
        falling_behind=falling_behind(queues.offsets.falling_behind, offset_continuity),
        never_consumed=_never_consumed(context, queues, clients),
        passed_commits=by_driver.committed_offset,
        stalled_flow=by_driver.flow.filter(pl.col("stalled_by").is_not_null()),
        outages=brokers.outages,
        unlisted=brokers.unlisted,
        master_changes=brokers.master_changes,
        name_server_outages=brokers.name_server_outages,
        full_disks=full_disks(runtime, raw["broker"]),
        stale_routes=by_driver.listed_route.filter(pl.col("judgement") == "differ"),
        failover_steps=by_driver.failover_step,
        config_drift=slave_config_drift(
            raw["topic_config"], raw["subscription_group"], snapshots, runtime, limits.config_drift_s
        ),
        blocked_locks=blocked_locks(by_driver.locks),
        rebalance_rounds=by_driver.rounds,
        replication=by_driver.replicated,
        delays=by_driver.delays,
        blocked_orders=blocked_orders(raw["pop_order"], snapshots, limits.stuck_s),
        clocks=client_clocks([], limits.clock_skew_s) if context.skew is None else context.skew.rows,
        refused_snapshots=refused.filter((pl.col("ts") >= since) & (pl.col("ts") < end)),
        uneven_shares=groups.uneven_shares,
        expired_pulls=groups.expired_pulls,
        exceptional_pulls=queues.pulls.exceptional_pulls,
        failovers=queues.pulls.failovers,
        disk_runs=queues.pulls.disk_runs,
        refused_runs=queues.pulls.refused_runs,
        new_starts=queues.pulls.new_starts,
        first_uses=queues.pulls.first_uses,
        advances=with_stopped(queues.advances, stopped),
        revive_lags=queues.offsets.revive_lags,
        refusals=queues.refusals,
        pulled_queues=queues.pulled_queues,
        repeated_deliveries=deliveries.repeated_deliveries,
        redelivered_messages=deliveries.redelivered_messages,
        max_reconsume_times=deliveries.max_reconsume_times,
        failed_tries=sends.failed_runs,
        failed_messages=deliveries.failed_messages,
        avoided_brokers=sends.avoided,
        retried_messages=by_driver.retried_message,
        returned_ends=queues.returned_ends,
        orphan_offsets=queues.orphan_offsets,
        odd_offsets=pl.concat([queues.offsets.odd_offsets, of_day]),
        activity=queues.activity,
        groups=frozenset[str]().union(
            raw["subscription_group"]["consumer_group"],
            clients.members["consumer_group"],
            queues.advances["consumer_group"],
            facts.groups_with_commits,
        ),
        polled=Polled(polled.strategies, unwatched, polled.vanished, polled.queues, polled.shown, polled.duplicates),
    )


def _never_consumed(context: ReplayContext, queues: QueueResult, clients: MemberEvidence) -> pl.DataFrame:
    """Return what groups never consumed, and the brokers that refuse their POP."""
    raw, small = context.raw, context.small
    # A file of a broker that keeps its offsets in RocksDB is old: only polls, or offsets that advance, prove absence.
    shown = len(small["recorder_event"]) + len(queues.advances) > 0
    copies = last_copies(small["snapshot"]).of_masters if shown else {}
    known = queues.offsets.status.select("consumer_group", "topic").unique()
    stuck_s = context.settings.findings.stuck_s
    found = never_consumed(known, clients.polled.heartbeat, clients.members, small["topic_stats"], copies, stuck_s)
    return with_refusals(found, raw["broker"], answers(small["assignment"]))
