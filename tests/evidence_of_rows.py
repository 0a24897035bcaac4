"""The evidence of findings, made of rows of tables: what the passes and steps of a day would hand over."""

from __future__ import annotations

import polars as pl

from mqreplay.decisions.pull_batch import pull_batches
from mqreplay.decisions.replication import replication
from mqreplay.evidence import client_clocks
from mqreplay.evidence.brokers.broker_outages import failovers_of_shard
from mqreplay.evidence.brokers.full_disks import full_disks
from mqreplay.evidence.brokers.listed_brokers import LISTED_CHANGES, SILENT, UNLISTED
from mqreplay.evidence.brokers.slave_configs import DRIFT
from mqreplay.evidence.brokers.slave_reads import slave_reads
from mqreplay.evidence.intervals import INSTANT
from mqreplay.evidence.lags.growing_lag import advances_of_shard, falling_behind_of_shard
from mqreplay.evidence.lags.revive_lags import revive_lags_of_shard
from mqreplay.evidence.members.ownership import pulled_queues_of_shard
from mqreplay.evidence.messages.deliveries import (
    max_reconsume_times_of_shard,
    redelivered_messages,
    repeated_deliveries,
)
from mqreplay.evidence.messages.failed_sends import AVOIDED, SENDS, failed_messages
from mqreplay.evidence.messages.pop_orders import blocked_orders
from mqreplay.evidence.offsets.break_causes import asked_resets
from mqreplay.evidence.offsets.odd_offsets import odd_offsets_of_answers, odd_offsets_of_shard
from mqreplay.evidence.offsets.offset_causes import offset_resets
from mqreplay.evidence.offsets.queue_ends import queue_ends
from mqreplay.evidence.offsets.standstills import held_standstills, refused_pulls_of_shard
from mqreplay.findings.brokers import refusals_of_shard
from mqreplay.findings.clocks import activity_of_shard
from mqreplay.findings.expired_unread import expired_reads_of_shard
from mqreplay.findings.finding_evidence import FindingEvidence
from mqreplay.findings.limits import Limits
from mqreplay.findings.locks import blocked_locks
from mqreplay.findings.messages import returned_ends_of_shard
from mqreplay.findings.pulls import exceptional_pulls_of_shard
from mqreplay.findings.refused import refused_runs_of_shard
from mqreplay.findings.sends import send_runs
from mqreplay.findings.shape import SCHEMA
from mqreplay.findings.shares import uneven_shares_of_shard
from mqreplay.findings.snapshots import refused_snapshots
from mqreplay.findings.starts import first_uses_of_shard, new_starts_of_shard
from mqreplay.findings.topics import orphans_of_shard
from mqreplay.replay.evidence_steps import listener_frames
from silver_rows import rows

LOST_S = 45
LIMITS = Limits(
    same_cause_gap_s=120,
    slave_pull_warn_s=10,
    rebalance_interval_s=20,
    heartbeat_interval_s=30,
    dispute_s=45,
    idle_s=40,
    idle_rebalances=2,
    lost_s=LOST_S,
    stuck_s=60,
    behind_messages=100,
    down_s=10,
    failed_over_s=60,
    duplicate_warn_messages=0,
    retry_warn_messages=5,
    start_messages=1000,
    refused_s=10,
    lock_blocked_s=80,
    failed_sends=5,
    storm_rebalances=5,
    retry_gap_s=7200,
    late_retry_s=60,
    stale_slave_s=150,
    replication_lag_s=30,
    unflushed_bytes=65_536,
    disk_catchup_s=60,
    reset_reach_s=60,
)
GROUP = {"consumer_group": pl.String}
SPAN = {"from_ts": INSTANT, "to_ts": INSTANT}
MEMBERS = GROUP | {"client_id": pl.String, "session": pl.Int64} | SPAN
MEMBERS |= {"left": pl.Boolean, "watched": pl.Boolean, "beat": pl.Boolean, "dropped": pl.String}
STANDSTILL = {"offset": pl.Int64, "since_ts": INSTANT} | SPAN | {"waiting": pl.Int64, "arrived": pl.Int64}
STANDSTILLS = GROUP | {"topic": pl.String, "broker_name": pl.String, "queue_id": pl.Int32}
STANDSTILLS |= {"spans": pl.List(pl.Struct(STANDSTILL))}
NEVER = {name: of for name, of in STANDSTILLS.items() if name != "spans"} | SPAN
NEVER |= {"waiting": pl.Int64, "never": pl.Boolean, "refused_by": pl.String}
OUTAGES = {"broker_name": pl.String, "broker_id": pl.Int64} | SPAN
OUTAGES |= {"errors": pl.Int64, "polled": pl.Boolean, "keys": SCHEMA["evidence"]}


def disk_runs_of(pull: pl.DataFrame, suggestions: pl.DataFrame, broker: pl.DataFrame) -> pl.DataFrame:
    return pull_batches(pull, suggestions, broker, pl.lit(True), LIMITS.same_cause_gap_s).disk_runs


def evidence_of(**silver: list[dict]) -> FindingEvidence:
    """FindingEvidence made of rows of silver and gold tables, by their names; nothing of all others."""

    def table(name: str, layer: str = "silver") -> pl.DataFrame:
        return rows(f"{layer}.{name}", {}, silver.get(name, []))

    unshared = pl.DataFrame(schema=GROUP)
    pull, route, consume = table("pull"), table("pull_route", "gold"), table("consume")
    clocks = pl.DataFrame(silver.get("clocks", []), client_clocks.CLOCK_SCHEMA)
    standstills, owners = pl.DataFrame(silver.get("standstills", []), STANDSTILLS), table("queue_owner", "gold")
    return FindingEvidence(
        cluster="c",
        recorded_until=None,
        client_error=table("client_error"),
        heartbeat=table("heartbeat"),
        rebalance=table("rebalance"),
        topic_config=table("topic_config"),
        topic_stats=table("topic_stats"),
        offset_continuity=table("offset_continuity", "gold"),
        queue_owner=owners,
        members=pl.DataFrame(silver.get("members", []), MEMBERS),
        possible_owners=owners,
        unshared_groups=unshared,
        resets=offset_resets(table("server_request"), pull),
        asked_resets=asked_resets(table("server_request")),
        standstills=standstills,
        falling_behind=falling_behind_of_shard(table("offset_change"), queue_ends(pull, table("topic_stats")), 180),
        never_consumed=pl.DataFrame(schema=NEVER),
        held_standstills=held_standstills(standstills, refused_pulls_of_shard(pull), owners, LIMITS.stuck_s),
        passed_commits=table("committed_offset", "gold"),
        stalled_flow=table("flow_control", "gold"),
        expired_reads=expired_reads_of_shard(pull),
        listener_frames=listener_frames(table("assignment")),
        outages=pl.DataFrame(silver.get("outages", []), OUTAGES),
        unlisted=pl.DataFrame(silver.get("unlisted", []), UNLISTED),
        master_changes=pl.DataFrame(silver.get("master_changes", []), LISTED_CHANGES),
        name_server_outages=pl.DataFrame(silver.get("name_server_outages", []), SILENT),
        full_disks=full_disks(table("broker_runtime"), table("broker")),
        stale_routes=table("listed_route", "gold"),
        expired_pulls=table("rebalance_step", "gold"),
        failover_steps=table("failover_step", "gold"),
        config_drift=pl.DataFrame(silver.get("config_drift", []), DRIFT),
        blocked_locks=blocked_locks(table("queue_lock", "gold").with_columns(pl.lit(0, pl.Int64).alias("grants"))),
        rebalance_rounds=table("rebalance_round", "gold").with_columns(pl.lit(0, pl.Int64).alias("cycles")),
        replication=replication(table("broker_runtime"), table("broker"), table("ha_status"), LIMITS.replication_lag_s),
        delays=table("delay_progress", "gold").with_columns(pl.lit(value=False).alias("is_stated")),
        blocked_orders=blocked_orders(table("pop_order"), table("snapshot"), 60),
        clocks=clocks,
        refused_snapshots=refused_snapshots(table("quarantine", "bronze")),
        uneven_shares=uneven_shares_of_shard(table("allocation", "gold"), 2),
        exceptional_pulls=exceptional_pulls_of_shard(
            slave_reads(route, table("slave_suggestion", "gold"), pull, table("broker")), LIMITS.same_cause_gap_s
        ),
        failovers=failovers_of_shard(route),
        disk_runs=disk_runs_of(pull, table("slave_suggestion", "gold"), table("broker")),
        refused_runs=refused_runs_of_shard(table("pull_answer", "gold"), LIMITS.same_cause_gap_s),
        new_starts=new_starts_of_shard(table("queue_start", "gold")),
        first_uses=first_uses_of_shard(pull),
        advances=advances_of_shard(table("offset_change"), table("offset_commit")),
        revive_lags=revive_lags_of_shard(table("offset_change"), table("topic_stats"), {}, 60),
        refusals=refusals_of_shard(pull, LIMITS.same_cause_gap_s),
        pulled_queues=pulled_queues_of_shard(pull),
        retried_messages=table("retried_message", "gold"),
        repeated_deliveries=repeated_deliveries(consume, unshared),
        redelivered_messages=redelivered_messages(consume),
        max_reconsume_times=max_reconsume_times_of_shard(consume),
        failed_tries=send_runs(pl.DataFrame(schema=SENDS), LIMITS.same_cause_gap_s),
        failed_messages=send_runs(failed_messages(table("produce")), LIMITS.same_cause_gap_s),
        avoided_brokers=pl.DataFrame(schema=AVOIDED),
        returned_ends=returned_ends_of_shard(pull),
        orphan_offsets=orphans_of_shard(table("offset_change"), table("topic_config")),
        odd_offsets=pl.concat(
            [
                odd_offsets_of_shard(table("offset_change"), queue_ends(pull, table("topic_stats"))),
                odd_offsets_of_answers(table("consume_stats"), table("topic_stats")),
            ]
        ),
        activity=activity_of_shard(clocks, pull, table("offset_commit")),
    )
