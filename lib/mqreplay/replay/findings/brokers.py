"""Brokers that did not answer, and what that cost; slaves that refuse to be read."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from mqreplay.replay.broker_outages import BROKER
from mqreplay.replay.findings.shape import counted, evidence, finding, one_or_none, text_of
from mqreplay.replay.sessions import with_session
from mqreplay.replay.standstills import REFUSED

NAME = ["cluster", "broker_name"]


def outage_findings(outages: DataFrame, failovers: DataFrame, repeated: DataFrame, after_s: int) -> DataFrame:
    """broker_down, of broker_outages' frame, with what it cost: pulls that failed over, messages delivered again.

    ``failovers`` are pulls that went to a slave for want of the master, ``repeated`` is repeated_deliveries' frame;
    both count until ``after_s`` seconds after the broker's return, when clients have found back to it.
    """
    spans = outages.withColumn("_until", F.col("to_ts") + F.make_dt_interval(secs=F.lit(after_s)))
    pulls = _within(spans, failovers.select(*NAME, F.col("request_ts").alias("ts"), "consumer_group"), "pulls")
    again = _within(spans, repeated.select(*NAME, "ts", "consumer_group"), "again")
    rows = (
        spans.join(pulls, [*BROKER, "from_ts"], "left")
        .join(again.drop("groups"), [*BROKER, "from_ts"], "left")
        .withColumns(
            {
                "pulls": F.when(F.col("broker_id") == 0, F.coalesce("pulls", F.lit(0))),
                "again": F.coalesce("again", F.lit(0)),
                "seconds": F.round((F.unix_millis("to_ts") - F.unix_millis("from_ts")) / 1000).cast("bigint"),
                "evidence": F.col("keys"),
            }
        )
    )
    role = F.when(F.col("broker_id") == 0, "The master of ").otherwise(
        F.concat(F.lit("Slave "), "broker_id", F.lit(" of "))
    )
    cost = F.when(
        F.col("pulls") > 0,
        text_of("; ", counted("pulls", "pull"), " of ", counted("groups", "group"), " went to a slave instead"),
    )
    redelivered = F.when(F.col("again") > 0, text_of("; ", counted("again", "message"), " delivered again"))
    return finding(
        rows,
        kind="broker_down",
        severity=F.when(F.col("broker_id") == 0, "critical").otherwise("warning"),
        summary=text_of(
            role,
            "{broker_name}",
            " did not answer for ",
            "{seconds}",
            " s",
            F.coalesce(cost, F.lit("")),
            F.coalesce(redelivered, F.lit("")),
            ".",
        ),
        advice="See why it died or hung (its log, the kernel's, pauses of its JVM); expect messages delivered twice.",
        confidence=1.0,
    )


def refusing_slaves(pull: DataFrame, gap_s: int) -> DataFrame:
    """slave_pull, the harmful kind: clients were sent to a slave that may not be read and refused them (5.x)."""
    refused = pull.where((F.col("response_code") == REFUSED) & (F.col("broker_id") > 0))
    together = with_session(refused, BROKER, "request_ts", "request_ts", gap_s)
    found = together.groupBy(*BROKER, "session").agg(
        F.min("request_ts").alias("from_ts"),
        F.max("request_ts").alias("to_ts"),
        F.count(F.lit(1)).alias("pulls"),
        one_or_none("consumer_group"),
        one_or_none("topic"),
        evidence("silver.pull", "record_id"),
    )
    return finding(
        found,
        kind="slave_pull",
        severity=F.lit("critical"),
        summary=text_of(
            "Slave ",
            "{broker_id}",
            " of ",
            "{broker_name}",
            " refused ",
            counted("pulls", "pull"),
            " that its master had sent to it: it may not be read.",
        ),
        advice="Set slaveReadEnable=true on the slave, or false on its master too, so that nobody is sent to it.",
        confidence=1.0,
    )


def _within(spans: DataFrame, rows: DataFrame, count: str) -> DataFrame:
    """BROKER, from_ts, ``count`` rows of the same broker name within each span, and of how many groups."""
    found = spans.select(*BROKER, "from_ts", "_until").join(rows, NAME)
    inside = found.where((F.col("ts") >= F.col("from_ts")) & (F.col("ts") <= F.col("_until")))
    return inside.groupBy(*BROKER, "from_ts").agg(
        F.count(F.lit(1)).alias(count), F.count_distinct("consumer_group").alias("groups")
    )
