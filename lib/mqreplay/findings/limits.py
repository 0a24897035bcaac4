"""The limits of findings, from the settings."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Limits of findings, as the configuration names them: seconds (``_s``) and counts."""

    same_cause_gap_s: int
    slave_pull_warn_s: int
    rebalance_interval_s: int
    heartbeat_interval_s: int
    dispute_s: int
    idle_s: int
    idle_rebalances: int
    lost_s: int
    stuck_s: int
    behind_messages: int
    down_s: int
    failed_over_s: int
    duplicate_warn_messages: int
    retry_warn_messages: int
    start_messages: int
    refused_s: int
    lock_blocked_s: int
    failed_sends: int
    storm_rebalances: int
    retry_gap_s: int
    late_retry_s: int
    stale_slave_s: int
    replication_lag_s: int
    unflushed_bytes: int
    disk_catchup_s: int
    reset_reach_s: int
