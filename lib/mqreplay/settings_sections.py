"""Sections of the settings: one dataclass a section, one field a key, and what the documentation says about each key.

docs/settings.md and conf/local.toml are generated from these records by tools/docs/settings.py.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from mqreplay.settings_records import DAY_MS, days, seconds, setting, table


@dataclass(frozen=True)
class SparkSettings:
    """The Spark session. The local engine does not use this section."""

    master: str = setting(
        "",
        "",
        "Spark master URL, or sc://HOST:PORT of a Spark Connect server; empty: the one of spark-submit, else local[*]",
        "To run on a Spark cluster without spark-submit, or on fewer cores, such as `local[2]`. With a master, "
        "runs take the Spark engine.",
    )
    driver_memory: str = setting(
        "",
        "",
        "heap of the driver; empty: the one of spark-submit, else 2g, enough for a night of a few clusters",
        "When a run ends with `memory is short`, or a night has more than a few million pulls.",
    )
    extra: dict[str, str] = field(
        default_factory=dict,
        metadata=table(
            'other Spark settings, as "spark.x" = "y": text, a number, true or false',
            "To set executors, paths or logging of a cluster. Write each name in quotes.",
        ),
    )


@dataclass(frozen=True)
class LocalSettings:
    """The processes of the local engine."""

    processes: int = setting(
        0,
        "process",
        "worker processes; 0: one per core; 1: no workers, which suits a very small night",
        "To leave cores or memory to other programs on the same machine.",
        most=10_000,
    )


@dataclass(frozen=True)
class NightlySettings:
    """What `nightly` and `ingest` read if the command names no recording."""

    recordings: list[str] = field(
        default_factory=list,
        metadata=table(
            "folders of recordings; patterns such as `recordings/*/2026-11-24` are allowed",
            "To run many clusters without naming them in the command.",
        ),
    )


@dataclass(frozen=True)
class ReportSettings:
    """What the reports and the outcome of a run show. The tables keep all days."""

    days: int = setting(
        7,
        "day",
        "last recorded days of a cluster that its report shows",
        "To see the last night alone, set it to 2: a night spans midnight. More days take longer.",
        least=1,
        most=366,
    )
    nights: int = setting(
        14,
        "day",
        "last days on the overview of several clusters",
        "To see more or fewer nights at once.",
        least=1,
        most=366,
    )
    language: str = setting(
        "en",
        "",
        "language of the reports and of what a run prints: en, or zh (Chinese); the tables are in English",
        "For readers of Chinese. The option --lang overrides it.",
    )


@dataclass(frozen=True)
class StorageSettings:
    """Access to object stores and HDFS, for recordings and warehouses by URI."""

    options: dict[str, str] = field(
        default_factory=dict,
        metadata=table(
            "how to reach the store, as aws_endpoint_url = \"y\": the names of AWS's, Azure's and Google's own "
            "variables in lower case",
            "To use a store that neither the environment nor Spark's settings (spark.hadoop.fs.s3a.*) describe. Keep "
            "secrets in the environment.",
        ),
    )
    timeout_s: int = setting(
        30,
        "s",
        "longest time of one request; a request without an answer is tried again",
        "When a slow link or large files need longer, or to learn earlier that a store does not answer.",
        least=1,
        most=3600,
    )
    retries: int = setting(
        3,
        "",
        "how often a request that failed is tried again",
        "When a store often throttles requests.",
        most=100,
    )
    lease_s: int = setting(
        60,
        "s",
        "a run that has not renewed its lock on a remote warehouse for so long counts as dead; alive, it renews it "
        "six times in that time",
        "To raise it where the network may be interrupted for longer; to lower it to continue sooner after a crash.",
        least=3,
        most=3600,
    )


@dataclass(frozen=True)
class IngestSettings:
    """Limits for reading a recording."""

    quarantine_rows: int = setting(
        1000,
        "row",
        "refused rows of a file that bronze.quarantine keeps; one more row has the count of the others",
        "To see more of the rows of a damaged file.",
        most=1_000_000,
    )
    refused_share: float = setting(
        0.5,
        "share",
        "if a larger share of a run's rows is refused, it ends with status 2: the folder is not a recording",
        "To load the readable rows of a badly damaged recording.",
        most=1,
    )
    follow_links: bool = setting(
        False,
        "",
        "whether to follow links that lead out of the recording; a link may bring in a foreign file",
        "When the recording contains links to folders that you trust.",
    )
    snapshot_mb: int = setting(
        256,
        "MiB",
        "largest snapshot file that is read; 9.6 million offsets take 144 MiB",
        "To refuse large files earlier on a machine with little memory.",
        least=1,
        most=256,
    )
    forget_missing_files: bool = setting(
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

    lookback_minutes: int = setting(
        60,
        "min",
        "evidence before midnight that the replay of a day reads; a client polls routes every 30 s",
        "When clients poll routes less often than every hour (pollNameServerInterval).",
        most=10_080,
    )
    route_slack_ms: int = setting(
        1000,
        "ms",
        "time in which a client may still use its old route: it takes a lock before it stores a new one",
        "When many pulls differ within seconds of a route change.",
        most=DAY_MS,
    )
    poll_slack_ms: int = setting(
        0,
        "ms",
        "largest difference between the time of a poll and the time at which the broker read its figures",
        "When the poller is slow or far from the brokers. Larger values give more undetermined suggestions.",
        most=DAY_MS,
    )
    reset_reach_s: int = seconds(
        60,
        "longest time until a reset shows in a snapshot: commit 10 s, copy of a slave 10 to 60 s",
        "When slaves copy offsets less often than every minute.",
    )
    status_window_s: int = setting(
        300,
        "s",
        "length of a row of gold.group_status; Burrow's rules need ten commits",
        "For a finer or coarser status. Shorter windows give more rows.",
        least=1,
        most=86_400,
    )


@dataclass(frozen=True)
class WatchSettings:
    """The window of `nightly --watch`."""

    lookback_minutes: int = setting(
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

    virtual_node_cnt: int = setting(
        10,
        "node",
        "virtual nodes of CONSISTENT_HASH; 10 is RocketMQ's default",
        "When the clients give another number to AllocateMessageQueueConsistentHash.",
        least=1,
        most=10_000,
    )
    groups: dict[str, dict[str, Any]] = field(
        default_factory=dict,
        metadata=table(
            "parameters by consumer group, see conf/sample.toml and docs/settings.md",
            "When a group uses CONFIG, MACHINE_ROOM, MACHINE_ROOM_NEARBY or another number of virtual nodes.",
        ),
    )


@dataclass(frozen=True)
class MaintainSettings:
    """What `mqreplay maintain` keeps. Days are counted back from the last recorded day of each cluster."""

    keep_bronze_days: int = days(
        "days of the ledger of files and of refused rows that are kept; 0: all",
        "When the ledger grows by many snapshot files each night.",
    )
    keep_silver_days: int = days(
        "days of recorded rows that are kept; 0: all",
        "To limit the disk space: silver has most of the rows.",
    )
    keep_gold_days: int = days(
        "days of judgements and findings that are kept; 0: all",
        "When findings of old nights are no longer needed.",
    )
    keep_versions_days: int = setting(
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
