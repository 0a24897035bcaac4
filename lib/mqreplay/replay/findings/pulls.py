"""Pulls that went to a slave: because the master said so, or because it was gone."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from mqreplay.replay.findings.shape import counted, evidence, finding, one_or_none
from mqreplay.replay.sessions import with_session


def pull_findings(pull_route: DataFrame, gap_s: int, warn_s: int) -> DataFrame:
    """Findings of gold.pull_route; pulls of one cause less than ``gap_s`` seconds apart are one finding.

    Reading from a slave for less than ``warn_s`` seconds is told, but is no warning.
    """
    return _slave_pulls(pull_route, gap_s, warn_s).unionByName(_failover_pulls(pull_route, gap_s))


def _slave_pulls(pull_route: DataFrame, gap_s: int, warn_s: int) -> DataFrame:
    by = ["cluster", "broker_name", "consumer_group", "topic"]
    # A pull that fell to the slave for want of a master may be told to stay there: still the failover's doing.
    slow = pull_route.where(
        (F.col("cause") == "suggested") & F.array_contains("route_broker_ids", F.lit(0).cast("bigint"))
    )
    found = _sessions(slow, by, gap_s)
    summary = F.concat(
        F.lit("Group "),
        "consumer_group",
        F.lit(" read "),
        "topic",
        F.lit(" of "),
        "broker_name",
        F.lit(" from a slave in "),
        counted("pulls", "pull"),
        F.lit(": it lagged further behind than the master keeps in memory."),
    )
    lasted = F.unix_millis("to_ts") - F.unix_millis("from_ts")
    severity = F.when(lasted >= warn_s * 1000, "warning").otherwise("info")
    advice = "Make the consumer faster or add members; while it lags, the slave carries its reads, so keep it healthy."
    return finding(found, kind="slave_pull", severity=severity, summary=summary, advice=advice, confidence=1.0)


def _failover_pulls(pull_route: DataFrame, gap_s: int) -> DataFrame:
    found = _sessions(pull_route.where(F.col("cause") == "master_gone"), ["cluster", "broker_name"], gap_s)
    summary = F.concat(
        F.lit("The master of "),
        "broker_name",
        F.lit(" had left the route: "),
        counted("pulls", "pull"),
        F.lit(" of "),
        counted("groups", "group"),
        F.lit(" went to a slave instead."),
    )
    advice = "See why the master went; offsets kept by the slave are older, so expect messages delivered twice."
    return finding(
        found, kind="failover_pull", severity=F.lit("critical"), summary=summary, advice=advice, confidence=1.0
    )


def _sessions(pulls: DataFrame, by: list[str], gap_s: int) -> DataFrame:
    together = with_session(pulls, by, "request_ts", "request_ts", gap_s)
    rest = [one_or_none(n) for n in ("consumer_group", "topic", "queue_id", "client_id") if n not in by]
    found = together.groupBy(*by, "session").agg(
        F.min("request_ts").alias("from_ts"),
        F.max("request_ts").alias("to_ts"),
        F.count(F.lit(1)).alias("pulls"),
        F.count_distinct("consumer_group").alias("groups"),
        one_or_none("actual_broker_id"),
        *rest,
        evidence("gold.pull_route", "record_id"),
    )
    return found.withColumnRenamed("actual_broker_id", "broker_id")
