"""Clients whose clock is off."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from mqreplay.replay.findings.shape import evidence, finding, text_of


def clock_findings(skewed: DataFrame, pull: DataFrame) -> DataFrame:
    """clock_skew: one for each client of skewed's frame and day; ``pull`` is by the recorder's clock, tells when."""
    seen = pull.groupBy("cluster", "client_id", F.to_date("request_ts").alias("day")).agg(
        F.min("request_ts").alias("from_ts"), F.max("request_ts").alias("to_ts")
    )
    rows = skewed.join(seen, ["cluster", "client_id"]).drop("day")
    rows = rows.groupBy(*rows.columns).agg(evidence("silver.offset_commit", "client_id"))
    by = F.round(F.abs("skew_ms") / 1000).cast("bigint").cast("string")
    return finding(
        rows,
        kind="clock_skew",
        severity=F.lit("warning"),
        summary=text_of(
            "The clock of client ",
            "{client_id}",
            " is about ",
            by,
            F.when(F.col("skew_ms") > 0, F.lit(" s ahead")).otherwise(F.lit(" s behind")),
            " of the brokers'; its instants were put right before anything was judged.",
        ),
        advice="Set the client's clock right (NTP): reset by time, delays and logs all go by it.",
        confidence=0.9,
    )
