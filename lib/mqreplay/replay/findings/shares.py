"""Members with many more queues than the others."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from mqreplay.replay.findings.shape import counted, evidence, finding, seconds, text_of
from mqreplay.replay.sessions import with_session


def uneven_findings(allocation: DataFrame, uneven_queues: int, interval_s: int, dispute_s: int) -> DataFrame:
    """uneven_allocation, of gold.allocation: a member took ``uneven_queues`` more than a fair share, for a while.

    A strategy may mean it (CONFIG, rooms, a ring of few places), so it is told as info.
    """
    fair = F.ceil(F.size("mq_all") / F.size("cid_all"))
    known = allocation.where(
        "actual IS NOT NULL AND size(mq_all) > 0 AND size(cid_all) > 1 AND topic NOT LIKE '\\%RETRY%'"
    )
    over = known.withColumns({"fair": fair, "held": F.size("actual")}).where(
        F.col("held") >= F.col("fair") + F.lit(uneven_queues)
    )
    by = ["cluster", "consumer_group", "topic", "client_id"]
    together = with_session(over, by, "rebalance_ts", "rebalance_ts", 2 * interval_s)
    found = together.groupBy(*by, "session").agg(
        F.min("rebalance_ts").alias("from_ts"),
        (F.max("rebalance_ts") + F.make_dt_interval(secs=F.lit(interval_s))).alias("to_ts"),
        F.max("held").alias("held"),
        F.max_by("fair", "held").alias("fair"),
        F.max("strategy").alias("strategy"),
        evidence("gold.allocation", "record_id"),
    )
    return finding(
        found.where(seconds("from_ts", "to_ts") > dispute_s),
        kind="uneven_allocation",
        severity=F.lit("info"),
        summary=text_of(
            "Consumer ",
            "{client_id}",
            " of group ",
            "{consumer_group}",
            " held up to ",
            counted("held", "queue"),
            " of ",
            "{topic}",
            ", where a fair share is ",
            "{fair}",
            ", by ",
            "{strategy}",
            ".",
        ),
        advice="If the strategy does not mean it, AVG shares out evenly; with CONSISTENT_HASH raise its virtual nodes.",
        confidence=1.0,
    )
