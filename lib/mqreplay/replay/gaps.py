"""gold.replay_gap: what could not be judged, and for want of what."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

# A decision, the kind of file it cannot do without, and what to do about it next time.
NEEDED = (
    ("gold.allocation", "rebalance_log", "record what each client computes (rebalance_log.jsonl)"),
    ("gold.pull_route", "pull_log", "record pulls (pull_log.jsonl)"),
    ("gold.pull_route", "routes", "record the name servers' answers (routes.jsonl)"),
    ("gold.slave_suggestion", "pull_log", "record pulls (pull_log.jsonl)"),
    ("gold.slave_suggestion", "broker_runtime", "poll each broker's runtime table (broker_runtime.jsonl)"),
    ("gold.slave_suggestion", "brokers", "record the brokers' settings (brokers.json)"),
    ("gold.slave_suggestion", "subscription_groups", "copy subscriptionGroup.json along with the snapshots"),
    ("gold.offset_continuity", "consumer_offset", "copy each broker's consumerOffset.json (snapshots/)"),
    (
        "gold.offset_continuity",
        "offset_commits",
        "record commits (offset_commits.jsonl): they tell who moved an offset",
    ),
    (
        "gold.offset_continuity",
        "server_requests",
        "record what brokers push (server_requests.jsonl): it tells of resets",
    ),
    ("gold.queue_owner", "assignments", "record what clients hold (assignments.jsonl); rebalances and pulls stand in"),
    ("gold.queue_owner", "heartbeats", "record heartbeats (heartbeats.jsonl): they tell who came, left and was lost"),
    ("gold.group_status", "offset_commits", "record commits (offset_commits.jsonl); the snapshots stand in"),
    ("gold.group_status", "pull_log", "record pulls (pull_log.jsonl) or topic statistics: they tell where queues end"),
    ("gold.failover_exposure", "consumer_offset", "copy consumerOffset.json of masters and slaves (snapshots/)"),
    ("gold.failover_exposure", "broker_runtime", "poll each broker's runtime table (broker_runtime.jsonl)"),
    ("gold.delivery_audit", "consume_log", "record what listeners were given (consume_log.jsonl)"),
    ("gold.delivery_audit", "produce_log", "record what producers sent (produce_log.jsonl)"),
    ("finding strategy_conflict", "rebalance_log", "record what each client computes (rebalance_log.jsonl)"),
    ("finding subscription_conflict", "heartbeats", "record heartbeats (heartbeats.jsonl): they carry subscriptions"),
    ("finding consumer_lost", "heartbeats", "record heartbeats (heartbeats.jsonl): they tell who unregistered"),
    ("finding broker_down", "broker_runtime", "poll each broker's runtime table; clients' errors stand in, later"),
    ("finding stuck_queue", "pull_log", "record pulls (pull_log.jsonl) or topic statistics: they tell what waits"),
    ("finding duplicate_delivery", "consume_log", "record what listeners were given (consume_log.jsonl)"),
    ("finding retry_growth", "consume_log", "record what listeners answered (consume_log.jsonl)"),
    ("finding dead_letter", "topics", "copy topics.json along with the snapshots"),
    ("finding queue_count_changed", "topics", "copy topics.json along with the snapshots"),
    ("finding orphan_offset_key", "topics", "copy topics.json along with the snapshots"),
    ("finding stale_slave_offsets", "consumer_offset", "copy consumerOffset.json of masters and slaves (snapshots/)"),
    ("finding clock_skew", "consumer_offset", "copy consumerOffset.json: commits are held against it"),
)


@dataclass(frozen=True)
class Missing:
    """A kind of file that a day's recording lacks."""

    day: str
    kind: str


def missing_kinds(spark: SparkSession, cluster: str, missing: list[Missing]) -> DataFrame:
    """Gaps for kinds of files that are not there at all on a day; shape of _gap."""
    rows = [
        (cluster, m.day, decision, m.kind, advice)
        for m in missing
        for decision, kind, advice in NEEDED
        if kind == m.kind
    ]
    frame = spark.createDataFrame(rows, "cluster STRING, day STRING, decision STRING, evidence STRING, advice STRING")
    reason = F.concat(F.lit("nothing of kind "), "evidence", F.lit(" was recorded; "), "advice")
    return _gap(
        frame.withColumns(
            {"day": F.to_date("day"), "reason": reason, "decisions": F.lit(0).cast("bigint")}
        ).withColumns({name: F.lit(None).cast(kind) for name, kind in PLACE.items()})
    )


PLACE = {
    "consumer_group": "string",
    "topic": "string",
    "broker_name": "string",
    "from_ts": "timestamp",
    "to_ts": "timestamp",
}


def undetermined(judged: dict[str, tuple[DataFrame, str]]) -> DataFrame:
    """Gaps for undetermined rows: one for each decision, group, topic, broker name and reason without its numbers.

    ``judged`` maps a gold table's name to its frame and the name of its instant.
    """
    frames = [_undetermined(name, frame, ts) for name, (frame, ts) in judged.items()]
    return _gap(reduce(DataFrame.unionByName, frames))


def _undetermined(name: str, frame: DataFrame, ts: str) -> DataFrame:
    rows = frame.where(F.col("judgement") == "undetermined")
    if "broker_name" not in frame.columns:
        rows = rows.withColumn("broker_name", F.lit(None).cast("string"))
    reason = F.regexp_replace("reason", r"\d+", "N")
    return (
        rows.withColumn("reason", reason)
        .groupBy("cluster", "day", "consumer_group", "topic", "broker_name", "reason")
        .agg(F.min(ts).alias("from_ts"), F.max(ts).alias("to_ts"), F.count(F.lit(1)).alias("decisions"))
        .withColumns({"decision": F.lit(name), "evidence": F.lit("undetermined")})
    )


def _gap(frame: DataFrame) -> DataFrame:
    key = ["decision", "evidence", "day", "consumer_group", "topic", "broker_name", "reason"]
    text = F.concat_ws("\u001f", *[F.coalesce(F.col(k).cast("string"), F.lit("")) for k in ("cluster", *key)])
    return frame.select(
        "cluster",
        "day",
        F.substring(F.sha2(text, 256), 1, 16).alias("gap_id"),
        "decision",
        "evidence",
        "consumer_group",
        "topic",
        "broker_name",
        "from_ts",
        "to_ts",
        "decisions",
        "reason",
    )
