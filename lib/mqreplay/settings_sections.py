"""Sections of the settings: one dataclass a section, one field a key, and what the documentation says about each key.

docs/settings.md and conf/local.toml are generated from these records by tools/docs/settings.py.
"""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass, field
from typing import Any

RECORD = "record"  # the key of a SettingRecord in the metadata of its field
DAY_MS = 86_400_000
WEEK_S = 604_800


@dataclass(frozen=True)
class SettingRecord:
    """The documentation and the bounds of one setting.

    ``meaning`` says in one line what the value is, and the reason for the default. ``change`` says when to change it.
    ``least`` and ``most`` are the bounds of a number. Spark fails beyond them, or nothing is found.
    """

    unit: str
    meaning: str
    change: str
    least: float = 0
    most: float = 0

    def with_unit(self, value: object) -> str:
        """Return a value of this setting as TOML in backticks, with its unit.

        >>> SettingRecord("row", "", "").with_unit(1000), SettingRecord("s", "", "").with_unit(60)
        ('`1000` rows', '`60` s')
        """
        if not self.unit or self.unit == "share":
            return f"`{json.dumps(value)}`"
        counted = self.unit not in ("s", "ms", "min", "MiB") and value != 1
        plural = "" if not counted else "es" if self.unit.endswith("s") else "s"
        return f"`{json.dumps(value)}` {self.unit}{plural}"


def _setting(default: Any, unit: str, meaning: str, change: str, least: float = 0, most: float = 0) -> Any:
    """Return the dataclass field of a setting."""
    return field(default=default, metadata={RECORD: SettingRecord(unit, meaning, change, least, most)})


def _table(meaning: str, change: str) -> dict[str, SettingRecord]:
    """Return the metadata of a field that holds a table of TOML."""
    return {RECORD: SettingRecord("", meaning, change)}


def _seconds(default: int, meaning: str, change: str) -> Any:
    return _setting(default, "s", meaning, change, most=WEEK_S)


def _days(meaning: str, change: str) -> Any:
    return _setting(0, "day", meaning, change, most=36_500)


def record_of(section: Any, key: str) -> SettingRecord:
    """Return the record of the setting ``key`` of a section, a class or an instance of it."""
    (found,) = [each for each in dataclasses.fields(section) if each.name == key]
    record: SettingRecord = found.metadata[RECORD]
    return record


@dataclass(frozen=True)
class SparkSettings:
    """The Spark session. `--engine local` does not use this section."""

    master: str = _setting(
        "",
        "",
        "Spark master URL; empty: the one of spark-submit, else local[*]",
        "To run on a Spark cluster without spark-submit, or on fewer cores, such as `local[2]`.",
    )
    driver_memory: str = _setting(
        "",
        "",
        "heap of the driver; empty: the one of spark-submit, else 3g, enough for a night of a few clusters",
        "When a run ends with `memory is short`, or a night has more than a few million pulls.",
    )
    extra: dict[str, str] = field(
        default_factory=dict,
        metadata=_table(
            'other Spark settings, as "spark.x" = "y": text, a number, true or false',
            "To set executors, paths or logging of a cluster. Write each name in quotes.",
        ),
    )


@dataclass(frozen=True)
class LocalSettings:
    """The processes of `--engine local`."""

    processes: int = _setting(
        0,
        "process",
        "worker processes; 0: one per core; 1: no workers, which suits a very small night",
        "To leave cores or memory to other programs on the same machine.",
        most=10_000,
    )


@dataclass(frozen=True)
class StorageSettings:
    """Access to object stores and HDFS, for recordings and warehouses by URI."""

    options: dict[str, str] = field(
        default_factory=dict,
        metadata=_table(
            "how to reach the store, as aws_endpoint_url = \"y\": the names of AWS's, Azure's and Google's own "
            "variables in lower case",
            "To use a store that neither the environment nor Spark's settings (spark.hadoop.fs.s3a.*) describe. Keep "
            "secrets in the environment.",
        ),
    )
    timeout_s: int = _setting(
        30,
        "s",
        "longest time of one request; a request without an answer is tried again",
        "When a slow link or large files need longer, or to learn earlier that a store does not answer.",
        least=1,
        most=3600,
    )
    retries: int = _setting(
        3,
        "",
        "how often a request that failed is tried again",
        "When a store often throttles requests.",
        most=100,
    )
    lease_s: int = _setting(
        60,
        "s",
        "a run that has not renewed its lock on a remote warehouse for so long counts as dead; alive, it renews it "
        "three times in that time",
        "To raise it where the network may be interrupted for longer; to lower it to continue sooner after a crash.",
        least=3,
        most=3600,
    )


@dataclass(frozen=True)
class IngestSettings:
    """Limits for reading a recording."""

    quarantine_rows: int = _setting(
        1000,
        "row",
        "refused rows of a file that bronze.quarantine keeps; one more row has the count of the others",
        "To see more of the rows of a damaged file.",
        most=1_000_000,
    )
    refused_share: float = _setting(
        0.5,
        "share",
        "if a larger share of a run's rows is refused, it ends with status 2: the folder is not a recording",
        "To load the readable rows of a badly damaged recording.",
        most=1,
    )
    follow_links: bool = _setting(
        False,
        "",
        "whether to follow links that lead out of the recording; a link may bring in a foreign file",
        "When the recording contains links to folders that you trust.",
    )
    snapshot_mb: int = _setting(
        256,
        "MiB",
        "largest snapshot file that is read; 9.6 million offsets take 144 MiB",
        "To refuse large files earlier on a machine with little memory.",
        least=1,
        most=256,
    )
    forget_missing_files: bool = _setting(
        True,
        "",
        "whether rows of files that are no longer in the recording are removed",
        "Set it to false if old files are deleted from a folder that is ingested again.",
    )

    @property
    def snapshot_bytes(self) -> int:
        """Bytes of the largest snapshot file that is read."""
        return self.snapshot_mb * 1024 * 1024


@dataclass(frozen=True)
class ReplaySettings:
    """Time bounds of the evidence for a decision."""

    lookback_minutes: int = _setting(
        60,
        "min",
        "evidence before midnight that the replay of a day reads; a client polls routes every 30 s",
        "When clients poll routes less often than every hour (pollNameServerInterval).",
        most=10_080,
    )
    route_slack_ms: int = _setting(
        1000,
        "ms",
        "time in which a client may still use its old route: it takes a lock before it stores a new one",
        "When many pulls differ within seconds of a route change.",
        most=DAY_MS,
    )
    poll_slack_ms: int = _setting(
        0,
        "ms",
        "largest difference between the time of a poll and the time at which the broker read its figures",
        "When the poller is slow or far from the brokers. Larger values give more undetermined suggestions.",
        most=DAY_MS,
    )
    reset_reach_s: int = _seconds(
        60,
        "longest time until a reset shows in a snapshot: commit 10 s, copy of a slave 10 to 60 s",
        "When slaves copy offsets less often than every minute.",
    )
    status_window_s: int = _setting(
        300,
        "s",
        "length of a row of gold.group_status; Burrow's rules need ten commits",
        "For a finer or coarser status. Shorter windows give more rows.",
        least=1,
        most=86_400,
    )


@dataclass(frozen=True)
class FindingSettings:
    """Thresholds of the findings."""

    same_cause_gap_s: int = _seconds(
        120,
        "events with at most this time between them are one finding; name servers drop a broker after 120 s",
        "Raise it if one problem gives many findings, lower it if one finding joins several problems.",
    )
    slave_pull_warn_s: int = _seconds(
        10,
        "shorter reads from a slave are info: a new group on an old topic starts with some",
        "Raise it if groups often start on old topics.",
    )
    rebalance_interval_s: int = _seconds(
        20,
        "rocketmq.client.rebalance.waitInterval of the clients",
        "When the clients set another interval.",
    )
    heartbeat_interval_s: int = _seconds(
        30,
        "heartbeatBrokerInterval of the clients",
        "When the clients set another interval.",
    )
    dispute_s: int = _seconds(
        45,
        "shorter disagreements of members are normal: two rebalance intervals and 5 s between polls",
        "Set it to about twice rebalance_interval_s.",
    )
    idle_s: int = _seconds(
        40,
        "a consumer without a queue for longer is idle: two rebalance intervals",
        "Set it to twice rebalance_interval_s.",
    )
    idle_rebalances: int = _setting(
        2,
        "rebalance",
        "a consumer that gets no queue in this number of rebalances is idle sooner: after one interval and 5 s",
        "To report only consumers that stay without a queue for longer, as during rolling restarts.",
        least=1,
        most=10_000,
    )
    uneven_queues: int = _setting(
        2,
        "queue",
        "queues above a fair share that make an allocation uneven; one more is normal",
        "Raise it for strategies that share unevenly on purpose.",
        least=1,
        most=100_000,
    )
    silent_s: int = _seconds(
        90,
        "longer silence ends the session of a client: three heartbeats",
        "Set it to three times heartbeat_interval_s.",
    )
    lost_s: int = _seconds(
        45,
        "a client that is silent for longer and did not unregister is lost: one and a half heartbeats",
        "Set it to one and a half times heartbeat_interval_s.",
    )
    pull_gap_s: int = _seconds(
        35,
        "a longer silence ends the ownership of a queue if another client pulls it; a pull waits 15 to 30 s",
        "When consumers set longer pull timeouts (brokerSuspendMaxTimeMillis).",
    )
    stuck_s: int = _seconds(
        60,
        "a queue with messages whose offset does not advance for longer is stuck",
        "When the normal processing of one message takes longer.",
    )
    down_s: int = _seconds(
        10,
        "longer silence of a polled broker is an outage; a long pause of a JVM is shorter",
        "When polls are more than 5 s apart, or long pauses are normal.",
    )
    unseen_down_s: int = _seconds(
        30,
        "the same for a broker that is not polled: a client sends a heartbeat every 30 s",
        "Set it to heartbeat_interval_s.",
    )
    failed_over_s: int = _seconds(
        60,
        "time after an outage in which its effects are counted; clients return to a master within 45 s",
        "When clients poll routes or send heartbeats less often than by default.",
    )
    duplicate_warn_messages: int = _setting(
        20,
        "message",
        "messages of a queue that changed hands that may be delivered twice unreported; a client has 20 threads",
        "Set it to consumeThreadMax x consumeMessageBatchMaxSize of your consumers, if that is more.",
        most=1_000_000_000,
    )
    retry_warn_messages: int = _setting(
        5,
        "message",
        "fewer messages sent back for retry are info",
        "Raise it for groups whose normal processing uses retries.",
        most=1_000_000_000,
    )
    retry_gap_s: int = _seconds(
        7200,
        "retries of a group with at most this time between them are one finding; the longest delay level is 2 h",
        "When messageDelayLevel of the brokers has longer levels.",
    )
    clock_skew_s: int = _seconds(
        60,
        "a client clock that is off by more is corrected and reported; smaller differences are noise",
        "Raise it if copies of offsets are minutes apart.",
    )
    stale_slave_s: int = _seconds(
        150,
        "age at which a slave's offsets are stale; slaves copy every 10 s in 4.9, every minute in 5.x",
        "When slaves copy offsets less often.",
    )


@dataclass(frozen=True)
class WatchSettings:
    """The window of `nightly --watch`."""

    lookback_minutes: int = _setting(
        30,
        "min",
        "evidence that each round judges; a recorder asks for the rarest figures every 5 to 10 min",
        "Lower it if a round takes longer than its interval. Raise it if findings close and open again.",
        least=15,
        most=1440,
    )


@dataclass(frozen=True)
class StrategySettings:
    """Parameters of allocation strategies that only the code of the clients has. No recording contains them."""

    virtual_node_cnt: int = _setting(
        10,
        "node",
        "virtual nodes of CONSISTENT_HASH; 10 is RocketMQ's default",
        "When the clients give another number to AllocateMessageQueueConsistentHash.",
        least=1,
        most=10_000,
    )
    groups: dict[str, dict[str, Any]] = field(
        default_factory=dict,
        metadata=_table(
            "parameters by consumer group, see conf/sample.toml and docs/settings.md",
            "When a group uses CONFIG, MACHINE_ROOM, MACHINE_ROOM_NEARBY or another number of virtual nodes.",
        ),
    )


@dataclass(frozen=True)
class MaintainSettings:
    """What `mqreplay maintain` keeps. Days are counted back from the last recorded day of each cluster."""

    keep_bronze_days: int = _days(
        "days of the ledger of files and of refused rows that are kept; 0: all",
        "When the ledger grows by many snapshot files each night.",
    )
    keep_silver_days: int = _days(
        "days of recorded rows that are kept; 0: all",
        "To limit the disk space: silver has most of the rows.",
    )
    keep_gold_days: int = _days(
        "days of judgements and findings that are kept; 0: all",
        "When findings of old nights are no longer needed.",
    )
    keep_versions_days: int = _setting(
        7,
        "day",
        "age at which files of earlier versions of the tables are removed; a reader may still use younger ones",
        "When queries or copies of the warehouse take longer than a week.",
        least=7,
        most=36_500,
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
