"""Clients whose clock is off."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from mqreplay.replay.findings.shape import evidence, finding, text_of


def clock_findings(clocks: DataFrame, pull: DataFrame, commits: DataFrame) -> DataFrame:
    """clock_skew: one for each stretch of a client's clock that was off, and day.

    ``clocks`` is client_clocks' frame, with the cluster; ``pull`` and ``commits`` are by the recorder's clock, and tell
    when.
    """
    pulled, committed = (
        said.select("cluster", "client_id", F.col(ts).alias("ts"))
        for said, ts in ((pull, "request_ts"), (commits, "ts"))
    )
    seen = pulled.unionAll(committed).groupBy("cluster", "client_id", F.to_date("ts").alias("day"))
    days = seen.agg(F.min("ts").alias("first_ts"), F.max("ts").alias("last_ts"))
    rows = clocks.where("skew_ms != 0").join(days, ["cluster", "client_id"])
    rows = rows.withColumns(
        {
            "from_ts": F.greatest("first_ts", F.timestamp_millis("shown_from_ms")),
            "to_ts": F.least("last_ts", F.timestamp_millis("shown_until_ms")),
        }
    ).where("from_ts <= to_ts")
    rows = rows.groupBy("cluster", "client_id", "skew_ms", "shown_from_ms", "shown_until_ms", "from_ts", "to_ts").agg(
        evidence("silver.offset_commit", "client_id")
    )
    by = F.round(F.abs("skew_ms") / 1000).cast("bigint").cast("string")
    jumped = F.col("shown_from_ms").isNotNull() | F.col("shown_until_ms").isNotNull()
    return finding(
        rows,
        kind="clock_skew",
        severity=F.lit("warning"),
        summary=text_of(
            "The clock of client ",
            "{client_id}",
            F.when(jumped, " jumped: for a while it was about ").otherwise(" is about "),
            by,
            F.when(F.col("skew_ms") > 0, F.lit(" s ahead")).otherwise(F.lit(" s behind")),
            " of the brokers'; its instants were put right before anything was judged.",
        ),
        advice="Set the client's clock right (NTP): reset by time, delays and logs all go by it.",
        confidence=0.9,
    )
