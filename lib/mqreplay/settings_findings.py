"""The section [findings] of the settings."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from mqreplay.settings_records import seconds, setting, table

SEVERITIES_OF_GROUP = "severity"
# Thresholds that a group may have of its own: its findings depend on them after the replay.
OF_GROUP = (
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


@dataclass(frozen=True)
class FindingSettings:
    """Thresholds of the findings."""

    same_cause_gap_s: int = seconds(
        120,
        "events with at most this time between them are one finding; name servers drop a broker after 120 s",
        "Raise it if one problem gives many findings, lower it if one finding joins several problems.",
    )
    slave_pull_warn_s: int = seconds(
        10,
        "shorter reads from a slave are info: a new group on an old topic starts with some",
        "Raise it if groups often start on old topics.",
    )
    rebalance_interval_s: int = seconds(
        20,
        "rocketmq.client.rebalance.waitInterval of the clients",
        "When the clients set another interval.",
    )
    heartbeat_interval_s: int = seconds(
        30,
        "heartbeatBrokerInterval of the clients",
        "When the clients set another interval.",
    )
    dispute_s: int = seconds(
        45,
        "shorter disagreements of members are normal: two rebalance intervals and 5 s between polls",
        "Set it to about twice rebalance_interval_s.",
    )
    idle_s: int = seconds(
        40,
        "a consumer without a queue for longer is idle: two rebalance intervals",
        "Set it to twice rebalance_interval_s.",
    )
    idle_rebalances: int = setting(
        2,
        "rebalance",
        "a consumer that gets no queue in this number of rebalances is idle sooner: after one interval and 5 s",
        "To report only consumers that stay without a queue for longer, as during rolling restarts.",
        least=1,
        most=10_000,
    )
    uneven_queues: int = setting(
        2,
        "queue",
        "queues above a fair share that make an allocation uneven; one more is normal",
        "Raise it for strategies that share unevenly on purpose.",
        least=1,
        most=100_000,
    )
    silent_s: int = seconds(
        90,
        "longer silence ends the session of a client: three heartbeats",
        "Set it to three times heartbeat_interval_s.",
    )
    lost_s: int = seconds(
        45,
        "a client that is silent for longer and did not unregister is lost: one and a half heartbeats",
        "Set it to one and a half times heartbeat_interval_s.",
    )
    pull_gap_s: int = seconds(
        35,
        "a longer silence ends the ownership of a queue if another client pulls it; a pull waits 15 to 30 s",
        "When consumers set longer pull timeouts (brokerSuspendMaxTimeMillis).",
    )
    stuck_s: int = seconds(
        60,
        "a queue with messages whose offset does not advance for longer is stuck",
        "When the normal processing of one message takes longer.",
    )
    behind_s: int = seconds(
        120,
        "a lag that grows for longer while the group advances is reported; ends are polled every 30 s, so it takes four"
        " steps to tell a trend from a burst",
        "Raise it if bursts of messages last longer.",
    )
    behind_messages: int = setting(
        100,
        "message",
        "a lag that grows by fewer is not reported; the consumers of a topic cache more",
        "Raise it for topics with many messages a second.",
        most=1_000_000_000,
    )
    revive_lag_s: int = seconds(
        60,
        "a revive queue that is behind for longer is reported; a healthy broker needs 17 s, and ends are polled every"
        " 30 s",
        "When revival waits for messages of other brokers, or polls of topics are more than 30 s apart.",
    )
    down_s: int = seconds(
        10,
        "longer silence of a polled broker is an outage; a long pause of a JVM is shorter",
        "When polls are more than 5 s apart, or long pauses are normal.",
    )
    unseen_down_s: int = seconds(
        30,
        "the same for a broker that is not polled: a client sends a heartbeat every 30 s",
        "Set it to heartbeat_interval_s.",
    )
    failed_over_s: int = seconds(
        60,
        "time after an outage in which its effects are counted; clients return to a master within 45 s",
        "When clients poll routes or send heartbeats less often than by default.",
    )
    duplicate_warn_messages: int = setting(
        20,
        "message",
        "messages of a queue that changed hands that may be delivered twice unreported; a client has 20 threads",
        "Set it to consumeThreadMax x consumeMessageBatchMaxSize of your consumers, if that is more.",
        most=1_000_000_000,
    )
    refused_s: int = seconds(
        45,
        "a broker that lacks the subscription refuses pulls for longer: the next heartbeat, after 30 s, brings it",
        "Set it to one and a half times heartbeat_interval_s.",
    )
    lock_blocked_s: int = seconds(
        80,
        "a queue that a client cannot lock for longer is reported; the lock of a dead client lasts 60 s, and clients"
        " try every 20 s",
        "Raise it if rocketmq.broker.rebalance.lockMaxLiveTime of the brokers is higher.",
    )
    failed_sends: int = setting(
        5,
        "message",
        "fewer messages that producers could not send, or that are not safe, are info",
        "Set it to 1 if no send may fail.",
        most=1_000_000_000,
    )
    avoided_s: int = seconds(
        10,
        "a broker that producers pass for longer is reported, if sends to it failed or their route lacks it",
        "Raise it if short pauses of a broker do not matter.",
    )
    storm_rebalances: int = setting(
        5,
        "rebalance",
        "a group is reported if a host joins it so often within an hour, or its queues move so often without a join",
        "Raise it if consumers are restarted often, such as in a test environment.",
        least=2,
        most=1_000_000,
    )
    start_messages: int = setting(
        1000,
        "message",
        "a group that starts from the oldest messages is reported if at least so many wait",
        "Raise it if new groups often start on full topics.",
        most=1_000_000_000,
    )
    retry_warn_messages: int = setting(
        5,
        "message",
        "fewer messages sent back for retry are info",
        "Raise it for groups whose normal processing uses retries.",
        most=1_000_000_000,
    )
    retry_gap_s: int = seconds(
        7200,
        "retries of a group with at most this time between them are one finding; the longest delay level is 2 h",
        "When messageDelayLevel of the brokers has longer levels.",
    )
    late_retry_s: int = seconds(
        60,
        "a retry that comes later after its due time is reported; clients find a new retry topic within 50 s",
        "When retries of the groups may wait longer.",
    )
    clock_skew_s: int = seconds(
        60,
        "a client clock that is off by more is corrected and reported; smaller differences are noise",
        "Raise it if copies of offsets are minutes apart.",
    )
    stale_slave_s: int = seconds(
        150,
        "age at which a slave's offsets are stale; slaves copy every 10 s in 4.9, every minute in 5.x",
        "When slaves copy offsets less often.",
    )
    disk_catchup_s: int = seconds(
        60,
        "a group whose messages brokers read from disk for longer is reported",
        "Raise it if groups often read old messages on purpose.",
    )
    replication_lag_s: int = seconds(
        30,
        "a slave that lacks its master's data for longer is reported; a healthy one lacks it for less than a second",
        "Raise it if slaves are on slow lines, or the recorder polls less often than every 10 s.",
    )
    unflushed_bytes: int = setting(
        65_536,
        "byte",
        "fewer bytes above what the flush settings allow are not reported: a busy machine flushes a second late",
        "Raise it if large messages arrive at a high rate; lower it if a loss of power must not lose a message.",
        most=1_000_000_000_000,
    )
    config_drift_s: int = seconds(
        300,
        "a slave with another configuration than its master for longer is reported; slaves copy every minute at most",
        "When slaves copy less often, or the recorder polls less often than every minute.",
    )
    groups: dict[str, dict[str, Any]] = field(
        default_factory=dict,
        metadata=table(
            "thresholds and severities of consumer groups by name or pattern, see docs/settings.md",
            "When some groups are slower, or matter less or more, than others.",
        ),
    )
