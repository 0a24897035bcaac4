"""The evidence that the findings of a day are made of."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, field

import polars as pl

from mqreplay.decisions.replication import Replication


@dataclass(frozen=True)
class Polled:
    """Frames of clients that no hook records, by what polls show; None where nothing was polled."""

    strategies: pl.DataFrame | None = None  # strategy_sides
    unwatched: pl.DataFrame | None = None
    vanished: pl.DataFrame | None = None
    queues: pl.DataFrame | None = None  # routed_queues
    shown: pl.DataFrame | None = None  # consumer_group, table_name: tables with what polls show of a group
    duplicates: pl.DataFrame | None = None  # duplicate_clients.py
    alternations: pl.DataFrame | None = None  # conflicts.alternating_subscriptions


@dataclass(frozen=True)
class FindingEvidence:
    """What the findings of a day are made of; instants are by the recorder's clock.

    Every frame is of one cluster, of the day and its lookback, and small. Those of the last part have the rows that
    the functions named beside them made of all shards.
    """

    cluster: str
    recorded_until: dt.datetime | None  # the last instant by the recorder's own clock

    # Tables of silver and gold by their names.
    client_error: pl.DataFrame
    heartbeat: pl.DataFrame
    rebalance: pl.DataFrame
    topic_config: pl.DataFrame
    topic_stats: pl.DataFrame
    offset_continuity: pl.DataFrame
    queue_owner: pl.DataFrame  # intervals as they are, not cut at midnight

    # Frames of evidence/.
    members: pl.DataFrame  # membership
    possible_owners: pl.DataFrame  # queue_owner, each interval as long as it may have been
    unshared_groups: pl.DataFrame
    retried_messages: pl.DataFrame  # rows of gold.retried_message
    resets: pl.DataFrame  # offset_resets
    asked_resets: pl.DataFrame
    standstills: pl.DataFrame  # standstills.standstill_spans
    held_standstills: pl.DataFrame
    falling_behind: pl.DataFrame
    never_consumed: pl.DataFrame  # with never and refused_by, see findings/lag.py
    passed_commits: pl.DataFrame  # rows of gold.committed_offset
    stalled_flow: pl.DataFrame  # rows of gold.flow_control that are part of a stall
    listener_frames: pl.DataFrame  # consumer_group, client_id, frames: of the last thread dump of each client
    outages: pl.DataFrame  # broker_outages
    unlisted: pl.DataFrame  # listed_brokers.unlisted_brokers, for long
    master_changes: pl.DataFrame  # listed_brokers.master_changes
    name_server_outages: pl.DataFrame  # listed_brokers.name_server_outages
    full_disks: pl.DataFrame
    expired_pulls: pl.DataFrame  # rows of gold.rebalance_step with expired queues
    stale_routes: pl.DataFrame  # rows of gold.listed_route that differ
    failover_steps: pl.DataFrame  # failover_step.failover_steps
    config_drift: pl.DataFrame  # slave_configs
    blocked_locks: pl.DataFrame  # findings/locks.py
    rebalance_rounds: pl.DataFrame  # rebalance_round, with cycles
    replication: Replication
    delays: pl.DataFrame  # gold.delay_progress, with readings that agree
    blocked_orders: pl.DataFrame  # pop_orders
    clocks: pl.DataFrame  # client_clocks
    refused_snapshots: pl.DataFrame  # findings/snapshots.py

    # Rows of all shards.
    uneven_shares: pl.DataFrame  # uneven_shares_of_shard
    exceptional_pulls: pl.DataFrame  # exceptional_pulls_of_shard
    failovers: pl.DataFrame  # failovers_of_shard
    disk_runs: pl.DataFrame  # pull_batches
    refused_runs: pl.DataFrame  # refused_runs_of_shard
    new_starts: pl.DataFrame  # new_starts_of_shard
    first_uses: pl.DataFrame  # first_uses_of_shard
    advances: pl.DataFrame  # advances_of_shard
    revive_lags: pl.DataFrame  # revive_lags_of_shard
    expired_reads: pl.DataFrame  # expired_reads_of_shard
    refusals: pl.DataFrame  # refusals_of_shard
    pulled_queues: pl.DataFrame  # pulled_queues_of_shard
    repeated_deliveries: pl.DataFrame
    redelivered_messages: pl.DataFrame
    max_reconsume_times: pl.DataFrame  # max_reconsume_times_of_shard
    failed_tries: pl.DataFrame  # send_runs of failed_tries
    failed_messages: pl.DataFrame  # send_runs of failed_messages
    avoided_brokers: pl.DataFrame
    returned_ends: pl.DataFrame  # returned_ends_of_shard
    orphan_offsets: pl.DataFrame  # orphans_of_shard
    odd_offsets: pl.DataFrame  # odd_offsets_of_shard, odd_offsets_of_answers
    activity: pl.DataFrame  # activity_of_shard

    groups: frozenset[str] = frozenset()  # all known consumer groups
    stated_groups: frozenset[str] = frozenset()  # groups whose offsets only answers to GET_CONSUME_STATS show
    masterless: pl.DataFrame | None = None  # listed_brokers.masterless_names
    lost: pl.DataFrame | None = None  # listed_brokers.lost_brokers
    elections: pl.DataFrame | None = None  # elections.py
    broker_event: pl.DataFrame | None = None  # the silver table
    consume_stats: pl.DataFrame | None = None  # the silver table
    polled: Polled = field(default_factory=lambda: Polled())
