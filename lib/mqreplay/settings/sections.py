"""Sections of the settings: one dataclass a section, one field a key, with its default, its unit and its bounds.

docs/settings.md and conf/local.toml are generated from them, and from the texts in tools/docs/settings.toml.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any

GROUP_SEVERITIES = "severity"
# Thresholds that a group may have of its own: its findings depend on them after the replay.
GROUP_THRESHOLDS = (
    "stuck_s",
    "behind_messages",
    "slave_pull_warn_s",
    "dispute_s",
    "idle_s",
    "idle_rebalances",
    "duplicate_warn_messages",
    "retry_warn_messages",
    "start_messages",
    "refused_s",
    "lock_blocked_s",
    "storm_rebalances",
    "late_retry_s",
)
# Patterns of client ids or broker names are the shell's; a queue is written topic/broker_name/queue_id.
GROUP_KEYS: dict[str, str] = {
    "queues": "a table: pattern of client ids = list of queues, topic/broker_name/queue_id",
    "machine_rooms": "a list of rooms",
    "client_rooms": "a table: pattern of client ids = room",
    "broker_rooms": "a table: pattern of broker names = room",
    "nearby_strategy": "the name of the strategy inside a room, such as AVG",
    "virtual_node_cnt": "a number above 0, 10000 at most",
}
RECORD = "record"  # the key of a SettingRecord in the metadata of its field
DAY_MS = 86_400_000
WEEK_S = 604_800


@dataclass(frozen=True)
class SettingRecord:
    """The unit of a setting, and the bounds of a number: beyond them Spark fails, or nothing is found."""

    unit: str = ""
    least: float = 0
    most: float = 0


def setting(default: Any, unit: str, least: float = 0, most: float = 0) -> Any:
    """Return the dataclass field of a setting with a unit or bounds."""
    return field(default=default, metadata={RECORD: SettingRecord(unit, least, most)})


def seconds(default: int) -> Any:
    """Return the dataclass field of a setting in seconds."""
    return setting(default, "s", most=WEEK_S)


def days() -> Any:
    """Return the dataclass field of a number of days; 0: no bound."""
    return setting(0, "day", most=36_500)


def record_of(section: Any, key: str) -> SettingRecord:
    """Return the record of the setting ``key`` of a section, a class or an instance of it."""
    (named,) = [each for each in dataclasses.fields(section) if each.name == key]
    record: SettingRecord = named.metadata.get(RECORD, SettingRecord())
    return record


@dataclass(frozen=True)
class SparkSettings:
    """The Spark session. The local engine does not use this section."""

    master: str = ""
    driver_memory: str = ""
    clusters_at_once: int = setting(2, "cluster", least=1, most=100)
    extra: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class LocalSettings:
    """The processes of the local engine."""

    processes: int = setting(0, "process", most=10_000)


@dataclass(frozen=True)
class NightlySettings:
    """What `nightly` and `ingest` read if the command names no recording."""

    recordings: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class ReportSettings:
    """What the reports and the outcome of a run show. The tables keep all days."""

    days: int = setting(7, "day", least=1, most=366)
    nights: int = setting(14, "day", least=1, most=366)
    language: str = "en"


@dataclass(frozen=True)
class StorageSettings:
    """Access to object stores and HDFS, for recordings and warehouses by URI."""

    options: dict[str, str] = field(default_factory=dict)
    timeout_s: int = setting(30, "s", least=1, most=3600)
    retries: int = setting(3, "", most=100)
    lease_s: int = setting(60, "s", least=3, most=3600)


@dataclass(frozen=True)
class IngestSettings:
    """Limits for reading a recording."""

    quarantine_rows: int = setting(1000, "row", most=1_000_000)
    refused_share: float = setting(0.5, "share", most=1)
    follow_links: bool = False
    snapshot_mb: int = setting(256, "MiB", least=1, most=256)
    forget_missing_files: bool = True

    @property
    def snapshot_bytes(self) -> int:
        """Bytes of the largest snapshot file that is read."""
        return self.snapshot_mb * 1024 * 1024


@dataclass(frozen=True)
class ReplaySettings:
    """Time bounds of the evidence for a decision."""

    lookback_minutes: int = setting(60, "min", most=10_080)
    route_slack_ms: int = setting(1000, "ms", most=DAY_MS)
    poll_slack_ms: int = setting(0, "ms", most=DAY_MS)
    reset_reach_s: int = seconds(60)
    status_window_s: int = setting(300, "s", least=1, most=86_400)


@dataclass(frozen=True)
class WatchSettings:
    """The window of `nightly --watch`."""

    lookback_minutes: int = setting(30, "min", least=15, most=1440)


@dataclass(frozen=True)
class StrategySettings:
    """Parameters of allocation strategies that only the code of the clients has. No recording contains them."""

    virtual_node_cnt: int = setting(10, "node", least=1, most=10_000)
    groups: dict[str, dict[str, Any]] = field(default_factory=dict)


@dataclass(frozen=True)
class MaintainSettings:
    """What `mqreplay maintain` keeps. Days are counted back from the last recorded day of each cluster."""

    keep_bronze_days: int = days()
    keep_silver_days: int = days()
    keep_gold_days: int = days()
    keep_versions_days: int = setting(7, "day", least=7, most=36_500)


@dataclass(frozen=True)
class FindingSettings:
    """Thresholds of the findings."""

    same_cause_gap_s: int = seconds(120)
    slave_pull_warn_s: int = seconds(10)
    rebalance_interval_s: int = seconds(20)
    heartbeat_interval_s: int = seconds(30)
    dispute_s: int = seconds(45)
    idle_s: int = seconds(40)
    idle_rebalances: int = setting(2, "rebalance", least=1, most=10_000)
    uneven_queues: int = setting(2, "queue", least=1, most=100_000)
    silent_s: int = seconds(90)
    lost_s: int = seconds(45)
    pull_gap_s: int = seconds(35)
    stuck_s: int = seconds(60)
    behind_s: int = seconds(120)
    behind_messages: int = setting(100, "message", most=1_000_000_000)
    revive_lag_s: int = seconds(60)
    down_s: int = seconds(10)
    unseen_down_s: int = seconds(30)
    failed_over_s: int = seconds(60)
    duplicate_warn_messages: int = setting(20, "message", most=1_000_000_000)
    refused_s: int = seconds(45)
    lock_blocked_s: int = seconds(80)
    failed_sends: int = setting(5, "message", most=1_000_000_000)
    avoided_s: int = seconds(10)
    storm_rebalances: int = setting(5, "rebalance", least=2, most=1_000_000)
    start_messages: int = setting(1000, "message", most=1_000_000_000)
    retry_warn_messages: int = setting(5, "message", most=1_000_000_000)
    retry_gap_s: int = seconds(7200)
    late_retry_s: int = seconds(60)
    clock_skew_s: int = seconds(60)
    stale_slave_s: int = seconds(150)
    disk_catchup_s: int = seconds(60)
    replication_lag_s: int = seconds(30)
    unflushed_bytes: int = setting(65_536, "byte", most=1_000_000_000_000)
    config_drift_s: int = seconds(300)
    groups: dict[str, dict[str, Any]] = field(default_factory=dict)


@dataclass(frozen=True)
class NotifySettings:
    """Messages about findings, of `nightly` and of `nightly --watch`. --notify on the command line has precedence."""

    urls: list[str] = field(default_factory=list)
    file: str = ""
    severity: str = "warning"
    messages: int = setting(20, "message", least=1, most=1000)
    page: str = ""
